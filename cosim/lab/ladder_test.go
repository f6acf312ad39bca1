// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/roce"
)

// TestLadder: at both widths, every level that the RTL has passes, and each of its controls fails.
func TestLadder(t *testing.T) {
	for _, width := range []int{512, 64} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			runs := 0
			results, err := Climb(Options{Config: Config{Width: width, Threads: 2}, Started: func(_, _ string, done float64) {
				require.Less(t, done, 1.0)
				runs++
			}})
			require.NoError(t, err)
			require.Len(t, results, 7)
			require.Greater(t, runs, 9)
			for i, r := range results {
				require.Equal(t, fmt.Sprintf("L%d", i+1), r.ID)
				if r.NotAvailable != "" {
					require.GreaterOrEqual(t, i, 6, "%s: %s", r.ID, r.NotAvailable)
					require.False(t, r.Pass)
					require.False(t, r.ControlFails())
					require.Contains(t, r.NotAvailable, "not available: ")
					continue
				}
				require.True(t, r.Pass, "%s: %s", r.ID, r.Problem)
				require.True(t, r.ControlFails(), r.ID)
				require.NotEmpty(t, r.Numbers)
				for _, c := range r.Controls {
					require.NotEmpty(t, c.Why, c.Name)
				}
			}
			marks, _ := results[4].Numbers.Get("marks by the switch")
			require.Greater(t, marks, 100.0)
		})
	}
}

// TestBrokenInstruments: a level whose instrument is wrong or blind is red, and those that do not look through it are not.
func TestBrokenInstruments(t *testing.T) {
	each := func(change func(s *Seen)) func(*instruments) {
		return func(x *instruments) {
			x.seen = func(all []Seen) []Seen {
				all = append([]Seen(nil), all...)
				for i := range all {
					change(&all[i])
				}
				return all
			}
		}
	}
	census := func(change func(f *Filter, c *Census)) func(*instruments) {
		return func(x *instruments) {
			x.census = func(rd io.Reader, f Filter) (*Census, error) {
				change(&f, nil)
				c, err := TakeCensus(rd, f)
				if err == nil {
					change(nil, c)
				}
				return c, err
			}
		}
	}
	for _, c := range []struct {
		name    string
		level   int
		spoil   func(*instruments)
		problem string
	}{
		{"a comparison that sees no difference", 1, func(x *instruments) {
			x.flow = func(f FlowResult) FlowResult { f.Wrong = 0; return f }
		}, "the check is blind: it passes with wrong bytes"},
		{"a comparison that looks at nothing", 1, func(x *instruments) {
			x.flow = func(f FlowResult) FlowResult { f.Compared, f.Wrong = 0, 0; return f }
		}, "0 of 60 messages compared"},
		{"a census that is off by one", 2, census(func(_ *Filter, c *Census) {
			if c != nil && c.Opcodes[roce.RCWriteMiddle] > 0 {
				c.Opcodes[roce.RCWriteMiddle]++
			}
		}), "RC_RDMA_WRITE_MIDDLE: 36 on the wire, 35 posted"},
		{"a census that misses an ACK", 2, census(func(_ *Filter, c *Census) {
			if c != nil && c.Opcodes[roce.RCAcknowledge] > 0 {
				c.Opcodes[roce.RCAcknowledge]--
			}
		}), "RC_ACKNOWLEDGE"},
		{"a census that takes any port", 2, census(func(f *Filter, _ *Census) {
			if f != nil {
				f.Port = 0
			}
		}), "the check is blind: it passes with a filter that cannot match"},
		{"a counter of ACKs that is off by one", 2, func(x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] + map[string]uint64{"tx_acks": 1}[name]
			}
		}, "counted by the NIC"},
		{"a tap that shows the ToS that was asked for", 3, each(func(s *Seen) { s.TOS = 46 << 2 }), "a packet"},
		{"a tap that shows nothing", 3, func(x *instruments) { x.seen = func([]Seen) []Seen { return nil } }, "0 packets"},
		{"a tap that hides the ECN field", 4, each(func(s *Seen) { s.TOS &^= 3 }), "ToS 2"},
		{"a tap that takes ECT for CE", 5, each(func(s *Seen) {
			if s.TOS&3 == 2 {
				s.TOS |= 3
			}
		}), "CE before the switch"},
		{"a tap that shows every packet with CE", 5, each(func(s *Seen) { s.TOS |= 3 }), "though it is not ECN capable"},
		{"a tap that misses a mark", 5, func(x *instruments) {
			x.seen = func(all []Seen) []Seen {
				for i := range all {
					if all[i].CE() {
						return append(append([]Seen(nil), all[:i]...), all[i+1:]...)
					}
				}
				return all
			}
		}, "CE on the wire"},
		{"a counter of CE that is off by one", 5, func(x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] + map[string]uint64{"rx_ecn_ce": 1}[name]
			}
		}, "counted by the receiver"},
		{"a tap that knows a CNP by another opcode", 6, each(func(s *Seen) {
			if s.Opcode == roce.CNP {
				s.Opcode = 0x80
			}
		}), "marks and no CNP"},
		{"a counter of CNPs that is off by one", 6, func(x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] + map[string]uint64{"np_cnp_sent": 1}[name]
			}
		}, "np_cnp_sent is"},
		{"a clock that runs too fast", 6, each(func(s *Seen) { s.At = s.At * 9 / 10 }), "CNPs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := goodInstruments()
			c.spoil(&x)
			results, err := Climb(Options{Config: Config{Threads: 2}, First: c.level, Last: c.level, tools: &x})
			require.NoError(t, err)
			require.False(t, results[0].Pass)
			require.Contains(t, results[0].Problem, c.problem)
		})
	}
}

// TestScenarios: what must hold holds in each of the program's scenarios, and the numbers are those of the network.
func TestScenarios(t *testing.T) {
	run := func(name string, cfg Config, change func(s *Scenario)) *Run {
		s, err := Load(name)
		require.NoError(t, err)
		if change != nil {
			change(s)
		}
		r, err := s.Run(cfg)
		require.NoError(t, err, name)
		checks, err := r.Judge()
		require.NoError(t, err)
		require.Empty(t, Failed(checks), name)
		require.GreaterOrEqual(t, len(checks), 3)
		return r
	}
	short := func(s *Scenario) {
		for i := range s.Flows {
			s.Flows[i].Count = min(s.Flows[i].Count, 8)
		}
	}
	fast := Config{Threads: 2}
	two := run("incast-2to1", fast, nil)
	require.InDelta(t, 92.4, two.Flows[0].Gbps()+two.Flows[1].Gbps(), 6, "the port is full: 92.4 Gb/s of payload at 1 KB")
	require.Greater(t, two.Port("tor", "c").Marked, uint64(500))
	again := run("incast-2to1", Config{Threads: 1}, nil)
	require.Equal(t, two.Links, again.Links, "the same with one thread")
	require.Equal(t, two.Hosts, again.Hosts)
	other := run("incast-2to1", Config{Threads: 2, Seed: 2}, nil)
	require.NotEqual(t, two.Links, other.Links)

	eight := run("incast-8to1", fast, short)
	require.Greater(t, eight.Port("tor", "sink").PeakBytes, 700_000)

	late := run("staggered", fast, short)
	require.InDelta(t, 60, us(late.Flows[2].Began-late.Flows[0].Began), 2)
	slow := run("staggered", Config{Width: 64, Threads: 2}, func(s *Scenario) {
		for i := range s.Flows {
			s.Flows[i].Count = 3
		}
	})
	require.InDelta(t, 6000, us(slow.Flows[2].Began-slow.Flows[0].Began), 200, "a hundred times slower")

	victim := run("victim-pfc", fast, nil).Flows[2].Gbps()
	alone := run("victim-pfc", fast, func(s *Scenario) { s.Flows = s.Flows[2:] }).Flows[0].Gbps()
	require.Less(t, victim, 0.75*alone, "the trunk stands still for flows that have nothing to do with the full port")

	lot := run("parking-lot", fast, nil)
	require.Greater(t, lot.Flows[1].Gbps(), lot.Flows[0].Gbps(), "the long flow gets the least")
	require.Greater(t, lot.Port("s2", "s3").Marked, uint64(10))

	lossy := run("lossy", fast, nil)
	require.NotZero(t, lossy.Host("a").Counters["tx_retransmits"])
	require.NotZero(t, lossy.Flows[2].Wrong, "nobody repeats what the unreliable flow loses")

	tc := run("tc-shaped", fast, func(s *Scenario) { s.Flows[0].Count = 10 })
	require.InDelta(t, 0.0943, tc.Flows[0].Gbps(), 0.006, "payload of 100 Mb/s")
	p := tc.Port("tor", "c")
	require.NotZero(t, p.Marked)
	require.Less(t, p.PeakBytes, 400_000)
}

// TestJudge: each check of a scenario finds what it is there for.
func TestJudge(t *testing.T) {
	s, err := Load("incast-2to1")
	require.NoError(t, err)
	for i := range s.Flows {
		s.Flows[i].Count = 10
	}
	for i := range s.Topology.Links {
		s.Topology.Links[i].PFC = &PFC{XOff: 2 << 20, XOn: 1 << 20}
	}
	good, err := s.Run(Config{Threads: 2})
	require.NoError(t, err)
	for want, spoil := range map[string]func(r *Run, x *instruments){
		"":               func(*Run, *instruments) {},
		"reliable flows": func(r *Run, _ *instruments) { r.Flows[1].Wrong++ },
		"ToS of their":   func(r *Run, _ *instruments) { r.Flows[1].TOS = 104 },
		"only ECN-capable": func(_ *Run, x *instruments) {
			x.seen = func(all []Seen) []Seen {
				all = append([]Seen(nil), all...)
				all[len(all)-1].TOS = 2
				return all
			}
		},
		"rx_ecn_ce": func(_ *Run, x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] + map[string]uint64{"rx_ecn_ce": 1}[name]
			}
		},
		"np_cnp_sent is": func(_ *Run, x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] + map[string]uint64{"np_cnp_sent": 1}[name]
			}
		},
		"rx_becn is": func(_ *Run, x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] + map[string]uint64{"rx_becn": 1}[name]
			}
		},
		"every frame that is sent": func(_ *Run, x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] - map[string]uint64{"rx_frames": 1}[name]
			}
		},
		"want of room": func(_ *Run, x *instruments) {
			x.counter = func(h *HostResult, name string) uint64 {
				return h.Counters[name] + map[string]uint64{"rx_drop[overflow]": 1}[name]
			}
		},
	} {
		r := *good
		r.Flows = append([]FlowResult(nil), good.Flows...)
		x := goodInstruments()
		spoil(&r, &x)
		checks, err := (&trial{Run: &r, tools: x}).judge()
		require.NoError(t, err)
		require.Len(t, checks, 6)
		failed := Failed(checks)
		if want == "" {
			require.Empty(t, failed)
		} else {
			require.Len(t, failed, 1, want)
			require.Contains(t, failed[0], want)
		}
	}
}

// TestRunErrors: what can only be seen when the network is built.
func TestRunErrors(t *testing.T) {
	s, err := Load("incast-2to1")
	require.NoError(t, err)
	s.Topology.Links[0].Rate = 25e9
	_, err = s.Run(Config{Width: 64})
	require.ErrorContains(t, err, "incast-2to1: host a: link of 25000 Mb/s; a NIC of 64 bits carries 8000")
	_, err = s.Run(Config{Width: 48})
	require.ErrorContains(t, err, "librnic_w48")
}
