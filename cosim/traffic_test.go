// SPDX-License-Identifier: Apache-2.0

package cosim_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// transfer moves size bytes by RDMA WRITE over two QPs and gives a hash of every frame with its time, of both
// memories and of the harness counters.
func transfer(t *testing.T, width, size int, sim func(*cosim.PairConfig)) [32]byte {
	t.Helper()
	sum, _ := transferLink(t, width, size, sim)
	return sum
}

// transferLink also gives the link.
func transferLink(t *testing.T, width, size int, sim func(*cosim.PairConfig)) ([32]byte, *fabric.Link) {
	t.Helper()
	frames := [2]hash.Hash{sha256.New(), sha256.New()}
	p, err := verbstest.New(verbstest.Config{Width: width, Seed: 7, Sim: func(c *cosim.PairConfig) {
		c.Taps = append(c.Taps, fabric.TapFunc(func(d fabric.Dir, f fabric.Frame, note string) error {
			fmt.Fprint(frames[d], f.At, len(f.Data), note)
			frames[d].Write(f.Data)
			return nil
		}))
		if sim != nil {
			sim(c)
		}
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	src, err := p.Hosts[0].PD.AllocMR(size, 0)
	require.NoError(t, err)
	dst, err := p.Hosts[1].PD.AllocMR(size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	for i := range src.Bytes() {
		src.Bytes()[i] = byte(rng.Uint32())
	}
	var qps []*verbs.QP
	for range 2 {
		a, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 16, MaxSendSGE: 1}, verbs.ConnectConfig{PathMTU: verbs.MTU1024, Timeout: verbs.Of(uint8(6))})
		require.NoError(t, err)
		qps = append(qps, a)
	}
	s := verbstest.Stream{Pair: p, QPs: qps, From: p.Hosts[0], Src: src, Dst: dst, Bytes: size, Message: 3000, Depth: 4}
	_, err = s.Run()
	require.NoError(t, err)
	require.NoError(t, p.Sim.Engine.Advance(10*simtime.Microsecond))
	require.Equal(t, src.Bytes(), dst.Bytes())
	h := sha256.New()
	for i, n := range p.Sim.NIC {
		st := n.Stats()
		require.Zero(t, st.TxUnderruns)
		require.Zero(t, st.ProtocolErrs)
		require.Zero(t, st.DecErrs+st.SlvErrs)
		st.CyclesRun, st.CyclesSkipped = 0, 0
		fmt.Fprint(h, st, n.Cycle())
		h.Write(frames[i].Sum(nil))
	}
	h.Write(dst.Bytes())
	return [32]byte(h.Sum(nil)), p.Sim.Link
}

// Real traffic between two NICs gives the same frames at the same times with any number of threads, with idle time
// skipped or not, and with every shortcut of the harness verified.
func TestCoreTrafficIsDeterministic(t *testing.T) {
	if _, err := exec.LookPath("verilator"); err != nil {
		t.Fatal("verilator is not installed: apt-get install verilator")
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, w := range []int{64, 512} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			out, err := exec.Command(filepath.Join(root, "verilator", "build.sh"), fmt.Sprint(w)).CombinedOutput()
			require.NoError(t, err, string(out))
			size := map[int]int{64: 30_000, 512: 150_000}[w]
			tuned := func(more func(nic int, m *model.Config)) func(c *cosim.PairConfig) {
				return func(c *cosim.PairConfig) {
					c.RandomStalls(5)
					stalls := c.Tune
					c.Tune = func(nic int, m *model.Config) {
						stalls(nic, m)
						if more != nil {
							more(nic, m)
						}
					}
				}
			}
			one := transfer(t, w, size, tuned(nil))
			require.Equal(t, one, transfer(t, w, size, func(c *cosim.PairConfig) { tuned(nil)(c); c.Threads = 2 }), "2 threads")
			require.Equal(t, one, transfer(t, w, size, tuned(func(_ int, m *model.Config) { m.NoSkip = true })), "idle cycles not skipped")
			require.Equal(t, one, transfer(t, w, size, tuned(func(_ int, m *model.Config) { m.Check = true })), "shortcuts verified")
			require.NotEqual(t, one, transfer(t, w, size, nil), "without stalls")
		})
	}
}

// Faults of every kind are the same with the same seed, frame for frame and picosecond for picosecond, whatever the
// number of threads; another seed makes others. Everything arrives all the same.
func TestFaultsAreDeterministic(t *testing.T) {
	var rules []fabric.Rule
	for _, text := range []string{"drop 1% packet", "corrupt 1% frame", "dup 2% packet", "dup 2 times 40th frame", "delay 2us jitter 30us 2% packet",
		"reorder 3 2% packet", "reorder 4us 1% packet", "badfcs every 97th frame", "delay 10us jitter 1us every 5th RC_ACKNOWLEDGE"} {
		r, err := fabric.ParseRules(text)
		require.NoError(t, err)
		rules = append(rules, r...)
	}
	for _, w := range []int{64, 512} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			size := map[int]int{64: 40_000, 512: 200_000}[w]
			faulty := func(seed uint64, threads int) [32]byte {
				h, link := transferLink(t, w, size, func(c *cosim.PairConfig) {
					c.Seed, c.Threads, c.Rules = seed, threads, rules
				})
				for d := range 2 {
					s := link.Stats(fabric.Dir(d))
					for _, n := range []uint64{s.Dropped, s.Corrupted, s.BadFCS, s.Duplicated, s.Delayed, s.Reordered} {
						require.LessOrEqual(t, n, s.Frames/3)
					}
				}
				require.NotZero(t, link.Stats(fabric.AtoB).Faults())
				return h
			}
			one := faulty(7, 1)
			require.Equal(t, one, faulty(7, 1), "again")
			require.Equal(t, one, faulty(7, 2), "2 threads")
			require.NotEqual(t, one, faulty(8, 1), "another seed")
		})
	}
}
