// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
)

// sink notes what arrives, and that it arrives in order.
type sink struct {
	t    *testing.T
	got  []string
	last simtime.Time
}

func (s *sink) Deliver(f fabric.Frame) error {
	require.GreaterOrEqual(s.t, f.At, s.last, "delivered out of order of arrival")
	s.last = f.At
	bad := ""
	if f.Bad {
		bad = "!"
	}
	s.got = append(s.got, fmt.Sprintf("%s%s@%d", f.Data, bad, f.At.Nanoseconds()))
	return nil
}

const us = simtime.Microsecond

// send sends frames a, b, c ... 1 us apart on a link of 1 us, and flushes at the end.
func send(t *testing.T, n int, rules ...fabric.Rule) (string, []string, fabric.Stats) {
	t.Helper()
	var notes []string
	tap := fabric.TapFunc(func(_ fabric.Dir, f fabric.Frame, note string) error {
		if note != "" {
			notes = append(notes, fmt.Sprintf("%s: %s", f.Data, note))
		}
		return nil
	})
	l, err := fabric.NewLink(fabric.Config{Name: "l", Latency: us, Seed: 3, Rules: rules, Taps: []fabric.Tap{tap}})
	require.NoError(t, err)
	s := &sink{t: t}
	l.Attach(nil, s)
	for i := range n {
		require.NoError(t, l.Send(fabric.AtoB, fabric.Frame{Data: []byte{byte('a' + i)}, At: simtime.Time(i) * us}))
		require.NoError(t, l.Flush(simtime.Time(i)*us))
	}
	for i := 0; ; i++ {
		at, ok := l.NextLate()
		if !ok {
			break
		}
		require.Less(t, i, 100, "frames that are never delivered")
		require.NoError(t, l.Flush(at-us))
	}
	return strings.Join(s.got, " "), notes, l.Stats(fabric.AtoB)
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  fabric.Rule
		got   string
		notes string
	}{
		{"drop", fabric.Rule{Nth: 2, Action: fabric.Drop}, "a@1000 c@3000 d@4000", "b: drop"},
		{"drop a range", fabric.Rule{Name: "r", Nth: 2, Last: 3, Action: fabric.Drop}, "a@1000 d@4000", "b: drop (r) c: drop (r)"},
		{"every second", fabric.Rule{Every: 2, Action: fabric.BadFCS}, "a@1000 b!@2000 c@3000 d!@4000", "b: bad FCS d: bad FCS"},
		{"corrupt", fabric.Rule{Nth: 1, Action: fabric.Corrupt, Bit: 1}, "c@1000 b@2000 c@3000 d@4000", "a: corrupt: bit 1 of byte 0 flipped"},
		{"rewrite", fabric.Rule{Nth: 2, Action: fabric.Rewrite, Edit: func(f []byte) { f[0] = 'B' }}, "a@1000 B@2000 c@3000 d@4000", "b: rewrite"},
		{"duplicate", fabric.Rule{Nth: 2, Action: fabric.Duplicate}, "a@1000 b@2000 b@2000 c@3000 d@4000", "b: duplicate"},
		{"two more", fabric.Rule{Nth: 2, Action: fabric.Duplicate, Copies: 2}, "a@1000 b@2000 b@2000 b@2000 c@3000 d@4000", "b: duplicate: 2 more"},
		{"delay", fabric.Rule{Nth: 1, Action: fabric.Delay, Delay: 1500 * simtime.Nanosecond}, "b@2000 a@2500 c@3000 d@4000", "a: delay: 1.5us later"},
		{"delay to the time of another", fabric.Rule{Nth: 1, Action: fabric.Delay, Delay: us}, "a@2000 b@2000 c@3000 d@4000", "a: delay: 1us later"},
		{"delay beyond the last", fabric.Rule{Nth: 1, Action: fabric.Delay, Delay: 10 * us}, "b@2000 c@3000 d@4000 a@11000", "a: delay: 10us later"},
		{"delay of all keeps the order", fabric.Rule{Every: 1, Action: fabric.Delay, Delay: 10 * us}, "a@11000 b@12000 c@13000 d@14000",
			"a: delay: 10us later b: delay: 10us later c: delay: 10us later d: delay: 10us later"},
		{"reorder", fabric.Rule{Nth: 1, Action: fabric.Reorder, Frames: 2}, "b@2000 c@3000 a@3000 d@4000", "a: reorder: held back until 2 more have passed, at most 100us"},
		{"reorder by time", fabric.Rule{Nth: 1, Action: fabric.Reorder, Delay: 2500 * simtime.Nanosecond}, "b@2000 c@3000 a@3500 d@4000", "a: reorder: held back, at most 2.5us"},
		{"reorder without others", fabric.Rule{Nth: 3, Action: fabric.Reorder, Frames: 2, Delay: 7 * us}, "a@1000 b@2000 d@4000 c@10000",
			"c: reorder: held back until 2 more have passed, at most 7us"},
		{"other direction", fabric.Rule{Dir: fabric.BtoA, Every: 1, Action: fabric.Drop}, "a@1000 b@2000 c@3000 d@4000", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, notes, st := send(t, 4, c.rule)
			require.Equal(t, c.got, got)
			require.Equal(t, c.notes, strings.Join(notes, " "))
			require.EqualValues(t, 4, st.Frames)
			require.EqualValues(t, len(notes), st.Faults())
		})
	}
}

// Two held frames that one frame sets free come in the order in which they were sent.
func TestHeldFramesKeepTheirOrder(t *testing.T) {
	got, _, _ := send(t, 5, fabric.Rule{Nth: 1, Action: fabric.Reorder, Frames: 2}, fabric.Rule{Nth: 2, Action: fabric.Reorder, Frames: 2})
	require.Equal(t, "c@3000 d@4000 a@4000 b@4000 e@5000", got)
	got, _, _ = send(t, 3, fabric.Rule{Nth: 1, Action: fabric.Delay, Delay: 2500 * simtime.Nanosecond}, fabric.Rule{Nth: 2, Action: fabric.Delay, Delay: 1500 * simtime.Nanosecond})
	require.Equal(t, "c@3000 a@3500 b@3500", got)
}

// The first rule that acts on a frame decides; the others count it.
func TestFirstRuleWins(t *testing.T) {
	got, notes, _ := send(t, 4, fabric.Rule{Name: "one", Every: 2, Action: fabric.BadFCS}, fabric.Rule{Name: "two", Nth: 2, Last: 3, Action: fabric.Drop})
	require.Equal(t, "a@1000 b!@2000 d!@4000", got)
	require.Equal(t, []string{"b: bad FCS (one)", "c: drop (two)", "d: bad FCS (one)"}, notes)
}

// A rule for a byte passes over frames that do not have it.
func TestByteOfShortFrames(t *testing.T) {
	f := make([]byte, 60)
	for n, want := range map[int]bool{59: true, 60: false} {
		rules, err := fabric.ParseRules(fmt.Sprintf("corrupt frame byte %d", n))
		require.NoError(t, err)
		require.Equal(t, want, rules[0].Match(f), n)
	}
}

// A rule more does not change what the others do, and the same seed does the same.
func TestRandomFaultsAreIndependent(t *testing.T) {
	rule := fabric.Rule{Prob: 0.3, Action: fabric.Drop}
	one, _, st := send(t, 26, rule)
	require.NotZero(t, st.Dropped)
	require.Less(t, st.Dropped, uint64(20))
	again, _, _ := send(t, 26, rule)
	require.Equal(t, one, again)
	more, _, _ := send(t, 26, rule, fabric.Rule{Dir: fabric.BtoA, Prob: 0.5, Action: fabric.Drop})
	require.Equal(t, one, more)
	jitter, _, st := send(t, 26, fabric.Rule{Every: 1, Action: fabric.Delay, Jitter: 5 * us})
	require.EqualValues(t, 26, st.Delayed)
	require.NotEqual(t, "a", jitter[:1]+"b", "order")
	require.NotContains(t, jitter, "a@1000 b@2000 c@3000 d@4000 e@5000 f@6000")
}

func TestRulesThatMakeNoSense(t *testing.T) {
	for _, r := range []fabric.Rule{{}, {Action: 99}, {Action: fabric.Drop, Prob: 1.5}, {Action: fabric.Drop, Dir: 2}, {Action: fabric.Delay, Every: 1},
		{Action: fabric.Drop, Nth: 3, Last: 2}, {Action: fabric.Delay, Delay: -1}, {Action: fabric.Reorder, Frames: -1}, {Action: fabric.Rewrite, Every: 1},
		{Action: fabric.Drop, Every: 1, Edit: func([]byte) {}}} {
		_, err := fabric.NewLink(fabric.Config{Latency: us, Rules: []fabric.Rule{r}})
		require.Error(t, err, "%+v", r)
	}
	_, err := fabric.NewLink(fabric.Config{})
	require.ErrorContains(t, err, "latency")
}

func packet(t *testing.T, h roce.Headers) []byte {
	t.Helper()
	h.IPv6 = h.NumVLAN > 0
	if !h.IPv6 {
		h.SrcIP, h.DstIP = netip.MustParseAddr("192.0.2.1").As16(), netip.MustParseAddr("192.0.2.2").As16()
	}
	f, err := h.Build(make([]byte, map[bool]int{true: 8}[h.Opcode.MayCarryPayload()]), nil)
	require.NoError(t, err)
	return f
}

func TestRuleText(t *testing.T) {
	ack := packet(t, roce.Headers{Opcode: roce.RCAcknowledge, DestQP: 5, PSN: 9})
	tagged := packet(t, roce.Headers{Opcode: roce.RCSendOnly, DestQP: 6, PSN: 0xffffff, NumVLAN: 1, VLAN: [2]roce.VLAN{{TPID: 0x8100, TCI: 3}}})
	first := packet(t, roce.Headers{Opcode: roce.RCReadResponseFirst, DestQP: 5})
	for _, c := range []struct {
		text  string
		rules int
		want  fabric.Rule // the first, without Match and Name
		match [4]bool     // ack, tagged, first, no RoCE
	}{
		{"drop the 3rd RC_RDMA_READ_RESPONSE_FIRST of qp 5", 2, fabric.Rule{Action: fabric.Drop, Nth: 3}, [4]bool{2: true}},
		{"delay 10us every RC_ACK", 2, fabric.Rule{Action: fabric.Delay, Every: 1, Delay: 10 * us}, [4]bool{0: true}},
		{"Delay 10us jitter 500ns RC_ACKNOWLEDGE", 2, fabric.Rule{Action: fabric.Delay, Every: 1, Delay: 10 * us, Jitter: us / 2}, [4]bool{0: true}},
		{"dup 2nd RC_SEND_ONLY", 2, fabric.Rule{Action: fabric.Duplicate, Nth: 2}, [4]bool{1: true}},
		{"dup 3 times 1st to 4th rc_send_only", 2, fabric.Rule{Action: fabric.Duplicate, Copies: 3, Nth: 1, Last: 4}, [4]bool{1: true}},
		{"corrupt every 10th frame b>a byte 60 bit 7", 1, fabric.Rule{Action: fabric.Corrupt, Every: 10, Dir: fabric.BtoA, Byte: 61, Bit: 487}, [4]bool{true, true, true, true}},
		{"corrupt 0.5% RC_* byte 65", 2, fabric.Rule{Action: fabric.Corrupt, Prob: 0.005, Byte: 66, Bit: -1}, [4]bool{1: true, 2: true}},
		{"corrupt packet", 2, fabric.Rule{Action: fabric.Corrupt, Every: 1, Bit: -1}, [4]bool{true, true, true}},
		{"reorder 3 2% of packets a>b qp 6", 1, fabric.Rule{Action: fabric.Reorder, Frames: 3, Prob: 0.02}, [4]bool{1: true}},
		{"reorder 1.5us first frame", 2, fabric.Rule{Action: fabric.Reorder, Delay: 1500 * simtime.Nanosecond, Nth: 1}, [4]bool{true, true, true, true}},
		{"badfcs 12th packet psn 0xffffff", 2, fabric.Rule{Action: fabric.BadFCS, Nth: 12}, [4]bool{1: true}},
	} {
		rules, err := fabric.ParseRules(c.text)
		require.NoError(t, err)
		require.Len(t, rules, c.rules, c.text)
		r := rules[0]
		for i, f := range [][]byte{ack, tagged, first, make([]byte, 100)} {
			require.Equal(t, c.match[i], r.Match(f), "%s: frame %d (%d bytes)", c.text, i, len(f))
		}
		require.Equal(t, c.text, r.Name)
		r.Match, r.Name = nil, ""
		require.Equal(t, c.want, r, c.text)
	}
}

func TestRuleTextThatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, message string }{
		{"", `column 1: at the end: want an action: drop,`},
		{"explode RC_SEND_ONLY", `column 1: at "explode": want an action`},
		{"drop the 3rd", `column 13: at the end: want frames to act on`},
		{"drop the 3rd RC_READ_RESPONSE_MIDDLE", `column 14: at "RC_READ_RESPONSE_MIDDLE": want an opcode (did you mean RC_RDMA_READ_RESPONSE_MIDDLE?)`},
		{"drop RC_SEND", `did you mean RC_SEND_`},
		{"drop XRC_*", `column 6: at "XRC_*": want an opcode`},
		{"drop 3 RC_SEND_ONLY", `column 6: at "3": want an opcode`},
		{"drop 101% frame", `column 6: at "101%": want 0% to 100%`},
		{"drop NaN% frame", `want 0% to 100%`},
		{"drop 0th frame", `at "0th"`},
		{"drop 5th to 4th frame", `column 13: at "4th": want the last frame, an ordinal not below the first`},
		{"delay RC_ACK", `column 7: at "RC_ACK": want a delay such as 10us (units`},
		{"delay 0us frame", `column 7: at "0us": want a delay above 0`},
		{"delay 10 frame", `column 7: at "10": want a delay such as 10us`},
		{"delay -1us frame", `want a delay`},
		{"delay 10us jitter frame", `column 19: at "frame": want a jitter`},
		{"reorder RC_ACK", `want the number of frames that pass`},
		{"reorder 0 frame", `column 9: at "0": want 1 to 65535`},
		{"dup 2 RC_SEND_ONLY", `column 7: at "RC_SEND_ONLY": want "times"`},
		{"drop frame qp 5", `column 12: at "qp": want packet or an opcode instead of frame, to choose by qp`},
		{"drop packet qp 0x1000000", `at "0x1000000": want the destination QP number, 0 to 0xffffff`},
		{"drop packet byte 3", `column 13: at "byte": want qp N, psn N, a>b or b>a`},
		{"corrupt packet byte x", `at "x": want the byte of the frame`},
		{"corrupt packet byte 3 bit 8", `at "8": want the bit of the byte, 0 to 7`},
		{"drop packet packet", `column 13: at "packet": want qp N`},
	} {
		_, err := fabric.ParseRules(c.text)
		var re *fabric.RuleError
		require.ErrorAs(t, err, &re, c.text)
		require.ErrorContains(t, err, c.message)
	}
	for s, want := range map[string]float64{"1%": 0.01, "0.25": 0.25, " 100% ": 1} {
		v, err := fabric.ParseProbability(s)
		require.NoError(t, err)
		require.InDelta(t, want, v, 1e-12)
	}
	for _, s := range []string{"", "x", "101%", "-1%", "2", "NaN"} {
		_, err := fabric.ParseProbability(s)
		require.ErrorContains(t, err, "want 0% to 100%")
	}
}

// Any text is a rule or an error that names a column inside it; the rule matches any bytes without a panic.
func FuzzParseRules(f *testing.F) {
	f.Add("drop 3rd RC_SEND_ONLY of qp 5", []byte{0})
	f.Add("\xb8 drop", []byte{0})
	f.Add("corrupt 1% packet byte 3 bit 2", make([]byte, 100))
	f.Add("reorder 3 every 2nd frame a>b", append(make([]byte, 12), 0x81, 0, 0, 0, 8, 0, 0x4f))
	f.Fuzz(func(t *testing.T, text string, frame []byte) {
		rules, err := fabric.ParseRules(text)
		if err != nil {
			var re *fabric.RuleError
			require.ErrorAs(t, err, &re)
			require.GreaterOrEqual(t, re.Column, 1)
			require.LessOrEqual(t, re.Column, len(text)+1)
			return
		}
		for _, r := range rules {
			r.Match(frame)
		}
		_, err = fabric.NewLink(fabric.Config{Latency: 1, Rules: rules})
		require.NoError(t, err)
	})
}
