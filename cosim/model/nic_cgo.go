// SPDX-License-Identifier: Apache-2.0

package model

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "rnic_harness.h"

// The entry points of one library.
typedef struct {
	void *dl;
	const struct rnic_info *(*info)(void);
	void *(*create)(const struct rnic_config *, char *, uint32_t);
	void (*destroy)(void *);
	struct rnic_shared *(*shared)(void *);
	struct rnic_mmio *(*mmio)(void *);
	uint8_t *(*tx)(void *);
	uint8_t *(*rx)(void *);
	struct rnic_verdict *(*verdicts)(void *);
	int (*map)(void *, uint64_t, uint64_t, void *);
	int (*unmap)(void *, uint64_t);
	uint32_t (*run)(void *, uint64_t, uint32_t);
	void (*reset)(void *);
	void (*error_range)(void *, uint64_t, uint64_t, uint32_t);
	int (*trace)(void *, const char *, uint32_t, uint64_t, uint64_t);
} nic_lib;

// NULL, or what is wrong.
static const char *nic_lib_open(nic_lib *l, const char *path) {
	l->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!l->dl) return dlerror();
#define SYM(field, name) if (!(*(void **)&l->field = dlsym(l->dl, name))) return "no symbol " name ": not a model library";
	SYM(info, "rnic_library_info")
	SYM(create, "rnic_create")
	SYM(destroy, "rnic_destroy")
	SYM(shared, "rnic_shared_of")
	SYM(mmio, "rnic_mmio_ring")
	SYM(tx, "rnic_tx_ring")
	SYM(rx, "rnic_rx_ring")
	SYM(verdicts, "rnic_verdict_ring")
	SYM(map, "rnic_map")
	SYM(unmap, "rnic_unmap")
	SYM(run, "rnic_run")
	SYM(reset, "rnic_reset")
	SYM(error_range, "rnic_error_range")
	SYM(trace, "rnic_trace")
#undef SYM
	return NULL;
}

static const struct rnic_info *nic_info(nic_lib *l) { return l->info(); }
static void *nic_create(nic_lib *l, struct rnic_config *c, char *err, uint32_t n) { return l->create(c, err, n); }
static void nic_destroy(nic_lib *l, void *h) { l->destroy(h); }
static struct rnic_shared *nic_shared(nic_lib *l, void *h) { return l->shared(h); }
static struct rnic_mmio *nic_mmio(nic_lib *l, void *h) { return l->mmio(h); }
static uint8_t *nic_tx(nic_lib *l, void *h) { return l->tx(h); }
static uint8_t *nic_rx(nic_lib *l, void *h) { return l->rx(h); }
static struct rnic_verdict *nic_verdicts(nic_lib *l, void *h) { return l->verdicts(h); }
static int nic_map(nic_lib *l, void *h, uint64_t iova, uint64_t len, void *mem) { return l->map(h, iova, len, mem); }
static int nic_unmap(nic_lib *l, void *h, uint64_t iova) { return l->unmap(h, iova); }
static uint32_t nic_run(nic_lib *l, void *h, uint64_t until, uint32_t stop) { return l->run(h, until, stop); }
static void nic_reset(nic_lib *l, void *h) { l->reset(h); }
static void nic_error_range(nic_lib *l, void *h, uint64_t lo, uint64_t hi, uint32_t which) { l->error_range(h, lo, hi, which); }
static int nic_trace(nic_lib *l, void *h, const char *f, uint32_t levels, uint64_t from, uint64_t to) {
	return l->trace(h, f, levels, from, to);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

const (
	mmioSlots     = C.RNIC_MMIO_SLOTS
	ringBytes     = C.RNIC_FRAME_RING_BYTES
	verdictSlots  = C.RNIC_VERDICT_SLOTS
	frameHead     = C.sizeof_struct_rnic_frame
	maxFrameBytes = C.RNIC_MAX_FRAME
	// VerdictBytes is the size of a verdict.
	VerdictBytes = C.RNIC_VERDICT_BYTES
	// Vectors is the number of interrupt vectors.
	Vectors = C.RNIC_VECTORS
	// MaxFrame is the longest frame that fits through the rings, in bytes.
	MaxFrame = maxFrameBytes
)

// Library is an opened model library. It stays loaded until the program ends.
type Library struct {
	lib   *C.nic_lib
	path  string
	width int
	trace bool
	top   string
}

var (
	libsMu sync.Mutex
	libs   = map[string]*Library{}
)

// OpenWidth finds and opens the library of a width; variant as in FileName.
func OpenWidth(width int, variant string) (*Library, error) {
	p, err := Find(width, variant)
	if err != nil {
		return nil, err
	}
	l, err := Open(p)
	if err != nil {
		return nil, err
	}
	if l.width != width {
		return nil, fmt.Errorf("model: %s: built for DataW=%d, want %d: rebuild it with %q", p, l.width, width, buildCommand(filepath.Base(p)))
	}
	return l, nil
}

// Open opens a model library. Opening the same file again gives the same Library.
func Open(path string) (*Library, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", path, err)
	}
	libsMu.Lock()
	defer libsMu.Unlock()
	if l := libs[abs]; l != nil {
		return l, nil
	}
	if _, err := os.Stat(abs); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, notFound(filepath.Base(path), []string{path})
		}
		return nil, fmt.Errorf("model: %w", err)
	}
	cp := C.CString(abs)
	defer C.free(unsafe.Pointer(cp))
	c := (*C.nic_lib)(C.calloc(1, C.sizeof_nic_lib))
	if msg := C.nic_lib_open(c, cp); msg != nil {
		text := C.GoString(msg)
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("model: %s: %s: rebuild it with %q", path, text, buildCommand(filepath.Base(path)))
	}
	info := C.nic_info(c)
	if info.abi != C.RNIC_ABI_VERSION || info.config_bytes != C.sizeof_struct_rnic_config ||
		info.shared_bytes != C.sizeof_struct_rnic_shared || info.frame_bytes != C.sizeof_struct_rnic_frame ||
		info.mmio_bytes != C.sizeof_struct_rnic_mmio || info.verdict_bytes != C.sizeof_struct_rnic_verdict {
		return nil, fmt.Errorf("model: %s: harness ABI %d (config %d bytes, shared %d), this program has %d (%d, %d): rebuild it with %q",
			path, info.abi, info.config_bytes, info.shared_bytes, C.RNIC_ABI_VERSION, C.sizeof_struct_rnic_config,
			C.sizeof_struct_rnic_shared, buildCommand(filepath.Base(path)))
	}
	l := &Library{lib: c, path: path, width: int(info.data_w), trace: info.trace != 0, top: C.GoString(info.top)}
	libs[abs] = l
	return l, nil
}

// Path is where the library was found.
func (l *Library) Path() string { return l.path }

// Width is the datapath width in bits.
func (l *Library) Width() int { return l.width }

// CanTrace tells whether Trace works.
func (l *Library) CanTrace() bool { return l.trace }

// Top is the name of the top module.
func (l *Library) Top() string { return l.top }

// NIC is one simulated NIC.
type NIC struct {
	lib      *C.nic_lib
	h        unsafe.Pointer
	path     string
	cfg      Config
	sh       *C.struct_rnic_shared
	mmio     unsafe.Pointer
	tx, rx   []byte
	verdicts unsafe.Pointer
	reads    uint64 // reads posted
}

// New makes a NIC and takes it through reset. Close frees it.
func (l *Library) New(cfg Config) (*NIC, error) {
	c := C.struct_rnic_config{
		abi:                   C.RNIC_ABI_VERSION,
		clock_ps:              C.uint32_t(cfg.ClockPS),
		seed:                  C.uint64_t(cfg.Seed),
		mac_mbps:              C.uint32_t(cfg.LinkMbps),
		mac_tx_stall:          C.uint32_t(cfg.MACTxStall),
		mac_rx_gap:            C.uint32_t(cfg.MACRxGap),
		mmio_delay_ps:         C.uint32_t(cfg.MMIODelayPS),
		axi_read_latency_ps:   C.uint32_t(cfg.AXIReadLatencyPS),
		axi_write_latency_ps:  C.uint32_t(cfg.AXIWriteLatPS),
		axi_jitter_ps:         C.uint32_t(cfg.AXIJitterPS),
		axi_read_mbytes:       C.uint32_t(cfg.AXIReadMBps),
		axi_write_mbytes:      C.uint32_t(cfg.AXIWriteMBps),
		axi_read_outstanding:  C.uint32_t(cfg.AXIReadBursts),
		axi_write_outstanding: C.uint32_t(cfg.AXIWriteBursts),
		axi_stall:             C.uint32_t(cfg.AXIStall),
		axi_reorder:           C.uint32_t(cfg.AXIReorder),
		mac_pfc_quanta:        C.uint32_t(cfg.PFCQuanta),
	}
	if cfg.NoSkip {
		c.flags |= C.RNIC_CFG_NO_SKIP
	}
	if cfg.Check {
		c.flags |= C.RNIC_CFG_CHECK
	}
	var msg [256]C.char
	h := C.nic_create(l.lib, &c, &msg[0], C.uint32_t(len(msg)))
	if h == nil {
		return nil, fmt.Errorf("model: %s: %s", l.path, C.GoString(&msg[0]))
	}
	n := &NIC{lib: l.lib, h: h, path: l.path, cfg: cfg}
	n.sh = C.nic_shared(n.lib, h)
	n.mmio = unsafe.Pointer(C.nic_mmio(n.lib, h))
	n.tx = unsafe.Slice((*byte)(unsafe.Pointer(C.nic_tx(n.lib, h))), ringBytes)
	n.rx = unsafe.Slice((*byte)(unsafe.Pointer(C.nic_rx(n.lib, h))), ringBytes)
	n.verdicts = unsafe.Pointer(C.nic_verdicts(n.lib, h))
	return n, nil
}

// Close frees the NIC. It must not be used afterwards.
func (n *NIC) Close() {
	if n.h != nil {
		C.nic_destroy(n.lib, n.h)
		n.h, n.sh = nil, nil
	}
}

// Config is what the NIC was made with.
func (n *NIC) Config() Config { return n.cfg }

// Run simulates to cycle until, or to one of the events in stop, and gives the reasons.
func (n *NIC) Run(until uint64, stop Stop) Stop {
	return Stop(C.nic_run(n.lib, n.h, C.uint64_t(until), C.uint32_t(stop)))
}

// Cycle is the next cycle to be simulated.
func (n *NIC) Cycle() uint64 { return uint64(n.sh.cycle) }

// TimePS is the time at which that cycle begins, in picoseconds.
func (n *NIC) TimePS() uint64 { return uint64(n.sh.cycle) * uint64(n.cfg.ClockPS) }

// Wake is the first cycle in which a timer of the core may fire; all ones: none runs. It holds while Idle.
func (n *NIC) Wake() uint64 { return uint64(n.sh.wake) }

// Idle reports that Run has nothing to do until an input comes or the cycle Wake: no register access, no frame,
// nothing in flight.
func (n *NIC) Idle() bool {
	return n.sh.idle != 0 && n.sh.mmio_prod == n.sh.mmio_cons && n.sh.rx_prod == n.sh.rx_cons
}

// Err is the first protocol error of the core at its pins.
func (n *NIC) Err() error {
	if n.sh.stats.protocol_errors == 0 {
		return nil
	}
	return fmt.Errorf("model: %s: %s (%d protocol errors)", filepath.Base(n.path), C.GoString(&n.sh.err[0]), uint64(n.sh.stats.protocol_errors))
}

func (n *NIC) post(addr, data uint64, strb, op uint32) bool {
	if n.sh.mmio_prod-n.sh.mmio_cons >= mmioSlots {
		return false
	}
	m := (*C.struct_rnic_mmio)(unsafe.Add(n.mmio, uint64(n.sh.mmio_prod)%mmioSlots*C.sizeof_struct_rnic_mmio))
	m.addr, m.data, m.strb, m.op = C.uint64_t(addr), C.uint64_t(data), C.uint32_t(strb), C.uint32_t(op)
	n.sh.mmio_prod++
	return true
}

// PostWrite queues a register write of the bytes in strb of the 8-byte word at addr. False: the queue is full, Run first.
func (n *NIC) PostWrite(addr, data uint64, strb uint8) bool {
	return n.post(addr&^7, data, uint32(strb), 0)
}

// PostRead queues the read of the 8-byte word at addr, behind all writes posted before.
func (n *NIC) PostRead(addr uint64) bool {
	if !n.post(addr&^7, 0, 0, 1) {
		return false
	}
	n.reads++
	return true
}

// ReadDone reports whether all posted reads are answered, and the last answer. ok is false for a bus error.
func (n *NIC) ReadDone() (v uint64, ok, done bool) {
	return uint64(n.sh.read_data), n.sh.read_resp == 0, uint64(n.sh.read_count) == n.reads
}

// MMIOPending is the number of register accesses posted and not answered.
func (n *NIC) MMIOPending() int { return int(n.sh.mmio_prod - n.sh.mmio_cons) }

// IRQCount counts the interrupts that were requested on the vector, 0 to Vectors-1.
func (n *NIC) IRQCount(vector int) uint64 { return uint64(n.sh.irq_count[vector]) }

// SetPFCPause drives pfc_pause_i: one bit per priority.
func (n *NIC) SetPFCPause(mask uint8) { n.sh.pfc_pause = C.uint32_t(mask) }

// SetLinkUp drives link_up_i, which is 1 at first.
func (n *NIC) SetLinkUp(up bool) {
	n.sh.link_down = 1
	if up {
		n.sh.link_down = 0
	}
	n.sh.idle = 0
}

// PFCXoff is pfc_xoff_o after the last Run.
func (n *NIC) PFCXoff() uint8 { return uint8(n.sh.pfc_xoff) }

// NextFrame takes the oldest frame that the core sent.
func (n *NIC) NextFrame() (Frame, bool) {
	for n.sh.tx_cons != n.sh.tx_prod {
		off := uint64(n.sh.tx_cons) % ringBytes
		tail := ringBytes - off
		if tail >= frameHead {
			f := (*C.struct_rnic_frame)(unsafe.Pointer(&n.tx[off]))
			if f.len != C.RNIC_WRAP {
				l := uint64(f.len)
				n.sh.tx_cons += C.uint64_t(frameHead + (l+7)&^7)
				return Frame{Data: n.tx[off+frameHead : off+frameHead+l : off+frameHead+l], Start: uint64(f.t0),
					End: uint64(f.t1), Bad: f.flags&C.RNIC_FRAME_BAD != 0}, true
			}
		}
		n.sh.tx_cons += C.uint64_t(tail)
	}
	return Frame{}, false
}

// PushFrame gives the core a frame whose first beat arrives at the given time, or when the frame before it is
// through. False: no room now. Frames must have 1 to MaxFrame bytes.
func (n *NIC) PushFrame(data []byte, atPS uint64, bad bool) bool {
	need := uint64(frameHead + (len(data)+7)&^7)
	prod := uint64(n.sh.rx_prod)
	off := prod % ringBytes
	skip := uint64(0)
	if tail := ringBytes - off; tail < need {
		skip = tail
	}
	if prod+skip+need-uint64(n.sh.rx_cons) > ringBytes {
		return false
	}
	if skip != 0 {
		if skip >= frameHead {
			(*C.struct_rnic_frame)(unsafe.Pointer(&n.rx[off])).len = C.RNIC_WRAP
		}
		off = 0
	}
	f := (*C.struct_rnic_frame)(unsafe.Pointer(&n.rx[off]))
	*f = C.struct_rnic_frame{len: C.uint32_t(len(data)), t0: C.uint64_t(atPS)}
	if bad {
		f.flags = C.RNIC_FRAME_BAD
	}
	copy(n.rx[off+frameHead:], data)
	n.sh.rx_prod += C.uint64_t(skip + need)
	return true
}

// RxPending reports whether pushed frames have not been given to the core in full.
func (n *NIC) RxPending() bool { return n.sh.rx_prod != n.sh.rx_cons }

// WantVerdicts turns the collection of receive verdicts on or off.
func (n *NIC) WantVerdicts(on bool) {
	n.sh.want_verdicts = 0
	if on {
		n.sh.want_verdicts = 1
	}
}

// NextVerdict takes the oldest verdict: layout rx_verdict, and the cycle it came in. The bytes are valid until the next Run.
func (n *NIC) NextVerdict() (data []byte, cycle uint64, ok bool) {
	if n.sh.verdict_cons == n.sh.verdict_prod {
		return nil, 0, false
	}
	v := (*C.struct_rnic_verdict)(unsafe.Add(n.verdicts, uint64(n.sh.verdict_cons)%verdictSlots*C.sizeof_struct_rnic_verdict))
	n.sh.verdict_cons++
	return unsafe.Slice((*byte)(unsafe.Pointer(&v.data[0])), VerdictBytes), uint64(v.cycle), true
}

// Map lets the core reach mem, which is not Go heap memory, at iova. Both and the length are multiples of 4096.
func (n *NIC) Map(iova uint64, mem []byte) error {
	if C.nic_map(n.lib, n.h, C.uint64_t(iova), C.uint64_t(len(mem)), unsafe.Pointer(unsafe.SliceData(mem))) != 0 {
		return fmt.Errorf("model: cannot map %d bytes at IOVA 0x%x: not whole pages, or overlap with another mapping", len(mem), iova)
	}
	return nil
}

// Unmap takes away what Map gave; the core's accesses are answered with an error from then on.
func (n *NIC) Unmap(iova uint64) error {
	if C.nic_unmap(n.lib, n.h, C.uint64_t(iova)) != 0 {
		return fmt.Errorf("model: nothing is mapped at IOVA 0x%x", iova)
	}
	return nil
}

// Reset is a pin reset of 16 cycles; what is in flight at the pins is dropped.
func (n *NIC) Reset() {
	C.nic_reset(n.lib, n.h)
	n.reads = uint64(n.sh.read_count)
}

// ErrorRange lets reads and writes of IOVA lo to hi-1 fail with SLVERR.
func (n *NIC) ErrorRange(lo, hi uint64, reads, writes bool) {
	var which C.uint32_t
	if reads {
		which |= 1
	}
	if writes {
		which |= 2
	}
	C.nic_error_range(n.lib, n.h, C.uint64_t(lo), C.uint64_t(hi), which)
}

// Trace writes an FST file of the cycles from to to-1, levels deep (0: all); an empty name ends the trace.
func (n *NIC) Trace(file string, levels int, from, to uint64) error {
	var cf *C.char
	if file != "" {
		cf = C.CString(file)
		defer C.free(unsafe.Pointer(cf))
	}
	switch C.nic_trace(n.lib, n.h, cf, C.uint32_t(levels), C.uint64_t(from), C.uint64_t(to)) {
	case 0:
		return nil
	case -1:
		return fmt.Errorf("model: %s was built without waves: use the library of %q", n.path, "verilator/build.sh WIDTH trace")
	default:
		return fmt.Errorf("model: cannot write trace file %s", file)
	}
}

// Stats gives the counters.
func (n *NIC) Stats() Stats {
	s := &n.sh.stats
	return Stats{
		CyclesRun: uint64(s.cycles_run), CyclesSkipped: uint64(s.cycles_skipped), CyclesBusy: uint64(s.cycles_busy),
		TxFrames: uint64(s.tx_frames), TxBytes: uint64(s.tx_bytes), TxUnderruns: uint64(s.tx_underruns),
		RxFrames: uint64(s.rx_frames), RxBytes: uint64(s.rx_bytes),
		TxPFCFrames: uint64(s.tx_pfc_frames), RxPFCFrames: uint64(s.rx_pfc_frames),
		ReadBursts: uint64(s.axi_read_bursts), ReadBeats: uint64(s.axi_read_beats),
		WriteBursts: uint64(s.axi_write_bursts), WriteBeats: uint64(s.axi_write_beats),
		DecErrs: uint64(s.axi_decerr), SlvErrs: uint64(s.axi_slverr), FaultAddr: uint64(s.axi_fault_addr),
		MMIOWrites: uint64(s.mmio_writes), MMIOReads: uint64(s.mmio_reads), MMIOErrors: uint64(s.mmio_errors),
		ProtocolErrs: uint64(s.protocol_errors),
	}
}
