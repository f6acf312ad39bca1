// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
)

// Seen is a frame at a tap, without its payload.
type Seen struct {
	At      simtime.Time // last bit
	Good    bool         // RoCEv2, and nothing wrong with it
	Opcode  roce.Opcode
	TOS     uint8
	To      Endpoint
	PSN     uint32
	AckReq  bool
	FECN    bool
	BECN    bool
	Payload int
	Len     int
	pause   bool // PFC
	zero    bool // all payload bytes are
}

// CE tells a mark.
func (s *Seen) CE() bool { return s.Good && s.TOS&3 == 3 }

// CNP tells a congestion notification packet, by its opcode.
func (s *Seen) CNP() bool { return s.Good && s.Opcode == roce.CNP }

func look(f fabric.Frame) Seen {
	var p roce.Packet
	good := p.Parse(f.Data, nil) == roce.ReasonNone && !f.Bad
	s := Seen{At: f.At, Good: good, Opcode: p.Opcode, TOS: p.TOS, To: Endpoint{hostOf(p.DMAC), p.DestQP}, PSN: p.PSN, AckReq: p.AckReq, FECN: p.FECN, BECN: p.BECN, Payload: p.PayloadLen,
		Len: len(f.Data), pause: p.EtherType == 0x8808, zero: true}
	for _, b := range p.Payload(f.Data) {
		s.zero = s.zero && b == 0
	}
	return s
}

// Filter chooses packets of a capture.
type Filter struct {
	Interface string // its name
	Port      uint16 // UDP destination; 0: roce.UDPPort
}

// Census counts the packets of a capture.
type Census struct {
	Frames  int                 // at the interface
	Opcodes map[roce.Opcode]int // that match the filter, by opcode
	Bad     int                 // that match, but are not right
}

// Total is the number of packets that match and are right.
func (c *Census) Total() (n int) {
	for _, x := range c.Opcodes {
		n += x
	}
	return n
}

// Add counts another one as well.
func (c *Census) Add(d *Census) {
	c.Frames += d.Frames
	c.Bad += d.Bad
	for op, n := range d.Opcodes {
		c.Opcodes[op] += n
	}
}

// TakeCensus reads a capture from its beginning.
func TakeCensus(rd io.Reader, f Filter) (*Census, error) {
	r, err := capture.NewReader(rd, "capture")
	if err != nil {
		return nil, err
	}
	if f.Port == 0 {
		f.Port = roce.UDPPort
	}
	c := &Census{Opcodes: map[roce.Opcode]int{}}
	var p roce.Packet
	for {
		pkt, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		if r.Interfaces()[pkt.Interface].Name != f.Interface {
			continue
		}
		c.Frames++
		switch reason := p.Parse(pkt.Data, nil); {
		case p.DstPort != f.Port:
		case reason != roce.ReasonNone:
			c.Bad++
		default:
			c.Opcodes[p.Opcode]++
		}
	}
}

// Expected is what a flow puts on the wire if nothing is lost: requests from its beginning, responses from its end, but
// for acknowledges.
func Expected(f *Flow) (requests, responses map[roce.Opcode]int) {
	requests, responses = map[roce.Opcode]int{}, map[roce.Opcode]int{}
	first, middle, last, only := roce.RCWriteFirst, roce.RCWriteMiddle, roce.RCWriteLast, roce.RCWriteOnly
	data := requests
	switch f.Op {
	case "send":
		first, middle, last, only = roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly
	case "read":
		first, middle, last, only = roce.RCReadResponseFirst, roce.RCReadResponseMiddle, roce.RCReadResponseLast, roce.RCReadResponseOnly
		requests[roce.RCReadRequest] = int(f.Count)
		data = responses
	}
	if f.Service == "uc" {
		const toUC = roce.UCWriteFirst - roce.RCWriteFirst
		first, middle, last, only = first+toUC, middle+toUC, last+toUC, only+toUC
	}
	packets := (int(f.Size) + int(f.MTU) - 1) / int(f.MTU)
	if packets == 1 {
		data[only] += int(f.Count)
		return requests, responses
	}
	data[first] += int(f.Count)
	data[last] += int(f.Count)
	if packets > 2 {
		data[middle] += (packets - 2) * int(f.Count)
	}
	return requests, responses
}

// differences of two counts by opcode, in words; empty if there are none.
func differences(want, got map[roce.Opcode]int) string {
	var text []string
	for _, op := range roce.Opcodes() {
		if want[op] != got[op] {
			text = append(text, fmt.Sprintf("%v: %d on the wire, %d posted", op, got[op], want[op]))
		}
	}
	for op, n := range got {
		if !op.Known() {
			text = append(text, fmt.Sprintf("%v: %d on the wire", op, n))
		}
	}
	return strings.Join(text, ", ")
}
