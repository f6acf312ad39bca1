// SPDX-License-Identifier: Apache-2.0

package cosim_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// isPFC tells PFC frames from others (IEEE 802.3 annex 31D).
func isPFC(f []byte) bool {
	return len(f) >= 60 && bytes.Equal(f[:6], []byte{1, 0x80, 0xc2, 0, 0, 1}) && bytes.Equal(f[12:16], []byte{0x88, 8, 1, 1})
}

// pfcFrame stops priority prio for that many quanta; 0 lets it go.
func pfcFrame(prio int, quanta uint16) []byte {
	f := make([]byte, 60)
	copy(f, []byte{1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 1, 1})
	f[17] = 1 << prio
	binary.BigEndian.PutUint16(f[18+2*prio:], quanta)
	return f
}

func counter(dev *verbs.Device, offset uint64) uint64 {
	return dev.PCIe().Region(pcie.BARRegisters).Load64(offset)
}

func overflows(dev *verbs.Device) uint64 {
	return counter(dev, regs.RxDropOffset+8*uint64(regs.DropReasonOverflow))
}

// marks sets where XOFF and XON are, in frames.
func marks(dev *verbs.Device, xoff, xon uint16) {
	dev.PCIe().Region(pcie.BARRegisters).Store32(regs.PfcFramesOffset, uint32(regs.PfcFramesReg(0).WithXoff(xoff).WithXon(xon)))
}

// stream makes a stream of small messages from one host with QPs and regions of its own.
func stream(t *testing.T, p *verbstest.Pair, from int, op verbs.Opcode, qps, size, messages, depth int) *verbstest.Stream {
	t.Helper()
	src, err := p.Hosts[from].PD.AllocMR(size, verbs.AccessLocalWrite)
	require.NoError(t, err)
	dst, err := p.Hosts[1-from].PD.AllocMR(size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	require.NoError(t, err)
	s := &verbstest.Stream{Pair: p, From: p.Hosts[from], Op: op, Inline: op == verbs.OpSend && size <= 64, Src: src, Dst: dst, Bytes: size, Message: size, Depth: depth, Messages: messages}
	for range qps {
		cfg := verbs.QPConfig{MaxSendWR: depth, MaxInlineData: 64}
		if op == verbs.OpSend {
			cfg.MaxRecvWR = verbstest.RecvDepth(depth)
		}
		a, b, err := p.Connect(cfg, verbs.ConnectConfig{Access: verbs.AccessRemoteRead | verbs.AccessRemoteWrite, Timeout: verbs.Of(uint8(8))})
		require.NoError(t, err)
		if from == 1 {
			a, b = b, a
		}
		s.QPs, s.Peers = append(s.QPs, a), append(s.Peers, b)
	}
	return s
}

func requireLossless(t *testing.T, p *verbstest.Pair) {
	t.Helper()
	for i, h := range p.Hosts {
		require.Zero(t, overflows(h.Dev), "frames dropped by NIC %d", i)
		require.Zero(t, counter(h.Dev, regs.TxRetransmitsOffset), "packets sent again by NIC %d", i)
		require.Zero(t, counter(h.Dev, regs.LocalAckTimeoutErrOffset), "timeouts of NIC %d", i)
		require.Zero(t, counter(h.Dev, regs.RxPauseStormEventsOffset)+counter(h.Dev, regs.TxPauseStormErrorEventsOffset), "watchdog of NIC %d", i)
	}
}

// Both NICs send small SENDs and READs at once and stop each other all the time: nothing is lost, and nothing waits for ever.
func TestPFCBothDirections(t *testing.T) {
	for _, width := range []int{64, 512} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var pauses [2]int
			p, err := verbstest.New(verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) {
				c.Taps = append(c.Taps, fabric.TapFunc(func(d fabric.Dir, f fabric.Frame, _ string) error {
					if isPFC(f.Data) {
						pauses[d]++
					}
					return nil
				}))
			}})
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			n := map[int]int{64: 150, 512: 1500}[width]
			xoff, xon := uint16(6), uint16(2)
			if width == 64 {
				xoff, xon = 1, 0
			}
			var all []*verbstest.Stream
			for from := range 2 {
				marks(p.Hosts[from].Dev, xoff, xon)
				all = append(all, stream(t, p, from, verbs.OpSend, 8, 64, n, 32), stream(t, p, from, verbs.OpRDMARead, 4, 2048, n/5, 16))
			}
			require.NoError(t, verbstest.RunStreams(all...))
			for _, s := range all {
				require.Equal(t, s.Messages, s.Result().Messages)
			}
			requireLossless(t, p)
			require.NoError(t, p.Sim.Engine.Advance(20*simtime.Microsecond))
			for i, h := range p.Hosts {
				st, far := p.Sim.NIC[i].Stats(), p.Sim.NIC[1-i].Stats()
				require.Greater(t, pauses[i], 20, "NIC %d stopped its peer too seldom", i)
				require.EqualValues(t, pauses[i], st.TxPFCFrames)
				require.EqualValues(t, pauses[i], far.RxPFCFrames)
				stops := counter(h.Dev, regs.TxPrioPauseOffset)
				// XOFF and XON, but of a stop that ends before the MAC is done with its frame
				require.Zero(t, pauses[i]%2)
				require.LessOrEqual(t, uint64(pauses[i]), 2*stops)
				require.GreaterOrEqual(t, uint64(pauses[i]), stops)
				require.NotZero(t, counter(p.Hosts[1-i].Dev, regs.RxPrioPauseOffset))
				require.LessOrEqual(t, counter(p.Hosts[1-i].Dev, regs.RxPrioPauseOffset), stops)
				require.NotZero(t, counter(h.Dev, regs.StallTxPauseOffset))
			}
		})
	}
}

// As they come out of reset, two NICs lose nothing of small SENDs over several QPs, nor of WRITEs to a host that takes them slower
// than the link brings them; without flow control they do.
func TestPFCDefaults(t *testing.T) {
	for _, pfc := range []bool{true, false} {
		p, err := verbstest.New(verbstest.Config{Sim: func(c *cosim.PairConfig) {
			c.Tune = func(_ int, m *model.Config) { m.AXIWriteMBps = 3000 }
		}})
		require.NoError(t, err)
		if !pfc {
			for _, h := range p.Hosts {
				h.Dev.PCIe().Region(pcie.BARRegisters).Store32(regs.PfcCtrlOffset, 0)
			}
		}
		s := stream(t, p, 0, verbs.OpSend, 8, 64, 3000, 64)
		require.NoError(t, verbstest.RunStreams(s, stream(t, p, 0, verbs.OpRDMAWrite, 4, 16384, 60, 8)))
		if pfc {
			requireLossless(t, p)
			require.NotZero(t, counter(p.Hosts[1].Dev, regs.TxPrioPauseOffset))
		} else {
			require.NotZero(t, overflows(p.Hosts[1].Dev), "the test does not need flow control")
			require.Zero(t, p.Sim.NIC[1].Stats().TxPFCFrames)
		}
		require.NoError(t, p.Close())
	}
}

// PFC frames that get lost cost time, no more: a stop that is lost is repeated, and a pause whose end is lost runs out.
func TestPFCFramesLost(t *testing.T) {
	p, err := verbstest.New(verbstest.Config{Sim: func(c *cosim.PairConfig) {
		c.Tune = func(_ int, m *model.Config) { m.PFCQuanta = 2000 } // 10 us
		for _, d := range []fabric.Dir{fabric.AtoB, fabric.BtoA} {
			c.Rules = append(c.Rules, fabric.Rule{Dir: d, Match: isPFC, Prob: 0.4, Action: fabric.Drop})
		}
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	var all []*verbstest.Stream
	for from := range 2 {
		marks(p.Hosts[from].Dev, 6, 2)
		all = append(all, stream(t, p, from, verbs.OpSend, 4, 64, 800, 32))
	}
	require.NoError(t, verbstest.RunStreams(all...))
	require.Greater(t, p.Sim.Link.Stats(fabric.AtoB).Dropped, uint64(5))
	for _, h := range p.Hosts {
		require.Zero(t, overflows(h.Dev), "the buffer is far larger than these marks")
	}
}

// A peer that stops us and never lets go again: the frames leave when the watchdog has had enough, so that QPs can be
// destroyed, and it is counted. A pause that is not repeated runs out by itself.
func TestPFCWatchdog(t *testing.T) {
	for _, width := range []int{64, 512} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			lib, err := model.OpenWidth(width, "")
			require.NoError(t, err)
			e := cosim.NewEngine(cosim.Config{})
			defer func() { require.NoError(t, e.Close()) }()
			nic, err := e.AddNIC("dut", lib, model.DefaultConfig(width))
			require.NoError(t, err)
			port := e.AddPort("peer")
			_, err = e.Connect(port, nic, fabric.Config{Latency: cosim.DefaultLatency})
			require.NoError(t, err)
			dev, err := verbs.NewDevice(nic.Device(), verbs.Config{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("192.0.2.1")})
			require.NoError(t, err)
			csr := dev.PCIe().Region(pcie.BARRegisters)
			csr.Store32(regs.PfcWatchdogOffset, 60)
			pd, err := dev.AllocPD()
			require.NoError(t, err)
			cq, err := dev.CreateCQ(16)
			require.NoError(t, err)
			mr, err := pd.AllocMR(4096, verbs.AccessLocalWrite)
			require.NoError(t, err)
			qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4})
			require.NoError(t, err)
			require.NoError(t, qp.Connect(verbs.Remote{QPN: 0x100, GID: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 9}},
				verbs.ConnectConfig{Timeout: verbs.Of(uint8(0))}))
			send := func() {
				_, err := qp.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{mr.SGE(0, 8)}, RemoteAddr: 0x1000, RKey: 1})
				require.NoError(t, err)
			}
			// a pause of 20 us, sent once; of a priority that is not ours too
			rate := map[int]simtime.Time{64: 512 * simtime.Nanosecond, 512: 5120 * simtime.Picosecond}[width] // of a quantum
			quanta := uint16(20 * simtime.Microsecond / rate)
			require.NoError(t, port.Send(pfcFrame(5, 0xffff), 0, false))
			require.NoError(t, port.Send(pfcFrame(0, 0xffff), 0, true)) // a bad frame stops nobody
			require.NoError(t, e.Advance(2*simtime.Microsecond))
			send()
			require.NoError(t, e.Advance(8*simtime.Microsecond))
			frame, _, _ := port.Recv()
			require.NotNil(t, frame)
			at := e.Now()
			require.NoError(t, port.Send(pfcFrame(0, quanta), 0, false))
			require.NoError(t, e.Advance(2*simtime.Microsecond))
			send()
			require.NoError(t, e.Advance(40*simtime.Microsecond))
			frame, left, _ := port.Recv()
			require.NotNil(t, frame)
			require.GreaterOrEqual(t, left, at+cosim.DefaultLatency+20*simtime.Microsecond)
			require.Less(t, left, at+25*simtime.Microsecond)
			require.Zero(t, csr.Load64(regs.RxPauseStormEventsOffset))
			// XON before the time
			require.NoError(t, port.Send(pfcFrame(0, 0xffff), 0, false))
			require.NoError(t, e.Advance(2*simtime.Microsecond))
			send()
			require.NoError(t, e.Advance(8*simtime.Microsecond))
			frame, _, _ = port.Recv()
			require.Nil(t, frame, "a frame in spite of the pause")
			require.NoError(t, port.Send(pfcFrame(0, 0), 0, false))
			require.NoError(t, e.Advance(4*simtime.Microsecond))
			frame, _, _ = port.Recv()
			require.NotNil(t, frame)
			require.EqualValues(t, 2, csr.Load64(regs.RxPrioPauseOffset))
			require.EqualValues(t, 1, csr.Load64(regs.RxPrioPauseOffset+8*5))
			// and now for ever
			begin := e.Now()
			for i := range 40 {
				require.NoError(t, port.Send(pfcFrame(0, quanta), begin+simtime.Time(i)*10*simtime.Microsecond, false))
			}
			require.NoError(t, e.Advance(2*simtime.Microsecond))
			send()
			require.NoError(t, e.Advance(4*simtime.Microsecond))
			require.NoError(t, qp.Close())
			require.Greater(t, e.Now(), begin+60*simtime.Microsecond, "it was not held")
			require.Less(t, e.Now(), begin+90*simtime.Microsecond)
			require.EqualValues(t, 1, csr.Load64(regs.RxPauseStormEventsOffset))
			require.NotZero(t, csr.Load64(regs.StallTxPauseOffset))
		})
	}
}

// A host that stands still: XOFF is repeated until the watchdog gives up, and the NIC comes back when the host does.
func TestPFCStorm(t *testing.T) {
	p, err := verbstest.New(verbstest.Config{Sim: func(c *cosim.PairConfig) {
		c.Tune = func(nic int, m *model.Config) {
			m.PFCQuanta = 2000
			if nic == 1 {
				m.AXIWriteLatPS, m.AXIWriteBursts = 150_000_000, 1 // a write takes 150 us
			}
		}
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	csr := p.Hosts[1].Dev.PCIe().Region(pcie.BARRegisters)
	csr.Store32(regs.PfcWatchdogOffset, 40)
	marks(p.Hosts[1].Dev, 4, 1)
	s := stream(t, p, 0, verbs.OpRDMAWrite, 2, 1024, 24, 12)
	require.NoError(t, verbstest.RunStreams(s))
	require.NotZero(t, csr.Load64(regs.TxPauseStormErrorEventsOffset))
	require.GreaterOrEqual(t, csr.Load64(regs.TxPauseStormWarningEventsOffset), csr.Load64(regs.TxPauseStormErrorEventsOffset))
	require.Greater(t, p.Sim.NIC[1].Stats().TxPFCFrames, 2*csr.Load64(regs.TxPrioPauseOffset), "XOFF was not repeated")
	require.Zero(t, csr.Load64(regs.RxDropOffset+8*uint64(regs.DropReasonOverflow)))
}

// tshark reads the frames as what they are.
func TestPFCCapture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pfc.pcapng")
	f, err := os.Create(file)
	require.NoError(t, err)
	w, err := capture.NewWriter(f, capture.Section{})
	require.NoError(t, err)
	tap, err := fabric.NewCaptureTap(w, "a", "b", 100e9)
	require.NoError(t, err)
	p, err := verbstest.New(verbstest.Config{Sim: func(c *cosim.PairConfig) { c.Taps = append(c.Taps, tap) }})
	require.NoError(t, err)
	marks(p.Hosts[1].Dev, 4, 1)
	p.Hosts[1].Dev.PCIe().Region(pcie.BARRegisters).Store32(regs.PfcCtrlOffset, uint32(regs.PfcCtrlReg(0).WithEnable(0x09)))
	require.NoError(t, verbstest.RunStreams(stream(t, p, 0, verbs.OpSend, 4, 64, 100, 16)))
	require.NoError(t, p.Close())
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	out, err := exec.Command("tshark", "-r", file, "-Y", "macc", "-T", "fields", "-e", "eth.src", "-e", "macc.opcode", "-e", "macc.cbfc.enbv",
		"-e", "macc.cbfc.pause_time.c0", "-e", "macc.cbfc.pause_time.c1", "-e", "macc.cbfc.pause_time.c3", "-e", "_ws.malformed").Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Greater(t, len(lines), 3)
	for i, l := range lines {
		quanta := []string{"65535", "0"}[i%2]
		require.Equal(t, strings.Join([]string{"02:00:5e:00:53:02", "0x0101", "0x0009", quanta, "0", quanta, ""}, "\t"), l+strings.Repeat("\t", 6-strings.Count(l, "\t")), "frame %d", i)
	}
}
