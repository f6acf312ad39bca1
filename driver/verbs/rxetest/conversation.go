// SPDX-License-Identifier: Apache-2.0

// Package rxetest reads the conversations of Linux rdma_rxe in testdata/captures, so that a test can let a NIC take
// the place of one of the two sides. Most were made with vt, a verbs exerciser: its command line, printed into the
// .txt beside the .pcap, says which operations were posted, what both memories held, and how everything completed.
// In `serve` conversations the server, and in `inject` ones the client, is a script that speaks the wire by hand.
package rxetest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
)

// Sizes of vt's memory.
const (
	BufSize  = 1 << 20 // the buffer of either side
	ROSize   = 65536   // a second MR without any remote right
	MWOffset = 65536   // where the server's memory window begins, in its buffer
	MWLen    = 65536   // of the window
	Target   = 4096    // where RDMA operations go, in the server's buffer
	RecvAt   = 131072  // where every receive of the server lies
	QKey     = 0x11111111
)

// Conversation is one recorded conversation between a client, which posts operations, and a server.
type Conversation struct {
	Name    string // of the file without .pcap; of an inject capture: file/case
	Service roce.Service
	Client  Side
	Server  Side
	Ops     []Op // of the client, by work request ID; none if the client is a script
	Packets []Packet
	// Netem says what the network did to packets before they were recorded: "loss", "reorder", "dup" or nothing.
	Netem string
}

// Side is one end of a conversation.
type Side struct {
	Script           bool // not rxe
	QPN, PSN         uint32
	RKey             uint32 // of the buffer
	VA               uint64 // of the buffer
	IP               [16]byte
	MAC              [6]byte
	MTU              int // path MTU, bytes
	Access           uint32
	Recvs, RecvLen   int
	Late             bool // receives were posted only after a while
	RNRTimer         uint8
	Timeout          uint8
	Retry, RNRRetry  uint8
	RdAtomic         uint8
	QPNOffset        uint32 // the client's wrong destination QPN
	TrafficClass     uint8
	FlowLabel        uint32
	WCs              []WC
	State            int    // QP state at the end, client only
	Word0            uint64 // first 8 bytes of the buffer at the end, server only
	HasState, HasEnd bool   // State, Word0 were printed
}

// WC is a completion as vt printed it.
type WC struct {
	ID     uint64
	Status string // of ibv_wc_status_str(3)
	Opcode string // of a receive: RECV or RECV_WRITE_IMM; of an atomic: FADD or CAS
	Old    uint64 // of an atomic: the value before
	Len    uint32
	HasImm bool
	Imm    uint32
}

// Op is one operation of a client.
type Op struct {
	Name   string // w, wi, r, s, si, ss, inv, fa, cas, and forms of them that must fail
	Len    int    // bytes of the message
	V1, V2 uint64 // atomics: compare or add, swap
	Fence  bool
	Last   bool // vt waits for all completions after this one
}

// Local is the offset of the operation's local buffer in the client's memory.
func Local(id int) int { return RecvAt * (1 + id%4) }

// Imm is the immediate data of the operation.
func Imm(id int) uint32 { return 0xabcd0000 | uint32(id+1)&0xffff }

// Packet is one recorded packet.
type Packet struct {
	roce.Packet
	Number     int // in the file, from 1
	Frame      []byte
	FromClient bool
	// Lost: the packet is in the file but never reached its receiver.
	Lost bool
}

// loss says which packet the receiver's firewall took away behind the tap: the nth, from 0, of an opcode (and
// AETH syndrome, if not 0).
type loss struct {
	opcode   roce.Opcode
	syndrome uint8
	nth      int
}

// losses by name of the capture, without its kernel. nft counts the packets of either UC middle opcode together.
var losses = map[string][]loss{
	"loss_write_middle":     {{roce.RCWriteMiddle, 0, 2}},
	"loss_write_first":      {{roce.RCWriteFirst, 0, 0}},
	"loss_write_last":       {{roce.RCWriteLast, 0, 0}},
	"loss_send_middle":      {{roce.RCSendMiddle, 0, 2}},
	"loss_ack":              {{roce.RCAcknowledge, 0, 1}},
	"loss_read_req":         {{roce.RCReadRequest, 0, 0}},
	"loss_read_resp_first":  {{roce.RCReadResponseFirst, 0, 0}},
	"loss_read_resp_middle": {{roce.RCReadResponseMiddle, 0, 3}},
	"loss_read_resp_last":   {{roce.RCReadResponseLast, 0, 0}},
	"loss_atomic_ack":       {{roce.RCAtomicAcknowledge, 0, 1}},
	"loss_atomic_req":       {{roce.RCFetchAdd, 0, 1}},
	"loss_nak":              {{roce.RCWriteMiddle, 0, 0}, {roce.RCAcknowledge, 0x60, 0}},
	"loss_uc_middle":        {{roce.UCSendMiddle, 0, 1}},
	"psn_wrap_loss":         {{roce.RCWriteMiddle, 0, 2}},
}

// Load reads every conversation of a directory that has a .txt, in order of names.
func Load(dir string) ([]*Conversation, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("rxetest: %w", err)
	}
	slices.Sort(files)
	var l []*Conversation
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("rxetest: %w", err)
		}
		base := strings.TrimSuffix(f, ".txt")
		packets, err := readPackets(base + ".pcap")
		if err != nil {
			return nil, fmt.Errorf("rxetest: %w", err)
		}
		name := filepath.Base(base)
		var c []*Conversation
		if strings.HasSuffix(name, "_inject") {
			c, err = inject(name, string(text), packets)
		} else {
			c, err = vt(name, string(text), packets)
		}
		if err != nil {
			return nil, fmt.Errorf("rxetest: %s: %w", f, err)
		}
		l = append(l, c...)
	}
	return l, nil
}

func readPackets(path string) ([]Packet, error) {
	r, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var l []Packet
	for {
		p, err := r.Next()
		if err == io.EOF {
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		q := Packet{Number: p.Number, Frame: slices.Clone(p.Data)}
		q.Parse(q.Frame, nil)
		l = append(l, q)
	}
}

var (
	sectionRE = regexp.MustCompile(`(?m)^== (client|server): (.*)$`)
	localRE   = regexp.MustCompile(`(?m)^local qpn 0x(\w+) psn 0x(\w+) rkey 0x(\w+) va 0x(\w+) \| remote qpn 0x(\w+) psn 0x(\w+) rkey 0x(\w+) va 0x(\w+)`)
	sendWCRE  = regexp.MustCompile(`^wc id (\d+) (.*?)(?: (FADD|CAS) old 0x(\w+))? \+\d+ ms$`)
	recvWCRE  = regexp.MustCompile(`^wc id (\d+) (RECV|RECV_WRITE_IMM) success len (\d+)(?: imm 0x(\w+))?`)
	badWCRE   = regexp.MustCompile(`^wc id (\d+) \S+ (.*)$`)
	stateRE   = regexp.MustCompile(`^qp state (\d+),`)
	word0RE   = regexp.MustCompile(`^server word0 0x(\w+)$`)
)

func hex(s string) uint64 {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		panic(err) // the expressions above let only hexadecimal digits through
	}
	return v
}

// vt makes the conversation of two vt, or of a vt client and the script.
func vt(name, text string, packets []Packet) ([]*Conversation, error) {
	c := &Conversation{Name: name, Packets: packets}
	var sections [][3]string // role, command, output
	at := sectionRE.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections = append(sections, [3]string{text[m[2]:m[3]], text[m[4]:m[5]], text[m[1]:end]})
	}
	if len(sections) != 2 {
		return nil, fmt.Errorf("%d sections, not client and server", len(sections))
	}
	// where the script serves, it runs on the machine that is the client's elsewhere
	if strings.Contains(sections[0][1], "fakepeer.py serve") {
		sections[0], sections[1] = sections[1], sections[0]
	}
	service := ""
	for i, s := range [2]*Side{&c.Client, &c.Server} {
		if strings.Contains(sections[i][1], "fakepeer.py") {
			s.Script = true
			continue
		}
		ops, err := s.command(sections[i][1], &service)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if c.Ops, err = parseOps(ops); err != nil {
				return nil, err
			}
		}
		if err := s.output(sections[i][2], i == 0); err != nil {
			return nil, err
		}
	}
	m := localRE.FindStringSubmatch(sections[0][2])
	if m == nil {
		return nil, fmt.Errorf("the client does not tell its QPN")
	}
	for i, s := range [2]*Side{&c.Client, &c.Server} {
		v := m[1+4*i:]
		s.QPN, s.PSN, s.RKey, s.VA = uint32(hex(v[0])), uint32(hex(v[1])), uint32(hex(v[2])), hex(v[3])
	}
	if c.Server.Script {
		c.Server.MTU = c.Client.MTU
	}
	switch service {
	case "rc":
		c.Service = roce.ServiceRC
	case "uc":
		c.Service = roce.ServiceUC
	case "ud":
		c.Service = roce.ServiceUD
	default:
		return nil, fmt.Errorf("QP type %q", service)
	}
	for _, n := range []string{"loss", "reorder", "dup"} {
		if strings.Contains(name, "_"+n+"_netem") {
			c.Netem = n
		}
	}
	if len(packets) == 0 {
		return nil, fmt.Errorf("no packets")
	}
	c.addresses(&packets[0], true) // the client speaks first
	for i := range packets {
		p := &packets[i]
		p.FromClient = p.SrcIP == c.Client.IP
	}
	return []*Conversation{c}, c.lose()
}

// addresses takes the addresses of both sides from a packet.
func (c *Conversation) addresses(p *Packet, fromClient bool) {
	src, dst := &c.Client, &c.Server
	if !fromClient {
		src, dst = dst, src
	}
	src.IP, src.MAC, dst.IP, dst.MAC = p.SrcIP, p.SMAC, p.DstIP, p.DMAC
}

// lose marks the packets that did not arrive.
func (c *Conversation) lose() error {
	_, kind, _ := strings.Cut(c.Name, "_")
	for _, l := range losses[kind] {
		n := 0
		for i := range c.Packets {
			p := &c.Packets[i]
			if p.Opcode != l.opcode || l.syndrome != 0 && p.Syndrome != l.syndrome {
				continue
			}
			if n == l.nth {
				p.Lost = true
			}
			n++
		}
		if n <= l.nth {
			return fmt.Errorf("the lost %v is not there", l.opcode)
		}
	}
	return nil
}

// command reads the command line of vt and gives its operations.
func (s *Side) command(line string, service *string) ([]string, error) {
	*s = Side{MTU: 1024, Access: 0xf, Recvs: 16, RecvLen: 65536, RNRTimer: 12, Timeout: 14, Retry: 7, RNRRetry: 7, RdAtomic: 16}
	*service = "rc"
	f := strings.Fields(line)
	if len(f) == 0 || filepath.Base(f[0]) != "vt" {
		return nil, fmt.Errorf("command %q is not vt", line)
	}
	f = f[1:]
	for len(f) >= 2 && strings.HasPrefix(f[0], "-") {
		opt, val := f[0], f[1]
		f = f[2:]
		base := 0
		if opt == "-A" {
			base = 16
		}
		n, err := strconv.ParseUint(val, base, 32)
		switch opt {
		case "-c", "-E", "-g", "-P", "-H": // found in packets and output, or not on the wire
			err = nil
		case "-t":
			*service, err = val, nil
		case "-m":
			s.MTU = int(n)
		case "-n":
			s.Recvs = int(n)
		case "-l":
			s.RecvLen = int(n)
		case "-L":
			s.Late = n != 0
		case "-r":
			s.RNRTimer = uint8(n)
		case "-D":
			s.RdAtomic = uint8(n)
		case "-A":
			s.Access = uint32(n)
		case "-T":
			s.Timeout = uint8(n)
		case "-R":
			s.Retry = uint8(n)
		case "-N":
			s.RNRRetry = uint8(n)
		case "-x":
			s.QPNOffset = uint32(n)
		case "-S":
			s.TrafficClass = uint8(n)
		case "-F":
			s.FlowLabel = uint32(n)
		default:
			return nil, fmt.Errorf("vt has no option %s", opt)
		}
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", opt, err)
		}
	}
	return f, nil
}

func parseOps(args []string) (ops []Op, err error) {
	for _, a := range args {
		o := Op{}
		a, join := strings.CutPrefix(a, "+")
		k := 1
		if n, rest, ok := strings.Cut(a, "*"); ok {
			if k, err = strconv.Atoi(n); err != nil {
				return nil, fmt.Errorf("operation %s: %w", a, err)
			}
			a = rest
		}
		a, o.Fence = strings.CutPrefix(a, "^")
		name, val, _ := strings.Cut(a, ":")
		o.Name = name
		v1, v2, two := strings.Cut(val, ",")
		if o.V1, err = strconv.ParseUint(v1, 0, 64); err != nil {
			return nil, fmt.Errorf("operation %s: %w", a, err)
		}
		if two {
			if o.V2, err = strconv.ParseUint(v2, 0, 64); err != nil {
				return nil, fmt.Errorf("operation %s: %w", a, err)
			}
		}
		if o.Len = int(o.V1); o.Atomic() {
			o.Len = 8
		}
		for range k {
			ops = append(ops, o)
		}
		ops[len(ops)-1].Last = !join
	}
	return ops, nil
}

// Atomic tells FETCH_ADD and CMP_SWAP.
func (o *Op) Atomic() bool { return o.Name == "fa" || o.Name == "famis" || o.Name == "cas" }

// output reads what vt printed.
func (s *Side) output(text string, client bool) error {
	for _, line := range strings.Split(text, "\n") {
		if m := stateRE.FindStringSubmatch(line); m != nil {
			s.State, s.HasState = int(m[1][0]-'0'), true
		}
		if m := word0RE.FindStringSubmatch(line); m != nil {
			s.Word0, s.HasEnd = hex(m[1]), true
		}
		if !strings.HasPrefix(line, "wc id ") {
			continue
		}
		var wc WC
		var id string
		switch {
		case client:
			m := sendWCRE.FindStringSubmatch(line)
			if m == nil {
				return fmt.Errorf("completion %q", line)
			}
			id, wc.Status, wc.Opcode = m[1], m[2], m[3]
			if m[4] != "" {
				wc.Old = hex(m[4])
			}
		default:
			if m := recvWCRE.FindStringSubmatch(line); m != nil {
				n, err := strconv.ParseUint(m[3], 10, 32)
				if err != nil {
					return fmt.Errorf("completion %q: %w", line, err)
				}
				id, wc.Opcode, wc.Status, wc.Len = m[1], m[2], "success", uint32(n)
				if m[4] != "" {
					wc.HasImm, wc.Imm = true, uint32(hex(m[4]))
				}
				break
			}
			m := badWCRE.FindStringSubmatch(line)
			if m == nil {
				return fmt.Errorf("completion %q", line)
			}
			if m[1] == "999" { // the window's bind, before everything else
				continue
			}
			id, wc.Status = m[1], m[2]
		}
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return fmt.Errorf("completion %q: %w", line, err)
		}
		wc.ID = n
		s.WCs = append(s.WCs, wc)
	}
	return nil
}

var caseRE = regexp.MustCompile(`(?m)^(\w+) +-> `)

// inject makes one conversation per case of an inject capture: each had a QP of its own.
func inject(name, text string, packets []Packet) ([]*Conversation, error) {
	var l []*Conversation
	clientMAC := packets[0].SMAC
	last := uint32(0)
	for i := range packets {
		p := packets[i]
		p.FromClient = [6]byte(p.Frame[6:12]) == clientMAC
		if qpn := destQP(p.Frame); p.FromClient && qpn != last {
			last = qpn
			c := &Conversation{Service: roce.ServiceRC}
			if _, err := c.Server.command("vt", new(string)); err != nil {
				return nil, err
			}
			c.addresses(&packets[0], true)
			c.Client.Script, c.Client.QPN, c.Client.PSN = true, 0xabcde, 0x500
			c.Server.QPN, c.Server.PSN = qpn, 0x100
			l = append(l, c)
		}
		c := l[len(l)-1]
		c.Packets = append(c.Packets, p)
		if c.Server.VA == 0 && p.FromClient && p.RKey != 0 {
			// what goes to the start of the buffer is atomic, everything else is 4096 further
			if c.Server.VA = p.VA &^ 4095; p.Opcode.Has(roce.ExtRETH) {
				c.Server.VA -= Target
			}
			c.Server.RKey = p.RKey
		}
	}
	cases := caseRE.FindAllStringSubmatch(text, -1)
	if len(cases) != len(l) {
		return nil, fmt.Errorf("%d cases, %d conversations", len(cases), len(l))
	}
	for i, c := range l {
		c.Name = name + "/" + cases[i][1]
		if c.Server.RKey == 0xdeadbeef { // the only key of the case is the script's invention
			c.Server.RKey = 0
		}
	}
	return l, nil
}
