// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
)

// RuleGrammar is the text form of a fault, for help texts.
const RuleGrammar = `ACTION [WHICH] FRAMES [of qp N] [psn N] [a>b | b>a] [byte N [bit M]]
  ACTION  drop | corrupt | badfcs | dup [N times] | delay TIME [jitter TIME] | reorder (N | TIME)
  WHICH   every (the default) | every 10th | 3rd | first | 3rd to 7th | 1%
  FRAMES  an opcode such as RC_SEND_ONLY | a pattern such as RC_RDMA_READ_* | packet (RoCEv2) | frame (all)
  TIME    10us, 500ns, 1.5ms`

// RuleError says what is wrong with the text of a rule, where, and what would be right.
type RuleError struct {
	Rule   string
	Column int // of the word at fault, from 1
	Word   string
	Want   string
}

// Error gives one line.
func (e *RuleError) Error() string {
	word := strconv.Quote(e.Word)
	if e.Word == "" {
		word = "the end"
	}
	return fmt.Sprintf("fault rule %q: column %d: at %s: want %s", e.Rule, e.Column, word, e.Want)
}

// ParseRules makes rules of one line of text, one for each direction that it names; each direction counts its frames
// by itself. See [RuleGrammar]. Words such as "the", "of", "on" and "qp" read well but may be in any case.
//
//	drop 3rd RC_RDMA_WRITE_MIDDLE of qp 0x101
//	drop 1% packet a>b
//	delay 10us every RC_ACKNOWLEDGE
//	dup 2nd RC_SEND_ONLY
//	corrupt first RC_SEND_* byte 60
//	reorder 3 2% frame
func ParseRules(text string) ([]Rule, error) {
	p := &ruleParser{text: text}
	p.split()
	r, err := p.rule()
	if err != nil {
		return nil, err
	}
	r.Name = strings.Join(strings.Fields(text), " ")
	var rules []Rule
	for _, d := range p.dirs {
		r.Dir = d
		rules = append(rules, r)
	}
	return rules, nil
}

// Loss makes the rules that drop frames of both directions with a probability.
func Loss(prob float64) []Rule {
	return []Rule{{Name: "loss", Dir: AtoB, Prob: prob, Action: Drop}, {Name: "loss", Dir: BtoA, Prob: prob, Action: Drop}}
}

type word struct {
	text       string // lower case
	start, end int    // in the rule
}

type ruleParser struct {
	text  string
	words []word
	pos   int
	dirs  []Dir
}

func (p *ruleParser) split() {
	start := -1
	for i := 0; i <= len(p.text); i++ {
		if i < len(p.text) && !strings.ContainsRune(" \t\n,", rune(p.text[i])) {
			if start < 0 {
				start = i
			}
		} else if start >= 0 {
			p.words = append(p.words, word{strings.ToLower(p.text[start:i]), start, i})
			start = -1
		}
	}
}

// peek is the next word that means something, or "" at the end.
func (p *ruleParser) peek() string {
	for p.pos < len(p.words) {
		switch w := p.words[p.pos].text; w {
		case "the", "of", "on", "from", "frames:", "at":
			p.pos++
		default:
			return w
		}
	}
	return ""
}

// take takes the next word if it is one of those given.
func (p *ruleParser) take(words ...string) bool {
	w := p.peek()
	for _, x := range words {
		if w == x && w != "" {
			p.pos++
			return true
		}
	}
	return false
}

// wrong is an error at the next word.
func (p *ruleParser) wrong(format string, a ...any) error {
	e := &RuleError{Rule: p.text, Column: len(p.text) + 1, Want: fmt.Sprintf(format, a...)}
	if p.peek() != "" {
		w := p.words[p.pos]
		e.Column, e.Word = w.start+1, p.text[w.start:w.end]
	}
	return e
}

func (p *ruleParser) rule() (r Rule, err error) {
	if r, err = p.action(); err != nil {
		return r, err
	}
	if err = p.which(&r); err != nil {
		return r, err
	}
	m, err := p.frames()
	if err != nil {
		return r, err
	}
	if err = p.clauses(&r, &m); err != nil {
		return r, err
	}
	r.Match = m.match
	return r, nil
}

func (p *ruleParser) action() (r Rule, err error) {
	switch {
	case p.take("drop", "lose"):
		r.Action = Drop
	case p.take("corrupt", "flip"):
		r.Action, r.Bit = Corrupt, -1
	case p.take("badfcs"):
		r.Action = BadFCS
	case p.take("dup", "duplicate"):
		r.Action = Duplicate
		// "dup 2 times RC_X", but "dup 2nd RC_X" and "dup 2% packet" count frames
		if n, err := strconv.ParseUint(p.peek(), 10, 8); err == nil {
			if n == 0 {
				return r, p.wrong("1 to 255 times")
			}
			p.pos++
			if !p.take("times", "time", "x") {
				return r, p.wrong(`"times" after a number of copies (or an ordinal such as "2nd" to choose a frame)`)
			}
			r.Copies = int(n)
		}
	case p.take("delay"):
		r.Action = Delay
		if r.Delay, err = p.time("a delay such as 10us"); err != nil {
			return r, err
		}
		if p.take("jitter", "+") {
			if r.Jitter, err = p.time("a jitter such as 2us"); err != nil {
				return r, err
			}
		}
		if r.Delay+r.Jitter == 0 {
			p.pos--
			return r, p.wrong("a delay above 0")
		}
	case p.take("reorder", "hold"):
		r.Action = Reorder
		if n, err := strconv.ParseUint(p.peek(), 10, 16); err == nil {
			if n == 0 {
				return r, p.wrong("1 to 65535 frames that pass")
			}
			p.pos++
			r.Frames = int(n)
		} else if r.Delay, err = p.time(`the number of frames that pass, such as "reorder 3", or a time, such as "reorder 20us"`); err != nil {
			return r, err
		} else if r.Delay == 0 {
			p.pos--
			return r, p.wrong("a time above 0")
		}
	default:
		return r, p.wrong("an action: drop, corrupt, badfcs, dup, delay TIME or reorder N")
	}
	return r, nil
}

// time takes a span such as 1.5us.
func (p *ruleParser) time(want string) (simtime.Time, error) {
	w := p.peek()
	for _, u := range []struct {
		name string
		unit simtime.Time
	}{{"ns", simtime.Nanosecond}, {"us", simtime.Microsecond}, {"ms", simtime.Millisecond}, {"ps", simtime.Picosecond}, {"s", simtime.Second}} {
		num, ok := strings.CutSuffix(w, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(num, 64)
		if err != nil || v < 0 || v*float64(u.unit) > 100*float64(simtime.Second) {
			break
		}
		p.pos++
		return simtime.Time(v * float64(u.unit)), nil
	}
	return 0, p.wrong("%s (units: ns, us, ms, s; at most 100s)", want)
}

func (p *ruleParser) which(r *Rule) error {
	if p.take("every", "each", "all", "any") {
		r.Every = 1
		if n, ok := ordinal(p.peek()); ok {
			p.pos++
			r.Every = n
		}
		return nil
	}
	if n, ok := ordinal(p.peek()); ok {
		p.pos++
		r.Nth = n
		if p.take("to", "-") {
			last, ok := ordinal(p.peek())
			if !ok || last < n {
				return p.wrong("the last frame, an ordinal not below the first")
			}
			p.pos++
			r.Last = last
		}
		return nil
	}
	if num, ok := strings.CutSuffix(p.peek(), "%"); ok {
		v, err := strconv.ParseFloat(num, 64)
		if err != nil || !(v >= 0 && v <= 100) {
			return p.wrong("0%% to 100%%")
		}
		p.pos++
		r.Prob = v / 100
		return nil
	}
	r.Every = 1
	return nil
}

// ordinal understands 1st, 2nd, 3rd, 4th, first.
func ordinal(w string) (uint64, bool) {
	if w == "first" {
		return 1, true
	}
	if len(w) < 3 {
		return 0, false
	}
	switch w[len(w)-2:] {
	case "st", "nd", "rd", "th":
		n, err := strconv.ParseUint(w[:len(w)-2], 10, 63)
		return n, err == nil && n > 0
	}
	return 0, false
}

// matcher chooses frames by their BTH.
type matcher struct {
	roce    bool // RoCEv2 packets only
	opcodes map[roce.Opcode]bool
	qp, psn int64 // below 0: any
	minLen  int
}

func (m *matcher) match(frame []byte) bool {
	if len(frame) < m.minLen {
		return false
	}
	if !m.roce {
		return true
	}
	bth := findBTH(frame)
	return bth != nil && (m.opcodes == nil || m.opcodes[roce.Opcode(bth[0])]) &&
		(m.qp < 0 || m.qp == be24(bth[5:])) && (m.psn < 0 || m.psn == be24(bth[9:]))
}

func be24(b []byte) int64 { return int64(b[0])<<16 | int64(b[1])<<8 | int64(b[2]) }

// findBTH gives the frame from its BTH on, or nil if it is no RoCEv2 packet. It takes addresses and lengths as they are:
// a fault needs no verdict.
func findBTH(b []byte) []byte {
	cut := func(n int) bool {
		if len(b) < n {
			return false
		}
		b = b[n:]
		return true
	}
	if !cut(12) || len(b) < 2 {
		return nil
	}
	for b[0] == 0x81 && b[1] == 0x00 || b[0] == 0x88 && b[1] == 0xa8 { // 802.1Q, 802.1ad
		if !cut(4) || len(b) < 2 {
			return nil
		}
	}
	typ := uint(b[0])<<8 | uint(b[1])
	cut(2)
	switch {
	case typ == 0x0800 && len(b) >= roce.IPv4Len && b[9] == 17:
		if !cut(int(b[0]&15) * 4) {
			return nil
		}
	case typ == 0x86dd && len(b) >= roce.IPv6Len && b[6] == 17:
		cut(roce.IPv6Len)
	default:
		return nil
	}
	const port = 4791
	if len(b) < roce.UDPLen+roce.BTHLen || uint(b[2])<<8|uint(b[3]) != port {
		return nil
	}
	return b[roce.UDPLen:]
}

func (p *ruleParser) frames() (matcher, error) {
	m := matcher{roce: true, qp: -1, psn: -1}
	w := p.peek()
	switch {
	case p.take("frame", "frames"):
		m.roce = false
		return m, nil
	case p.take("packet", "packets"):
		return m, nil
	case w == "":
		return m, p.wrong("frames to act on: an opcode such as RC_SEND_ONLY, packet or frame")
	case w == "rc_ack": // what everybody calls it
		w = "rc_acknowledge"
	}
	m.opcodes = map[roce.Opcode]bool{}
	prefix, pattern := strings.CutSuffix(w, "*")
	best, score := "", 0
	for _, op := range roce.Opcodes() {
		name := strings.ToLower(op.String())
		if name == w || pattern && strings.HasPrefix(name, prefix) {
			m.opcodes[op] = true
		}
		if s := likeness(name, w); s > score {
			best, score = op.String(), s
		}
	}
	if len(m.opcodes) == 0 {
		return m, p.wrong("an opcode (did you mean %s?), packet or frame", best)
	}
	p.pos++
	return m, nil
}

// likeness of two names: pairs of letters that both have.
func likeness(a, b string) (n int) {
	for i := 0; i+2 <= len(b); i++ {
		if strings.Contains(a, b[i:i+2]) {
			n += 2
		}
	}
	return max(1, 100+n-abs(len(a)-len(b)))
}

func abs(n int) int { return max(n, -n) }

func (p *ruleParser) clauses(r *Rule, m *matcher) error {
	p.dirs = []Dir{AtoB, BtoA}
	for p.peek() != "" {
		switch {
		case p.take("qp", "psn"):
			field := p.words[p.pos-1].text
			if !m.roce {
				p.pos--
				return p.wrong(`packet or an opcode instead of frame, to choose by %s`, field)
			}
			n, err := strconv.ParseUint(p.peek(), 0, 24)
			if err != nil {
				return p.wrong("the %s, 0 to 0xffffff", map[string]string{"qp": "destination QP number", "psn": "packet sequence number"}[field])
			}
			p.pos++
			if field == "qp" {
				m.qp = int64(n)
			} else {
				m.psn = int64(n)
			}
		case p.take("a>b"):
			p.dirs = []Dir{AtoB}
		case p.take("b>a"):
			p.dirs = []Dir{BtoA}
		case r.Action == Corrupt && p.take("byte"):
			n, err := strconv.ParseUint(p.peek(), 0, 14)
			if err != nil {
				return p.wrong("the byte of the frame, 0 (first of the destination MAC) to 16383")
			}
			p.pos++
			r.Byte, m.minLen = int(n)+1, int(n)+1
			if p.take("bit") {
				b, err := strconv.ParseUint(p.peek(), 0, 3)
				if err != nil {
					return p.wrong("the bit of the byte, 0 to 7")
				}
				p.pos++
				r.Bit = int(n)*8 + int(b)
			}
		default:
			want := "qp N, psn N, a>b or b>a"
			if r.Action == Corrupt {
				want += ", byte N"
			}
			return p.wrong("%s", want)
		}
	}
	return nil
}

// ParseProbability understands 1%, 0.5% and 0.01.
func ParseProbability(s string) (float64, error) {
	num, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(num, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("probability %q: want 0%% to 100%%, or 0 to 1", s)
	}
	return v, nil
}
