// SPDX-License-Identifier: Apache-2.0

// Package model opens a verilated NIC, a shared library built by verilator/build.sh, at run time and
// moves frames, register accesses and memory between it and Go.
//
// A [NIC] is one RTL core with its pin-level surroundings (rnic_harness.h). It is not safe for concurrent
// use; different NICs are independent. Time is counted in clock cycles and picoseconds from zero. Between
// two calls of Run nothing moves: rings are plain memory, and only Run and the rare configuration calls
// enter C.
package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Config is the surroundings of one NIC. Zero values of sizes and rates mean what the field says; see
// [DefaultConfig] for a board-like set.
type Config struct {
	ClockPS          uint32 // clock period in picoseconds
	Seed             uint64 // of every random choice of the harness
	LinkMbps         uint32 // MAC rate in Mb/s; 0: frames leave as fast as the core gives them
	MACTxStall       uint32 // probability of a cycle without tx_ready, in 1/65536
	MACRxGap         uint32 // probability of a gap before an RX beat, in 1/65536
	PFCQuanta        uint32 // pause time in PFC frames of the MAC, in 512 bit times, up to 65535; 0: the MAC has no PFC
	MMIODelayPS      uint32 // from posting a register access to the bus
	AXIReadLatencyPS uint32 // read request to first data
	AXIWriteLatPS    uint32 // last write data to memory and response
	AXIJitterPS      uint32 // random addition to both, up to this
	AXIReadMBps      uint32 // bandwidth in 10^6 bytes/s; 0: one beat per cycle
	AXIWriteMBps     uint32 // the same for writes
	AXIReadBursts    uint32 // outstanding bursts taken; 0: 64
	AXIWriteBursts   uint32 // the same for writes
	AXIStall         uint32 // probability of a stall per channel and cycle, in 1/65536
	AXIReorder       uint32 // 0: in order; 1: bursts of different IDs overtake each other; 2: their beats mix too
	NoSkip           bool   // simulate idle cycles one by one
	Check            bool   // verify in every cycle what the harness relies on to save work: slow, for tests
}

// DefaultConfig is the usual NIC of a width: clock, link rate, and host memory behind PCIe Gen3 x16 (500 ns read
// latency, 12.8 GB/s each way).
func DefaultConfig(width int) Config {
	c := Config{ClockPS: 4000, Seed: 1, PFCQuanta: 0xffff, AXIReadLatencyPS: 500_000, AXIWriteLatPS: 200_000, AXIReadMBps: 12800, AXIWriteMBps: 12800}
	switch {
	case width <= 64:
		c.ClockPS, c.LinkMbps = 8000, 1000
	case width <= 128:
		c.ClockPS, c.LinkMbps = 8000, 10_000
	case width <= 256:
		c.LinkMbps = 40_000
	default:
		c.LinkMbps = 100_000
	}
	return c
}

// Stop is a set of reasons for which Run comes back.
type Stop uint32

// Reasons. StopLimit, StopRing and StopError need not be asked for.
const (
	StopLimit   Stop = 0x01 // the cycle asked for is reached
	StopRead    Stop = 0x02 // a register read was answered
	StopIRQ     Stop = 0x04 // interrupt requested
	StopFrame   Stop = 0x08 // a frame came out
	StopVerdict Stop = 0x10 // a verdict came out
	StopRing    Stop = 0x20 // frames or verdicts must be taken before going on
	StopError   Stop = 0x40 // protocol error of the core: see Err
	StopMMIO    Stop = 0x80 // all posted register accesses are answered
)

// Stats counts what happened at the pins since the NIC was made.
type Stats struct {
	CyclesRun     uint64 // cycles evaluated
	CyclesSkipped uint64 // idle cycles jumped over
	CyclesBusy    uint64 // evaluated cycles in which the core was not idle
	TxFrames      uint64
	TxBytes       uint64 // without FCS
	TxUnderruns   uint64 // cycles without data inside a frame: always 0 in a working core
	RxFrames      uint64
	RxBytes       uint64
	TxPFCFrames   uint64 // made by the MAC; not in TxFrames
	RxPFCFrames   uint64 // taken by it
	ReadBursts    uint64 // AXI
	ReadBeats     uint64
	WriteBursts   uint64
	WriteBeats    uint64
	DecErrs       uint64 // beats to memory that is not mapped
	SlvErrs       uint64 // beats in the error range
	FaultAddr     uint64 // last of either
	MMIOWrites    uint64
	MMIOReads     uint64
	MMIOErrors    uint64 // register accesses answered with an error
	ProtocolErrs  uint64
}

// Frame is an Ethernet frame without FCS. Data is only valid until the next call to the NIC.
type Frame struct {
	Data  []byte
	Start uint64 // first beat left the core, in picoseconds
	End   uint64 // last bit, of the FCS, left on the link, in picoseconds
	Bad   bool   // marked by the core (tuser)
}

// ErrNoLibrary is wrapped by the error for a model library that is not there.
var ErrNoLibrary = errors.New("model library not found")

// FileName is the base name of the library of a width. variant is "", "trace", "asan" or "check".
func FileName(width int, variant string) string {
	n := fmt.Sprintf("librnic_w%d", width)
	if variant != "" {
		n += "_" + variant
	}
	return n + ".so"
}

// EnvDir names the environment variable with the folder of the model libraries.
const EnvDir = "OPENRNIC_LIB_DIR"

// Find looks for the library of a width in $OPENRNIC_LIB_DIR; otherwise in build/lib of the working directory and
// of the folders above it, then beside the program and in ../lib of it.
func Find(width int, variant string) (string, error) { return findFile(FileName(width, variant)) }

func findFile(name string) (string, error) {
	var tried []string
	try := func(dir string) string {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p
		}
		tried = append(tried, p)
		return ""
	}
	if dir := os.Getenv(EnvDir); dir != "" {
		if p := try(dir); p != "" {
			return p, nil
		}
		return "", notFound(name, tried)
	}
	if wd, err := os.Getwd(); err == nil {
		for {
			if p := try(filepath.Join(wd, "build", "lib")); p != "" {
				return p, nil
			}
			up := filepath.Dir(wd)
			if _, err := os.Stat(filepath.Join(wd, "go.mod")); err == nil || up == wd {
				break
			}
			wd = up
		}
	}
	if exe, err := os.Executable(); err == nil {
		for _, dir := range []string{filepath.Join(filepath.Dir(exe), "lib"), filepath.Join(filepath.Dir(exe), "..", "lib")} {
			if p := try(dir); p != "" {
				return p, nil
			}
		}
	}
	return "", notFound(name, tried)
}

func notFound(name string, tried []string) error {
	return fmt.Errorf("model: %s: %w (looked for %s): build it with %q, or set %s to the folder it is in",
		name, ErrNoLibrary, strings.Join(tried, ", "), buildCommand(name), EnvDir)
}

// buildCommand is what makes a library, run at the top of the repository.
func buildCommand(name string) string {
	s := strings.TrimSuffix(strings.TrimPrefix(name, "librnic_"), ".so")
	probe := strings.HasPrefix(s, "probe_")
	width, variant, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(s, "probe_"), "w"), "_")
	if variant == "" && !probe {
		return "make lib"
	}
	cmd := "verilator/build.sh " + width
	if probe {
		cmd += " probe"
	}
	if variant != "" {
		cmd += " " + variant
	}
	return cmd
}
