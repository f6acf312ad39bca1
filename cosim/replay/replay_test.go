// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/replay"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/roce/rocetest"
)

// eachWidth runs a test against the RTL of both ends of the width range.
func eachWidth(t *testing.T, f func(t *testing.T, width int)) {
	for _, w := range []int{64, 512} {
		t.Run(fmt.Sprintf("w%d", w), func(t *testing.T) { f(t, w) })
	}
}

// seed of the random tests; OPENRNIC_SEED chooses another one.
func seed(t *testing.T) uint64 {
	s := os.Getenv("OPENRNIC_SEED")
	if s == "" {
		return 1
	}
	v, err := strconv.ParseUint(s, 0, 64)
	require.NoError(t, err, "OPENRNIC_SEED")
	return v
}

func open(t *testing.T, cfg replay.Config) *replay.Session {
	t.Helper()
	s, err := replay.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Engine.Err())
		require.NoError(t, s.Close())
	})
	return s
}

// codec is what the codec says of a frame that any receiver with these options gets.
func codec(f *replay.Frame, base roce.Options) (roce.Packet, roce.Verdict) {
	var p roce.Packet
	opt := f.Options(base)
	p.Parse(f.Data, &opt)
	return p, p.Verdict()
}

// same fails the test unless the RTL's verdict is the codec's.
func same(t *testing.T, name string, f *replay.Frame, rtl, want *roce.Verdict) {
	if *rtl != *want {
		t.Helper()
		require.Failf(t, "verdicts differ", "%s: %v\nframe of %d bytes, bad %t: %x", name, replay.Diff(rtl, want), len(f.Data), f.Bad,
			f.Data[:min(len(f.Data), 256)])
	}
}

// captureFile is a capture with what is known of its packets beside the codec.
type captureFile struct {
	name   string
	frames []replay.Frame
	expect *rocetest.Expected // nil: not known
}

// captureFiles are those of the repository and, where OPENRNIC_SHARED names a directory, others.
func captureFiles(t *testing.T) []captureFile {
	list, err := rocetest.Captures("../../testdata/captures")
	require.NoError(t, err)
	require.Greater(t, len(list), 190)
	var l []captureFile
	add := func(path string, e *rocetest.Expected) {
		data, err := rocetest.Frames(path)
		require.NoError(t, err)
		c := captureFile{name: filepath.Base(path), expect: e}
		for _, d := range data {
			c.frames = append(c.frames, replay.Frame{Data: d})
		}
		l = append(l, c)
	}
	for i := range list {
		add(list[i].Path, &list[i].Expected)
	}
	if dir := os.Getenv("OPENRNIC_SHARED"); dir != "" {
		files, err := filepath.Glob(filepath.Join(dir, "captures", "*", "*.pcap*"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, f := range files {
			if !slices.ContainsFunc(l, func(c captureFile) bool { return c.name == filepath.Base(f) }) {
				add(f, nil)
			}
		}
	}
	return l
}

// TestCaptures: the RTL says of every packet of every capture what the codec says, and of its ICRC and its reason what
// the independent check says; the counters add up; last_* hold the last frame or the last refused one.
func TestCaptures(t *testing.T) {
	files := captureFiles(t)
	eachWidth(t, func(t *testing.T, width int) {
		for _, disorder := range []bool{false, true} {
			s := open(t, replay.Config{Width: width, Seed: seed(t), Gaps: disorder, Stalls: disorder})
			var want replay.Counters
			var held roce.Verdict // by last_*
			var captured uint8
			packets, badICRC := 0, 0
			for i := range files {
				c := &files[i]
				dropsOnly := i%2 == 1
				s.CaptureDropsOnly(dropsOnly)
				require.NoError(t, s.Feed(c.frames, func(i int, raw *regs.RxVerdict) error {
					name := fmt.Sprintf("%s packet %d, disorder %t", c.name, i+1, disorder)
					f := &c.frames[i]
					p, exp := codec(f, roce.Options{})
					rtl := roce.FromRegs(raw)
					same(t, name, f, &rtl, &exp)
					packets++
					if c.expect != nil {
						reason, err := c.expect.Reason(i + 1)
						require.NoError(t, err)
						require.Equal(t, reason, rtl.Reason, name)
						if p.HasBTH && rtl.Reason != roce.ReasonIPOptions {
							good := !slices.Contains(c.expect.BadICRC, i+1)
							require.Equal(t, good, raw.ICRCOk, name)
							if !good {
								badICRC++
							}
						}
					}
					want.Add(&exp)
					if !dropsOnly || exp.Reason != roce.ReasonNone {
						held = replay.Kept(exp)
						captured++
					}
					return nil
				}))
				require.Equal(t, want, replay.LoadCounters(s.CSR), c.name)
				got, seq := replay.Last(s.CSR)
				require.Equal(t, held, got, c.name)
				require.Equal(t, captured, seq, c.name)
			}
			require.GreaterOrEqual(t, packets, 5511)
			require.Equal(t, 4, badICRC)
			require.EqualValues(t, packets, want.Frames)
			// nobody listens: the transport drops all of them, and memory is not touched
			requireTransport(t, s, want.Accepted)
		}
	})
}

// requireTransport: the transport dropped n packets, all because there is no queue pair.
func requireTransport(t *testing.T, s *replay.Session, n uint64) {
	t.Helper()
	for i := range uint64(regs.TransportDropCount) {
		got := s.CSR.Load64(regs.TransportDropOffset + i*regs.TransportDropStride)
		if regs.TransportDrop(i) == regs.TransportDropQPN {
			require.Equal(t, n, got)
		} else {
			require.Zero(t, got, regs.TransportDrop(i))
		}
	}
	st := s.NIC.Stats()
	require.Zero(t, st.WriteBursts)
	require.Zero(t, st.TxFrames)
}

// TestLastRegisters looks at last_* after every frame, while the choice of what they hold changes.
func TestLastRegisters(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		s := open(t, replay.Config{Width: width, Seed: seed(t)})
		g := rocetest.NewGen(seed(t))
		g.MaxPayload = 200
		rnd := rand.New(rand.NewPCG(seed(t), 1))
		held, seq := roce.Verdict{}, uint8(0)
		dropsOnly := false
		for i := range 400 {
			if rnd.IntN(8) == 0 {
				dropsOnly = !dropsOnly
				s.CaptureDropsOnly(dropsOnly)
			}
			f := replay.Frame{Data: g.Any(2).Data, Bad: rnd.IntN(20) == 0}
			f.Data = f.Data[:min(len(f.Data), replay.MaxFrame)]
			if len(f.Data) == 0 {
				continue
			}
			_, want := codec(&f, roce.Options{})
			require.NoError(t, s.Feed([]replay.Frame{f}, nil))
			if !dropsOnly || want.Reason != roce.ReasonNone {
				held = replay.Kept(want)
				seq++
			}
			got, n := replay.Last(s.CSR)
			require.Equal(t, held, got, "frame %d, drops only %t: %x", i, dropsOnly, f.Data[:min(len(f.Data), 200)])
			require.Equal(t, seq, n)
		}
	})
}

func TestOpenErrors(t *testing.T) {
	_, err := replay.Open(replay.Config{Width: 99})
	require.ErrorIs(t, err, model.ErrNoLibrary)
}

// TestFeedNamesWhatFits: frames that no simulated MAC carries are an error, not a hang.
func TestFeedNamesWhatFits(t *testing.T) {
	s := open(t, replay.Config{Width: 64})
	for _, n := range []int{0, replay.MaxFrame + 1} {
		f := replay.Frame{Data: make([]byte, n)}
		require.False(t, replay.Fits(f.Data))
		require.ErrorContains(t, s.Feed([]replay.Frame{f}, nil), fmt.Sprintf("frame of %d bytes", n))
	}
	for _, n := range []int{1, replay.MaxFrame} {
		f := replay.Frame{Data: make([]byte, n)}
		require.True(t, replay.Fits(f.Data))
		require.NoError(t, s.Feed([]replay.Frame{f}, nil))
	}
	require.EqualValues(t, 1, replay.LoadCounters(s.CSR).Drop[roce.ReasonL2Truncated])
	require.EqualValues(t, 1, replay.LoadCounters(s.CSR).Drop[roce.ReasonFrameTooLong])
}

// TestFeedCountsVerdicts: a frame without a verdict, or one too many, is an error that says so.
func TestFeedCountsVerdicts(t *testing.T) {
	s := open(t, replay.Config{Width: 64})
	frames := []replay.Frame{{Data: make([]byte, 60)}, {Data: make([]byte, 61)}, {Data: make([]byte, 62)}}
	for copies, want := range map[int]string{0: "frames 0 to 2: 2 verdicts for 3 frames", 2: "frames 0 to 2: 4 verdicts for 3 frames"} {
		d := replay.NewFeeder(s.Engine, s.NIC, func(f []byte, at simtime.Time, bad bool) error {
			n := 1
			if len(f) == 61 {
				n = copies
			}
			for range n {
				if err := s.NIC.Deliver(fabric.Frame{Data: f, At: at, Bad: bad}); err != nil {
					return err
				}
			}
			return nil
		}, 0)
		require.ErrorContains(t, d.Feed(frames, nil), want)
	}
}

func TestDiffNamesEveryField(t *testing.T) {
	var a roce.Verdict
	require.Nil(t, replay.Diff(&a, &a))
	for i, change := range []func(v *roce.Verdict){
		func(v *roce.Verdict) { v.Reason = 1 }, func(v *roce.Verdict) { v.Opcode = 1 }, func(v *roce.Verdict) { v.FrameLen = 1 },
		func(v *roce.Verdict) { v.ICRCOK = true }, func(v *roce.Verdict) { v.IPv6 = true }, func(v *roce.Verdict) { v.VLANTags = 1 },
		func(v *roce.Verdict) { v.FECN = true }, func(v *roce.Verdict) { v.BECN = true }, func(v *roce.Verdict) { v.AckReq = true },
		func(v *roce.Verdict) { v.TOS = 1 }, func(v *roce.Verdict) { v.TTL = 1 }, func(v *roce.Verdict) { v.BTHFlags = 1 },
		func(v *roce.Verdict) { v.PKey = 1 }, func(v *roce.Verdict) { v.EtherType = 1 }, func(v *roce.Verdict) { v.VLANTCI = 1 },
		func(v *roce.Verdict) { v.UDPSPort = 1 }, func(v *roce.Verdict) { v.DestQP = 1 }, func(v *roce.Verdict) { v.PSN = 1 },
		func(v *roce.Verdict) { v.PayloadOff = 1 }, func(v *roce.Verdict) { v.PayloadLen = 1 }, func(v *roce.Verdict) { v.Syndrome = 1 },
		func(v *roce.Verdict) { v.MSN = 1 }, func(v *roce.Verdict) { v.VA = 1 }, func(v *roce.Verdict) { v.RKey = 1 },
		func(v *roce.Verdict) { v.DMALen = 1 }, func(v *roce.Verdict) { v.Imm = 1 }, func(v *roce.Verdict) { v.SwapAdd = 1 },
		func(v *roce.Verdict) { v.Compare = 1 }, func(v *roce.Verdict) { v.SIP[15] = 1 }, func(v *roce.Verdict) { v.DIP[0] = 1 },
		func(v *roce.Verdict) { v.SMAC[0] = 1 }, func(v *roce.Verdict) { v.DMAC[5] = 1 },
	} {
		b := a
		change(&b)
		d := replay.Diff(&b, &a)
		require.Len(t, d, 1, i)
		require.Equal(t, replay.Fields(&a)[i].Name, d[0].Name)
	}
	// With different reasons only what both define is compared.
	b := roce.Verdict{Reason: roce.ReasonNotRoCE, FrameLen: 80, UDPSPort: 3}
	a = roce.Verdict{FrameLen: 81, UDPSPort: 4, Opcode: roce.RCAcknowledge, PSN: 5}
	d := replay.Diff(&a, &b)
	require.Equal(t, []replay.Difference{{"reason", "none", "not_roce"}, {"frame_len", "81 (0x51)", "80 (0x50)"}, {"udp_sport", "4", "3"}}, d)
	require.Equal(t, "udp_sport: RTL 4, codec 3", d[2].String())
}
