// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

var widths = []int{64, 512}

// forWidths runs a test against the RTL of both ends of the width range.
func forWidths(t *testing.T, f func(t *testing.T, width int)) {
	for _, w := range widths {
		t.Run(fmt.Sprintf("w%d", w), func(t *testing.T) { f(t, w) })
	}
}

func newPair(t *testing.T, cfg verbstest.Config) *verbstest.Pair {
	t.Helper()
	p, err := verbstest.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// flow is one direction of one QP pair with its target region and what that must look like.
type flow struct {
	qp     *verbs.QP
	from   *verbstest.Host
	src    []*verbs.MR
	dst    *verbs.MR
	shadow []byte
	mtu    int
	sges   int
	posted int
	done   int
	unsig  int
}

// TestRandomTraffic posts thousands of WRITEs of all lengths and alignments on many QPs in both directions,
// under random stalls of host memory, re-ordering between AXI IDs, gaps on the link and MAC back-pressure, and compares
// every byte of every target region, touched or not.
func TestRandomTraffic(t *testing.T) {
	seed := uint64(1)
	if s := os.Getenv("OPENRNIC_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 0, 64)
		require.NoError(t, err, "OPENRNIC_SEED")
		seed = v
	}
	forWidths(t, func(t *testing.T, width int) {
		for _, v := range []struct {
			name     string
			ipv6     bool
			vlan     bool
			messages int
		}{{"ipv4", false, false, 2500}, {"ipv6-vlan", true, true, 1200}} {
			t.Run(v.name, func(t *testing.T) {
				randomTraffic(t, width, seed, v.ipv6, v.vlan, v.messages, nil)
			})
		}
	})
}

// randomTraffic runs over a link with the faults of rules; nil: none. It gives the pair when all is done.
func randomTraffic(t *testing.T, width int, seed uint64, ipv6, vlan bool, messages int, rules []fabric.Rule) *verbstest.Pair {
	rng := rand.New(rand.NewPCG(seed, uint64(width)))
	p := newPair(t, verbstest.Config{Width: width, IPv6: ipv6, Seed: seed, Sim: func(c *cosim.PairConfig) {
		c.RandomStalls(rng.Uint64())
		disorder := c.Tune
		c.Tune = func(nic int, m *model.Config) {
			disorder(nic, m)
			// Host memory disturbed like this takes about this rate: without faults nothing is sent again.
			m.LinkMbps = map[int]uint32{64: 2000, 512: 25000}[width]
			m.AXIWriteBursts = max(m.AXIWriteBursts, 8)
		}
		c.Rules = rules
	}})
	const pairs = 12
	flows := make([]*flow, 0, 2*pairs)
	var src [2][]*verbs.MR
	for h, host := range p.Hosts {
		for _, size := range []int{5 << 19, 1 << 16, 1 << 12} {
			mr, err := host.PD.AllocMR(size+rng.IntN(5000), 0)
			require.NoError(t, err)
			fillRandom(rng, mr.Bytes())
			src[h] = append(src[h], mr)
		}
	}
	for i := range pairs {
		mtu := verbs.MTU(1 + i%5)
		sges := 1 + i%4
		ccfg := verbs.ConnectConfig{PathMTU: mtu}
		large := int64(3 << 20)
		if rules != nil {
			ccfg.Timeout = verbs.Of(uint8(10)) // 4.2 ms
			large = 200_000
		}
		if vlan {
			ccfg.AH.VLAN = verbs.Of(uint16(3<<13 | 100 + i))
		}
		qcfg := verbs.QPConfig{MaxSendWR: 16, MaxSendSGE: sges}
		a, b, err := p.Connect(qcfg, ccfg)
		require.NoError(t, err)
		for h, qp := range []*verbs.QP{a, b} {
			n := 20000 + rng.IntN(60000)
			if i == 0 {
				n = int(large) // room for multi-megabyte messages
			}
			dst, err := p.Hosts[1-h].PD.AllocMR(n, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			require.NoError(t, err)
			fillRandom(rng, dst.Bytes())
			flows = append(flows, &flow{qp: qp, from: p.Hosts[h], src: src[h], dst: dst,
				shadow: append([]byte(nil), dst.Bytes()...), mtu: mtu.Bytes(), sges: sges})
		}
	}

	wcs := make([]verbs.WC, 32)
	byQPN := [2]map[uint32]*flow{{}, {}}
	for _, f := range flows {
		h := 0
		if f.from == p.Hosts[1] {
			h = 1
		}
		byQPN[h][f.qp.QPN()] = f
	}
	total, want := 0, messages
	var bytesSent uint64
	finished := func() bool {
		for _, f := range flows {
			if f.done != f.posted {
				return false
			}
		}
		return total == want
	}
	idle := 0
	for !finished() {
		for range 4 {
			if total == want {
				break
			}
			f := flows[rng.IntN(len(flows))]
			room := 16 - (f.posted - f.done)
			if room == 0 {
				continue
			}
			batch := min(1+rng.IntN(min(room, 4)), want-total)
			var wrs []verbs.SendWR
			for b := range batch {
				last := b == batch-1 || f.unsig >= 7
				wr := randomWrite(rng, f, bytesSent < 12<<20)
				if last || rng.IntN(3) == 0 {
					wr.Flags |= verbs.SendSignaled
					f.unsig = 0
				} else {
					f.unsig++
				}
				wr.WRID = uint64(f.posted + b)
				for _, s := range wr.SGEs {
					bytesSent += uint64(s.Length)
				}
				wrs = append(wrs, wr)
			}
			n, err := f.qp.PostSend(wrs...)
			require.NoError(t, err)
			require.Equal(t, batch, n)
			f.posted += batch
			total += batch
		}
		progressed := false
		for h, host := range p.Hosts {
			n, err := host.CQ.Poll(wcs)
			require.NoError(t, err)
			for i := range wcs[:n] {
				wc := &wcs[i]
				require.NoError(t, wc.Err())
				f := byQPN[h][wc.QPN]
				require.NotNil(t, f, "completion for QP 0x%x", wc.QPN)
				require.GreaterOrEqual(t, int(wc.WRID), f.done, "completions of one QP out of order")
				f.done = int(wc.WRID) + 1
				progressed = true
			}
		}
		if progressed {
			idle = 0
		} else if idle++; idle > 200000 {
			for i, f := range flows {
				if f.done != f.posted {
					q, _ := f.qp.Query()
					t.Logf("flow %d: posted %d done %d, %+v", i, f.posted, f.done, q)
				}
			}
			t.Fatalf("no completion for %d polls; %d of %d posted", idle, total, want)
		}
	}
	for i, f := range flows {
		if !bytes.Equal(f.shadow, f.dst.Bytes()) {
			t.Fatalf("flow %d (QP 0x%x, MTU %d): first wrong byte at offset %d of %d", i, f.qp.QPN(), f.mtu,
				firstDifference(f.shadow, f.dst.Bytes()), len(f.shadow))
		}
	}
	t.Logf("%d messages, %d bytes, %d flows", total, bytesSent, len(flows))
	return p
}

// randomWrite makes a WRITE of a length worth testing and applies it to the flow's shadow.
func randomWrite(rng *rand.Rand, f *flow, large bool) verbs.SendWR {
	n := 0
	switch rng.IntN(12) {
	case 0:
		n = 0
	case 1:
		n = 1
	case 2:
		n = 3
	case 3:
		n = f.mtu - 1
	case 4:
		n = f.mtu
	case 5:
		n = f.mtu + 1
	case 6:
		n = 2*f.mtu + rng.IntN(3) - 1
	case 7:
		if large && len(f.shadow) > 1<<20 {
			n = 1<<20 + rng.IntN(1<<20)
		} else {
			n = rng.IntN(64)
		}
	default:
		n = rng.IntN(6000)
	}
	n = min(n, len(f.shadow))
	off := rng.IntN(len(f.shadow) - n + 1)
	if rng.IntN(4) == 0 {
		off = len(f.shadow) - n // up to the last byte of the region
	}
	wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, RemoteAddr: f.dst.Addr() + uint64(off), RKey: f.dst.RKey()}
	sges := rng.IntN(f.sges) + 1
	if n > 1<<16 {
		sges = f.sges
	}
	to := f.shadow[off : off+n]
	for i := range sges {
		part := len(to)
		if i < sges-1 {
			part = rng.IntN(len(to) + 1)
		}
		mr := f.src[rng.IntN(len(f.src))]
		part = min(part, mr.Len())
		from := rng.IntN(mr.Len() - part + 1)
		wr.SGEs = append(wr.SGEs, mr.SGE(from, part))
		copy(to, mr.Bytes()[from:from+part])
		to = to[part:]
	}
	return wr
}

func fillRandom(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
