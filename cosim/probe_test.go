// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
)

// The fixture verilator/test/harness_probe.sv: rnic_core's ports driven by registers.
const (
	regARAddr  = 0x100
	regAR      = 0x108
	regAWAddr  = 0x110
	regAW      = 0x118
	regTX      = 0x120
	regMode    = 0x128
	regIRQ     = 0x130
	regScratch = 0x138
	regStrb    = 0x140

	resRdBeats  = 0x200
	resRdErrs   = 0x208
	resRdSum    = 0x210
	resRdOrder  = 0x218
	resWrResps  = 0x220
	resWrErrs   = 0x228
	resRxFrames = 0x230
	resRxBytes  = 0x238
	resRxSum    = 0x240
	resRxBad    = 0x248
	resTime     = 0x250
	resPause    = 0x258
)

// buildProbe builds the fixture's library, if it is not current, and opens it. OPENRNIC_TEST_VARIANT=asan takes the
// one with sanitizers (run the test program with LD_PRELOAD=$(g++ -print-file-name=libasan.so)).
func buildProbe(t testing.TB, width int) *model.Library {
	t.Helper()
	if _, err := exec.LookPath("verilator"); err != nil {
		t.Fatal("verilator is not installed: apt-get install verilator")
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	args, file := []string{fmt.Sprint(width), "probe"}, fmt.Sprintf("librnic_probe_w%d", width)
	if v := os.Getenv("OPENRNIC_TEST_VARIANT"); v != "" {
		args, file = append(args, v), file+"_"+v
	}
	cmd := exec.Command(filepath.Join(root, "verilator", "build.sh"), args...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	lib, err := model.Open(filepath.Join(root, "build", "lib", file+".so"))
	require.NoError(t, err)
	require.Equal(t, width, lib.Width())
	require.Equal(t, "harness_probe", lib.Top())
	return lib
}

func eachWidth(t *testing.T, f func(t *testing.T, lib *model.Library)) {
	for _, w := range []int{64, 512} {
		t.Run(fmt.Sprint(w), func(t *testing.T) { f(t, buildProbe(t, w)) })
	}
}

type bench struct {
	t testing.TB
	e *Engine
	n *NIC
	d *Device
	r *pcie.Region
	b int // bytes of a beat
}

func newBench(t testing.TB, lib *model.Library, tune func(c *model.Config)) *bench {
	c := model.DefaultConfig(lib.Width())
	c.Check = true
	if tune != nil {
		tune(&c)
	}
	e := NewEngine(Config{})
	n, err := e.AddNIC("p", lib, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	d := n.Device()
	return &bench{t, e, n, d, d.Region(pcie.BARRegisters), lib.Width() / 8}
}

// ar asks for a read burst. size and burst are right if below 0.
func (b *bench) ar(addr uint64, id, beats, size, burst int, drop bool) {
	b.r.Store64(regARAddr, addr)
	b.r.Store64(regAR, b.burst(id, beats, size, burst)|map[bool]uint64{true: 1 << 24}[drop])
}

func (b *bench) burst(id, beats, size, burst int) uint64 {
	if size < 0 {
		size = map[int]int{8: 3, 16: 4, 32: 5, 64: 6}[b.b]
	}
	if burst < 0 {
		burst = 1
	}
	return uint64(id) | uint64(beats-1)<<8 | uint64(size)<<16 | uint64(burst)<<20
}

// aw writes a burst of beats: 32-bit words all equal to pattern + beat number.
func (b *bench) aw(addr uint64, id, beats, really int, pattern uint32, strb uint64) {
	b.r.Store64(regAWAddr, addr)
	b.r.Store64(regStrb, strb)
	b.r.Store64(regAW, b.burst(id, beats, -1, -1)|uint64(really-1)<<24|uint64(pattern)<<32)
}

func (b *bench) tx(length int, gap, user bool, pattern uint32) {
	v := uint64(length) | uint64(pattern)<<32
	if gap {
		v |= 1 << 16
	}
	if user {
		v |= 1 << 17
	}
	b.r.Store64(regTX, v)
}

func (b *bench) settle() {
	b.t.Helper()
	require.NoError(b.t, b.e.Advance(20*simtime.Microsecond))
}

func TestProbeRegisters(t *testing.T) {
	eachWidth(t, func(t *testing.T, lib *model.Library) {
		b := newBench(t, lib, nil)
		require.EqualValues(t, 0x434e524f, b.r.Load32(0))
		b.r.Store64(regScratch, 0x1122334455667788)
		require.EqualValues(t, 0x1122334455667788, b.r.Load64(regScratch))
		require.EqualValues(t, 0x55667788, b.r.Load32(regScratch))
		require.EqualValues(t, 0x11223344, b.r.Load32(regScratch+4))
		b.r.Store32(regScratch+4, 0xaabbccdd)
		b.r.Store32(regScratch, 0x01020304)
		require.EqualValues(t, uint64(0xaabbccdd01020304), b.r.Load64(regScratch))
		// no answer but an error: all ones, counted
		require.Equal(t, ^uint64(0), b.r.Load64(0x800))
		b.r.Store64(0x800, 1)
		b.settle()
		require.EqualValues(t, 2, b.n.Stats().MMIOErrors)
		// many more stores than the ring holds, in order
		for i := range uint64(10000) {
			b.r.Store64(regScratch, i)
		}
		require.EqualValues(t, 9999, b.r.Load64(regScratch))
		require.NoError(t, b.e.Err())
	})
}

func TestProbeMemory(t *testing.T) {
	for name, tune := range map[string]func(c *model.Config){
		"plain": nil,
		"stalls": func(c *model.Config) {
			c.AXIStall, c.AXIJitterPS, c.AXIReorder, c.AXIWriteBursts = 30000, 300_000, 2, 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachWidth(t, func(t *testing.T, lib *model.Library) {
				b := newBench(t, lib, tune)
				mem, err := b.d.AllocDMA(3 * 4096)
				require.NoError(t, err)
				m := mem.Bytes()
				rng := rand.New(rand.NewPCG(1, 2))
				want := uint64(0)
				for i := 0; i < len(m); i += 8 {
					binary.LittleEndian.PutUint64(m[i:], rng.Uint64())
				}
				beats := uint64(0)
				for range 40 {
					n := 1 + rng.IntN(4096/b.b)
					if n > 64 {
						n = 64
					}
					off := rng.IntN(4096/b.b-n+1)*b.b + 4096*rng.IntN(3)
					for i := off; i < off+n*b.b; i += 8 {
						want += binary.LittleEndian.Uint64(m[i:])
					}
					beats += uint64(n)
					b.ar(mem.IOVA()+uint64(off), rng.IntN(3), n, -1, -1, false)
					b.settle()
				}
				require.EqualValues(t, beats, b.r.Load64(resRdBeats))
				require.EqualValues(t, want, b.r.Load64(resRdSum))
				require.EqualValues(t, 0, b.r.Load64(resRdErrs))

				// writes with strobes
				exp := append([]byte(nil), m...)
				for k := range 40 {
					n := 1 + rng.IntN(4096/b.b)
					if n > 64 {
						n = 64
					}
					off := rng.IntN(4096/b.b-n+1)*b.b + 4096*rng.IntN(3)
					strb := ^uint64(0)
					if k%2 == 1 {
						strb = rng.Uint64()
					}
					pat := rng.Uint32()
					for i := range n * b.b {
						if strb>>(i%b.b)&1 != 0 {
							exp[off+i] = byte((pat + uint32(i/b.b)) >> (8 * (i % 4)))
						}
					}
					b.aw(mem.IOVA()+uint64(off), rng.IntN(3), n, n, pat, strb)
					b.settle()
				}
				require.EqualValues(t, 40, b.r.Load64(resWrResps))
				require.EqualValues(t, 0, b.r.Load64(resWrErrs))
				require.Equal(t, exp, m)
				require.NoError(t, b.e.Err())
				require.NoError(t, mem.Close())
			})
		})
	}
}

// Memory that is not mapped, was taken away, or belongs to the error range answers with an error and is not touched.
func TestProbeMemoryErrors(t *testing.T) {
	eachWidth(t, func(t *testing.T, lib *model.Library) {
		b := newBench(t, lib, nil)
		mem, err := b.d.AllocDMA(4096)
		require.NoError(t, err)
		iova := mem.IOVA()
		b.ar(iova+4096, 0, 2, -1, -1, false)
		b.settle()
		require.EqualValues(t, 2, b.r.Load64(resRdErrs))
		b.aw(iova+4096, 0, 2, 2, 1, ^uint64(0))
		b.settle()
		require.EqualValues(t, 1, b.r.Load64(resWrErrs))
		s := b.n.Stats()
		require.EqualValues(t, 4, s.DecErrs)
		require.EqualValues(t, iova+4096+uint64(b.b), s.FaultAddr)

		b.n.ErrorRange(iova+1024, iova+1024+8, true, false)
		b.ar(iova+1024-uint64(b.b), 0, 3, -1, -1, false)
		b.settle()
		require.EqualValues(t, 3, b.r.Load64(resRdErrs), "one beat of three")
		b.n.ErrorRange(iova+1024, iova+1024+8, false, true)
		b.aw(iova+1024-uint64(b.b), 0, 3, 3, 0x01010101, ^uint64(0))
		b.settle()
		require.EqualValues(t, 2, b.r.Load64(resWrErrs))
		require.EqualValues(t, 2, b.n.Stats().SlvErrs)
		require.EqualValues(t, 1, mem.Bytes()[1024-1])
		require.EqualValues(t, 0, mem.Bytes()[1024], "the refused beat is not written")
		require.EqualValues(t, 3, mem.Bytes()[1024+b.b])
		b.n.ErrorRange(0, 0, false, false)

		require.NoError(t, mem.Close())
		b.ar(iova, 0, 1, -1, -1, false)
		b.settle()
		require.EqualValues(t, 4, b.r.Load64(resRdErrs))
		require.NoError(t, b.e.Err(), "a refused access is not a protocol error")
	})
}

// What the AXI checker must object to.
func TestProbeAXIChecker(t *testing.T) {
	lib := buildProbe(t, 64)
	for _, c := range []struct {
		name, want string
		do         func(b *bench, iova uint64)
	}{
		{"4k", "cross 4 KiB", func(b *bench, iova uint64) { b.ar(iova+4096-8, 0, 2, -1, -1, false) }},
		{"wrap", "burst type 2", func(b *bench, iova uint64) { b.ar(iova, 0, 2, -1, 2, false) }},
		{"narrow", "size 2", func(b *bench, iova uint64) { b.ar(iova, 0, 2, 2, -1, false) }},
		{"unaligned", "not aligned", func(b *bench, iova uint64) { b.ar(iova+4, 0, 1, -1, -1, false) }},
		{"short", "has 2 beats, AW said 3", func(b *bench, iova uint64) { b.aw(iova, 0, 3, 2, 0, 255) }},
		{"long", "has 4 beats, AW said 3", func(b *bench, iova uint64) { b.aw(iova, 0, 3, 4, 0, 255) }},
		{"aw 4k", "AW: 2 beats at", func(b *bench, iova uint64) { b.aw(iova+4096-8, 0, 2, 2, 0, 255) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, lib, nil)
			mem, err := b.d.AllocDMA(8192)
			require.NoError(t, err)
			require.NoError(t, b.e.Advance(simtime.Microsecond))
			c.do(b, mem.IOVA())
			err = b.e.Advance(20 * simtime.Microsecond)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "nic p")
			require.ErrorIs(t, b.d.Err(), err)
			require.Equal(t, ^uint32(0), b.r.Load32(0), "a dead device gives ones")
			b.d.Relax()
			require.ErrorContains(t, b.d.WaitIRQ(context.Background(), 0), c.want)
		})
	}
	// valid taken back: needs a cycle without ready
	b := newBench(t, lib, func(c *model.Config) { c.AXIReadBursts = 1 })
	mem, err := b.d.AllocDMA(4096)
	require.NoError(t, err)
	b.ar(mem.IOVA(), 0, 64, -1, -1, false)
	b.ar(mem.IOVA(), 0, 64, -1, -1, true)
	require.ErrorContains(t, b.e.Advance(20*simtime.Microsecond), "AR: valid taken back")
}

func TestProbeReadLatencyAndBandwidth(t *testing.T) {
	eachWidth(t, func(t *testing.T, lib *model.Library) {
		b := newBench(t, lib, nil)
		mem, err := b.d.AllocDMA(1 << 20)
		require.NoError(t, err)
		clk := model.DefaultConfig(lib.Width()).ClockPS
		// one beat: 500 ns, and the few cycles until the fixture is idle again
		before := b.n.Stats().CyclesBusy
		b.ar(mem.IOVA(), 0, 1, -1, -1, false)
		b.settle()
		cycles := b.n.Stats().CyclesBusy - before
		lat := 500_000 / uint64(clk)
		require.GreaterOrEqual(t, cycles, lat)
		require.Less(t, cycles, lat+16)
		// a full 4 KiB burst: plus 4096 bytes at 12.8 GB/s or at one beat per cycle
		n := min(4096/b.b, 256)
		before = b.n.Stats().CyclesBusy
		b.ar(mem.IOVA(), 0, n, -1, -1, false)
		b.settle()
		cycles = b.n.Stats().CyclesBusy - before
		beats := uint64(n)
		if lib.Width() == 512 {
			beats = uint64(n) * 5 / 4
		}
		require.GreaterOrEqual(t, cycles, lat+beats-2)
		require.Less(t, cycles, lat+beats+16)
	})
}

// With in-order memory the answers come in order of the requests; with re-ordering IDs overtake, an ID never does.
func TestProbeReorder(t *testing.T) {
	lib := buildProbe(t, 64)
	order := func(mode uint32, seed uint64) uint64 {
		b := newBench(t, lib, func(c *model.Config) { c.AXIReorder, c.Seed, c.AXIJitterPS = mode, seed, 400_000 })
		mem, err := b.d.AllocDMA(4096)
		require.NoError(t, err)
		for i := range 8 {
			b.ar(mem.IOVA(), i%4, 4, -1, -1, false)
		}
		b.settle()
		require.EqualValues(t, 32, b.r.Load64(resRdBeats))
		require.NoError(t, b.e.Err())
		return b.r.Load64(resRdOrder)
	}
	require.EqualValues(t, 0x01230123, order(0, 1))
	seen := map[uint64]bool{}
	for seed := range uint64(10) {
		seen[order(1, seed)] = true
		require.Equal(t, order(2, seed), order(2, seed), "same seed, same order")
	}
	require.Greater(t, len(seen), 3)
}

func TestProbeFramesOut(t *testing.T) {
	eachWidth(t, func(t *testing.T, lib *model.Library) {
		b := newBench(t, lib, nil)
		port := b.e.AddPort("host")
		_, err := b.e.Connect(b.n, port, fabric.Config{Latency: 700 * simtime.Nanosecond})
		require.NoError(t, err)
		_, err = b.e.Connect(b.n, port, fabric.Config{Latency: 700 * simtime.Nanosecond})
		require.ErrorContains(t, err, "already on link")
		b.settle()
		start := b.e.Now()
		lens := []int{1, 60, 61, 64, 512, 1500, 4096}
		perByte := simtime.Time(8_000_000 / int64(model.DefaultConfig(lib.Width()).LinkMbps))
		for i, l := range lens {
			b.tx(l, false, l == 61, uint32(i)<<8)
			require.NoError(t, b.e.Advance(simtime.Time(l+200)*perByte))
		}
		require.NoError(t, b.e.Advance(50*simtime.Microsecond))
		for i, l := range lens {
			f, at, bad := port.Recv()
			require.Len(t, f, l)
			require.Equal(t, l == 61, bad)
			for k, x := range f {
				require.Equal(t, byte((uint32(i)<<8+uint32(k/b.b))>>(8*(k%4))), x)
			}
			wire := simtime.Time(max(l, 60)+12) * perByte
			require.GreaterOrEqual(t, at-start, wire+700*simtime.Nanosecond)
			start = max(start, at-700*simtime.Nanosecond)
		}
		f, _, _ := port.Recv()
		require.Nil(t, f)
		s := b.n.Stats()
		require.EqualValues(t, len(lens), s.TxFrames)
		require.Zero(t, s.TxUnderruns)
		b.tx(512, true, false, 0)
		b.settle()
		require.EqualValues(t, 1, b.n.Stats().TxUnderruns, "a gap inside a frame is counted")
	})
}

// Frames leave no faster than the link: n frames back to back take n times their time on the wire.
func TestProbeLinkRate(t *testing.T) {
	eachWidth(t, func(t *testing.T, lib *model.Library) {
		b := newBench(t, lib, nil)
		port := b.e.AddPort("host")
		_, err := b.e.Connect(port, b.n, fabric.Config{Latency: DefaultLatency})
		require.NoError(t, err)
		b.r.Store64(regMode, 1) // echo
		b.settle()
		const n = 100
		const l = 200
		for range n {
			require.NoError(t, port.Send(make([]byte, l), 0, false))
		}
		require.NoError(t, b.e.Advance(400*simtime.Microsecond))
		var first, last simtime.Time
		for i := range n {
			f, at, _ := port.Recv()
			require.Len(t, f, l)
			if i == 0 {
				first = at
			}
			last = at
		}
		perByte := simtime.Time(8_000_000 / int64(model.DefaultConfig(lib.Width()).LinkMbps))
		require.Equal(t, (n-1)*(l+24)*perByte, last-first)
	})
}

func TestProbeFramesIn(t *testing.T) {
	for _, gap := range []uint32{0, 30000} {
		t.Run(fmt.Sprintf("gap %d", gap), func(t *testing.T) {
			eachWidth(t, func(t *testing.T, lib *model.Library) {
				b := newBench(t, lib, func(c *model.Config) { c.MACRxGap = gap })
				port := b.e.AddPort("host")
				_, err := b.e.Connect(port, b.n, fabric.Config{Latency: DefaultLatency})
				require.NoError(t, err)
				b.r.Store64(regMode, 2)
				var verdicts []uint64
				b.n.OnVerdict(func(d []byte, _ uint64) { verdicts = append(verdicts, binary.LittleEndian.Uint64(d)) })
				b.settle()
				rng := rand.New(rand.NewPCG(3, 4))
				var bytes, sum, bad uint64
				const frames = 3000 // more than the ring holds
				for i := range frames {
					f := make([]byte, 1+rng.IntN(1500))
					for k := range f {
						f[k] = byte(rng.Uint32())
						sum += uint64(f[k]) << (8 * (k % 8))
					}
					bytes += uint64(len(f))
					if i%7 == 0 {
						bad++
					}
					require.NoError(t, port.Send(f, 0, i%7 == 0))
				}
				require.NoError(t, b.e.RunUntil(func() bool { return b.n.Stats().RxFrames == frames }, 20*simtime.Millisecond))
				b.settle()
				require.EqualValues(t, frames, b.r.Load64(resRxFrames))
				require.EqualValues(t, bytes, b.r.Load64(resRxBytes))
				require.EqualValues(t, sum, b.r.Load64(resRxSum))
				require.EqualValues(t, bad, b.r.Load64(resRxBad))
				require.Len(t, verdicts, frames)
				for i, v := range verdicts {
					require.EqualValues(t, i, v)
				}
				require.ErrorContains(t, port.Send(nil, 0, false), "0 bytes")
			})
		})
	}
}

func TestProbeIRQ(t *testing.T) {
	b := newBench(t, buildProbe(t, 64), nil)
	require.False(t, b.d.PollIRQ(0))
	b.r.Store64(regIRQ, 1)
	require.NoError(t, b.d.WaitIRQ(context.Background(), 0))
	require.False(t, b.d.PollIRQ(0), "taken")
	b.r.Store64(regIRQ, 0)
	b.r.Store64(regIRQ, 1)
	b.r.Store64(regIRQ, 0xa)
	b.settle()
	require.True(t, b.d.PollIRQ(0))
	require.False(t, b.d.PollIRQ(2))
	for _, v := range []int{1, 3} {
		require.True(t, b.d.PollIRQ(v))
		require.False(t, b.d.PollIRQ(v), "taken")
	}
	require.False(t, b.d.PollIRQ(4))
	require.False(t, b.d.PollIRQ(-1))
	require.ErrorContains(t, b.d.WaitIRQ(context.Background(), 4), "there are 0 to 3")
	// nothing can raise it: another goroutine has a while to change that
	begin := time.Now()
	require.ErrorIs(t, b.d.WaitIRQ(context.Background(), 2), pcie.ErrIdle)
	require.GreaterOrEqual(t, time.Since(begin), time.Second)
	go func() {
		time.Sleep(20 * time.Millisecond)
		b.r.Store64(regIRQ, 4)
	}()
	require.NoError(t, b.d.WaitIRQ(context.Background(), 2))
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = b.e.Start(0)
		b.r.Store64(regIRQ, 2)
	}()
	require.NoError(t, b.d.WaitIRQ(context.Background(), 1))
	b.e.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.d.WaitIRQ(ctx, 0), context.DeadlineExceeded)
	require.Error(t, b.d.WaitIRQ(ctx, 1))
	b.n.SetPFCPause(0x5a)
	require.EqualValues(t, 0x5a, b.r.Load64(resPause))
}

// Idle time is jumped over, and what is seen does not depend on it.
func TestProbeIdleSkip(t *testing.T) {
	lib := buildProbe(t, 64)
	run := func(noSkip bool) (string, model.Stats) {
		b := newBench(t, lib, func(c *model.Config) {
			c.NoSkip, c.AXIStall, c.MACRxGap, c.MACTxStall, c.AXIReorder, c.AXIJitterPS = noSkip, 20000, 20000, 20000, 2, 100_000
			c.MMIODelayPS = 120_000
		})
		port := b.e.AddPort("host")
		_, err := b.e.Connect(port, b.n, fabric.Config{Latency: DefaultLatency})
		require.NoError(t, err)
		mem, err := b.d.AllocDMA(4096)
		require.NoError(t, err)
		b.r.Store64(regMode, 1)
		log := ""
		for i := range 20 {
			b.ar(mem.IOVA(), i%4, 5, -1, -1, false)
			require.NoError(t, port.Send(make([]byte, 100+i), b.e.Now()+simtime.Time(i)*1234567, false))
			require.NoError(t, b.e.Advance(30*simtime.Microsecond))
			log += fmt.Sprintf("%d %d;", b.r.Load64(resTime), b.r.Load64(resRxBytes))
		}
		for {
			f, at, _ := port.Recv()
			if f == nil {
				break
			}
			log += fmt.Sprintf("%d@%d;", len(f), at)
		}
		return log + fmt.Sprint(b.n.Cycle()), b.n.Stats()
	}
	skip, s := run(false)
	full, f := run(true)
	require.Equal(t, full, skip)
	require.Zero(t, f.CyclesSkipped)
	require.Equal(t, f.CyclesRun, s.CyclesRun+s.CyclesSkipped)
	require.Greater(t, s.CyclesSkipped, 4*s.CyclesRun)
	require.Equal(t, f.CyclesBusy, s.CyclesBusy)
}

// The same pair of NICs with 1, 2 and 3 threads, and with shorter windows: every frame at the same time, memory equal.
func TestProbeThreads(t *testing.T) {
	eachWidth(t, func(t *testing.T, lib *model.Library) {
		run := func(threads int, window simtime.Time) [32]byte {
			h := sha256.New()
			frames := [2]hash.Hash{sha256.New(), sha256.New()}
			e := NewEngine(Config{Threads: threads, Window: window})
			defer func() { require.NoError(t, e.Close()) }()
			var nic [2]*NIC
			var dev [2]*Device
			var mem [2]*pcie.DMA
			var err error
			for i := range nic {
				c := model.DefaultConfig(lib.Width())
				c.Seed, c.MACTxStall, c.MACRxGap, c.AXIStall, c.AXIJitterPS, c.AXIReorder = uint64(i+5), 9000, 9000, 9000, 90000, 2
				nic[i], err = e.AddNIC(fmt.Sprint(i), lib, c)
				require.NoError(t, err)
				dev[i] = nic[i].Device()
				mem[i], err = dev[i].AllocDMA(1 << 14)
				require.NoError(t, err)
				dev[i].Region(0).Store64(regMode, 1) // both echo: the frames never rest
			}
			_, err = e.Connect(nic[0], nic[1], fabric.Config{Latency: DefaultLatency, Seed: 9,
				Rules: []fabric.Rule{{Dir: fabric.AtoB, Prob: 0.1, Action: fabric.Corrupt, Bit: -1}, {Dir: fabric.BtoA, Prob: 0.02, Action: fabric.Drop}},
				Taps: []fabric.Tap{fabric.TapFunc(func(d fabric.Dir, f fabric.Frame, note string) error {
					fmt.Fprint(frames[d], f.At, f.Bad, note)
					frames[d].Write(f.Data)
					return nil
				})}})
			require.NoError(t, err)
			for i := range 30 {
				for k := range 2 {
					r := dev[k].Region(0)
					r.Store64(regTX, uint64(64+i*13+k*7)|uint64(i)<<32)
					r.Store64(regAWAddr, mem[k].IOVA()+uint64(i*128))
					r.Store64(regStrb, ^uint64(0))
					size := map[int]uint64{64: 3, 512: 6}[lib.Width()]
					r.Store64(regAW, uint64(i%3)|1<<8|size<<16|1<<20|1<<24|uint64(i)<<32)
				}
				require.NoError(t, e.Advance(2*simtime.Microsecond))
			}
			for k := range 2 {
				h.Write(frames[k].Sum(nil))
				h.Write(mem[k].Bytes())
				fmt.Fprint(h, nic[k].Stats(), dev[k].Region(0).Load64(resRxSum))
				require.Greater(t, nic[k].Stats().RxFrames, uint64(30))
			}
			return [32]byte(h.Sum(nil))
		}
		one := run(1, 0)
		require.Equal(t, one, run(2, 0))
		require.Equal(t, one, run(3, 0))
		require.Equal(t, one, run(2, 250*simtime.Nanosecond))
	})
}

func TestProbeFaultRules(t *testing.T) {
	b := newBench(t, buildProbe(t, 64), nil)
	port := b.e.AddPort("host")
	var notes []string
	l, err := b.e.Connect(port, b.n, fabric.Config{Latency: DefaultLatency,
		Taps: []fabric.Tap{fabric.TapFunc(func(_ fabric.Dir, _ fabric.Frame, note string) error { notes = append(notes, note); return nil })},
		Rules: []fabric.Rule{
			{Name: "third", Dir: fabric.AtoB, Nth: 3, Action: fabric.Drop},
			{Dir: fabric.AtoB, Match: func(f []byte) bool { return len(f) == 64 }, Nth: 1, Action: fabric.Corrupt, Bit: 9},
			{Dir: fabric.AtoB, Nth: 5, Action: fabric.BadFCS}}})
	require.NoError(t, err)
	for i := range 5 {
		require.NoError(t, port.Send(make([]byte, 60+i), 0, false))
	}
	b.settle()
	require.EqualValues(t, 4, b.r.Load64(resRxFrames))
	require.EqualValues(t, 0x200, b.r.Load64(resRxSum))
	require.EqualValues(t, 0, b.r.Load64(resRxBad), "the corrupting rule came first")
	require.Equal(t, []string{"", "", "drop (third)", "", "corrupt: bit 1 of byte 1 flipped"}, notes)
	require.Equal(t, fabric.Stats{Frames: 5, Bytes: 310, Dropped: 1, Corrupted: 1}, l.Stats(fabric.AtoB))
	require.NoError(t, port.Send(make([]byte, 60), 0, false))
	b.settle()
	require.EqualValues(t, 0, b.r.Load64(resRxBad))
	require.NoError(t, l.AddRule(fabric.Rule{Dir: fabric.AtoB, Prob: 1, Action: fabric.BadFCS}))
	require.NoError(t, port.Send(make([]byte, 60), 0, false))
	b.settle()
	require.EqualValues(t, 1, b.r.Load64(resRxBad))
}

func TestProbeReset(t *testing.T) {
	eachWidth(t, func(t *testing.T, lib *model.Library) {
		b := newBench(t, lib, nil)
		mem, err := b.d.AllocDMA(4096)
		require.NoError(t, err)
		for round := range 20 {
			b.r.Store64(regScratch, 5)
			b.ar(mem.IOVA(), 0, 8, -1, -1, false)
			b.aw(mem.IOVA(), 0, 8, 8, 1, ^uint64(0))
			b.tx(1000, false, false, 0)
			require.EqualValues(t, 5, b.r.Load64(regScratch))
			b.n.run(b.n.m.Cycle()+uint64(round*13), 0)
			require.NoError(t, b.d.Reset())
			require.EqualValues(t, 0, b.r.Load64(regScratch))
			require.NoError(t, b.d.Err())
		}
		require.NoError(t, b.d.Close())
		require.NoError(t, b.d.Close())
		require.ErrorIs(t, b.d.Err(), pcie.ErrClosed)
		_, err = b.d.AllocDMA(1)
		require.ErrorIs(t, err, pcie.ErrClosed)
		require.NoError(t, mem.Close())
	})
}

func TestProbeFreeRunning(t *testing.T) {
	b := newBench(t, buildProbe(t, 64), nil)
	require.NoError(t, b.e.Start(0))
	require.Error(t, b.e.Start(0))
	b.r.Store64(regIRQ, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, b.d.WaitIRQ(ctx, 0))
	b.r.Store64(regScratch, 3)
	require.EqualValues(t, 3, b.r.Load64(regScratch))
	before := b.e.Now()
	b.d.Relax()
	require.Greater(t, b.e.Now(), before)
	b.e.Stop()
	before = b.e.Now()
	time.Sleep(5 * time.Millisecond)
	require.Equal(t, before, b.e.Now())
	b.d.Relax()
	require.Greater(t, b.e.Now(), before)
	require.NoError(t, b.e.Close())
	require.ErrorIs(t, b.d.Err(), ErrClosed)
	require.Equal(t, ^uint32(0), b.r.Load32(0))
	b.d.Relax()
}

func TestDMAIsPageAlignedAndApart(t *testing.T) {
	lib := buildProbe(t, 64)
	e := NewEngine(Config{})
	defer func() { require.NoError(t, e.Close()) }()
	seen := map[uint64]bool{}
	for i := range 2 {
		n, err := e.AddNIC(fmt.Sprint(i), lib, model.DefaultConfig(64))
		require.NoError(t, err)
		for _, size := range []int{1, 4096, 5000} {
			m, err := n.Device().AllocDMA(size)
			require.NoError(t, err)
			require.Len(t, m.Bytes(), size)
			require.Zero(t, m.IOVA()%4096)
			require.False(t, seen[m.IOVA()])
			seen[m.IOVA()] = true
		}
		_, err = n.Device().AllocDMA(0)
		require.ErrorContains(t, err, "0 bytes")
	}
	_, err := lib.New(model.Config{ClockPS: 5})
	require.ErrorContains(t, err, "clock_ps")
	_, err = lib.New(model.Config{ClockPS: 4000, AXIStall: 65536})
	require.ErrorContains(t, err, "probability")
}

func TestStoreAndRelaxDoNotAllocate(t *testing.T) {
	b := newBench(t, buildProbe(t, 64), nil)
	b.d.Relax()
	require.Zero(t, testing.AllocsPerRun(200, func() {
		b.r.Store64(regScratch, 1)
		b.d.Relax()
		_ = b.r.Load64(regScratch)
	}))
}

func BenchmarkProbeBusy(b *testing.B) {
	for _, w := range []int{64, 512} {
		b.Run(fmt.Sprint(w), func(b *testing.B) {
			x := newBench(b, buildProbe(b, w), func(c *model.Config) { c.NoSkip, c.Check = true, false })
			begin := x.n.Cycle()
			for b.Loop() {
				if err := x.e.Advance(100 * simtime.Microsecond); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(x.n.Cycle()-begin)/b.Elapsed().Seconds()/1e6, "Mcycles/s")
		})
	}
}

// Waves are written for the time asked, and a library without them says what to build.
func TestProbeTrace(t *testing.T) {
	lib := buildProbe(t, 64)
	b := newBench(t, lib, nil)
	require.ErrorContains(t, b.n.Trace(filepath.Join(t.TempDir(), "x.fst"), 0, 0), "trace")
	if testing.Short() {
		return
	}
	t.Setenv("OPENRNIC_TEST_VARIANT", "trace")
	lib = buildProbe(t, 64)
	require.True(t, lib.CanTrace())
	size := func(from, to simtime.Time) int64 {
		b := newBench(t, lib, nil)
		file := filepath.Join(t.TempDir(), "x.fst")
		require.NoError(t, b.n.Trace(file, from, to))
		for i := range 200 {
			b.r.Store64(regScratch, uint64(i)*0x123456789abcd)
			require.NoError(t, b.e.Step())
		}
		require.NoError(t, b.n.Trace("", 0, 0))
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEmpty(t, data)
		require.Zero(t, data[0], "an FST file begins with its header block")
		return int64(len(data))
	}
	all, none := size(0, 0), size(simtime.Second, 0)
	require.Greater(t, all, none+500)
	require.Error(t, newBench(t, lib, nil).n.Trace("/no/such/folder/x.fst", 0, 0))
}

// The harness runs clean under AddressSanitizer and UBSan: this test program again, with the sanitized fixture.
func TestProbeSanitized(t *testing.T) {
	if os.Getenv("OPENRNIC_TEST_VARIANT") != "" || testing.Short() {
		t.Skip("runs once, not with -short")
	}
	var libs []string
	for _, l := range []string{"libasan.so", "libubsan.so"} {
		out, err := exec.Command("g++", "-print-file-name="+l).Output()
		p := strings.TrimSpace(string(out))
		if err != nil || !filepath.IsAbs(p) {
			t.Fatal(l + " is not installed; it comes with g++")
		}
		libs = append(libs, p)
	}
	buildProbe(t, 64) // so that only one builds at a time
	cmd := exec.Command(os.Args[0], "-test.run", "Probe(Memory|Frames|Reset|Reorder|AXI)")
	cmd.Env = append(os.Environ(), "OPENRNIC_TEST_VARIANT=asan", "ASAN_OPTIONS=detect_leaks=0", "LD_PRELOAD="+strings.Join(libs, " "))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "PASS")
}
