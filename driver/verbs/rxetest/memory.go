// SPDX-License-Identifier: Apache-2.0

package rxetest

import (
	"encoding/binary"
	"strings"

	"github.com/openrnic/openrnic/driver/roce"
)

// ClientBuffer is the client's memory at the start.
func ClientBuffer() []byte {
	b := make([]byte, BufSize)
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
	return b
}

// ServerBuffer is the server's memory at the start.
func ServerBuffer() []byte {
	b := make([]byte, BufSize)
	for i := range b {
		b[i] = byte(i*13 + 5)
	}
	binary.LittleEndian.PutUint64(b, 0x0102030405060708)
	return b
}

// Memory computes from operations and completions what both buffers must hold at the end: nothing of it comes from
// the packets. done says whether an operation was executed.
func (c *Conversation) Memory(done func(id int) bool) (client, server []byte) {
	client, server = ClientBuffer(), ServerBuffer()
	if c.Server.Script {
		for i := range server {
			server[i] = byte(i)
		}
	}
	for id, o := range c.Ops {
		if !done(id) {
			continue
		}
		local := client[Local(id):][:o.Len]
		switch o.Name {
		case "w", "wi":
			copy(server[Target:], local)
		case "wmw":
			copy(server[MWOffset:], local)
		case "s", "si", "ss", "inv":
			if c.Service != roce.ServiceUD {
				copy(server[RecvAt:], local)
			}
		case "r":
			at := Target
			if c.Server.Script { // it answers every READ from its first byte on
				at = 0
			}
			copy(local, server[at:])
		case "fa", "cas":
			old := binary.LittleEndian.Uint64(server)
			if c.Server.Script {
				old = 0x1122334455667788
			}
			binary.LittleEndian.PutUint64(local, old)
			if o.Name == "fa" {
				binary.LittleEndian.PutUint64(server, old+o.V1)
			} else if old == o.V1 {
				binary.LittleEndian.PutUint64(server, o.V2)
			}
		}
	}
	return client, server
}

// Fits tells that the datagram with the number fits the server's receives, GRH included.
func (c *Conversation) Fits(i int) bool { return c.Packets[i].PayloadLen+40 <= c.Server.RecvLen }

// Succeeded tells the operations that completed at the client with success.
func (c *Conversation) Succeeded(id int) bool {
	for _, wc := range c.Client.WCs {
		if wc.ID == uint64(id) {
			return wc.Status == "success"
		}
	}
	return false
}

// Request is one request packet that the client's operations make.
type Request struct {
	Op     int // work request ID
	Opcode roce.Opcode
	PSN    uint32
	PSNs   int // that it takes: 1, for a READ as many as there are responses
	Off    int // of its payload in the message
	Len    int // of its payload; for a READ of the message
	Last   bool
}

// Requests gives the packets that the operations are made of, each once. As Memory, nothing of it comes from the
// recorded packets.
func (c *Conversation) Requests() (l []Request) {
	base := roce.Opcode(0)
	switch c.Service {
	case roce.ServiceUC:
		base = roce.UCSendFirst
	case roce.ServiceUD:
		base = roce.UDSendOnly - roce.RCSendOnly
	}
	psn := c.Client.PSN
	mtu := c.Client.MTU
	add := func(r Request) {
		r.PSN = psn
		psn = (psn + uint32(r.PSNs)) & 0xffffff
		l = append(l, r)
	}
	for id, o := range c.Ops {
		n := max(1, (o.Len+mtu-1)/mtu)
		switch o.Name[0] {
		case 'r':
			add(Request{Op: id, Opcode: roce.RCReadRequest, PSNs: n, Len: o.Len, Last: true})
			continue
		case 'f':
			add(Request{Op: id, Opcode: roce.RCFetchAdd, PSNs: 1, Last: true})
			continue
		case 'c':
			add(Request{Op: id, Opcode: roce.RCCompareSwap, PSNs: 1, Last: true})
			continue
		}
		first := base + roce.RCSendFirst
		if o.Name[0] == 'w' {
			first = base + roce.RCWriteFirst
		}
		for i := range n {
			r := Request{Op: id, PSNs: 1, Off: i * mtu, Len: min(mtu, o.Len-i*mtu), Last: i == n-1}
			switch {
			case n == 1:
				r.Opcode = first + 4
			case i == 0:
				r.Opcode = first
			case r.Last:
				r.Opcode = first + 2
			default:
				r.Opcode = first + 1
			}
			if r.Last {
				switch {
				case o.Name == "wi" || o.Name == "si":
					r.Opcode++
				case strings.HasSuffix(o.Name, "inv") && n == 1:
					r.Opcode = roce.RCSendOnlyInvalidate
				case strings.HasSuffix(o.Name, "inv"):
					r.Opcode = roce.RCSendLastInvalidate
				}
			}
			add(r)
		}
	}
	return l
}
