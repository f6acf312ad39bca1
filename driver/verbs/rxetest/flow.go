// SPDX-License-Identifier: Apache-2.0

package rxetest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openrnic/openrnic/driver/roce"
)

// Flow is what one RC or UC QP was asked for, and what it answered, in a capture of any tool. Unlike a [Conversation] it is
// found in the packets alone: nobody says what memory held or what was posted.
type Flow struct {
	Conversation
	Regions []Region // of the server, one per rkey
}

// Region is the memory that requests with one rkey reached.
type Region struct {
	RKey uint32
	VA   uint64
	Len  int
}

// request tells the opcodes that a requester sends.
func request(op roce.Opcode) bool {
	return !op.Has(roce.ExtAETH) && op != roce.RCReadResponseMiddle
}

// Flows finds the flows of the captures without a .txt, in order of names.
func Flows(dir string) ([]*Flow, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if err != nil {
		return nil, fmt.Errorf("rxetest: %w", err)
	}
	texts, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("rxetest: %w", err)
	}
	slices.Sort(files)
	var l []*Flow
	for _, f := range files {
		base := strings.TrimSuffix(f, ".pcap")
		if slices.Contains(texts, base+".txt") {
			continue
		}
		packets, err := readPackets(f)
		if err != nil {
			return nil, fmt.Errorf("rxetest: %w", err)
		}
		l = append(l, flows(filepath.Base(base), packets)...)
	}
	return l, nil
}

func flows(name string, packets []Packet) (l []*Flow) {
	type key struct {
		ip  [16]byte
		qpn uint32
	}
	by := map[key]*Flow{}
	for i := range packets {
		p := packets[i]
		if p.Reason != roce.ReasonNone || p.Opcode.Service() > roce.ServiceUC {
			continue
		}
		if request(p.Opcode) {
			f := by[key{p.DstIP, p.DestQP}]
			if f == nil {
				f = &Flow{}
				f.Name = fmt.Sprintf("%s/%d", name, len(l))
				f.Service = p.Opcode.Service()
				f.addresses(&p, true)
				f.Client.PSN, f.Server.QPN = p.PSN, p.DestQP
				f.Server.MTU, f.Server.Access, f.Server.RNRTimer, f.Server.RdAtomic = 1024, 0xf, 12, 16
				if f.Service == roce.ServiceUC {
					f.Client.QPN = 0x11 // nobody answers it: any number will do
				}
				by[key{p.DstIP, p.DestQP}] = f
				l = append(l, f)
			}
			p.FromClient = true
			f.Packets = append(f.Packets, p)
			f.grow(&p)
			if op := p.Opcode & 0x1f; op == roce.RCSendFirst || op == roce.RCWriteFirst {
				f.Server.MTU = p.PayloadLen
			}
			continue
		}
		for _, f := range l {
			// the answer goes to a QP whose number no request tells: the first one has the PSN of a request
			if f.Client.IP != p.DstIP || f.Server.IP != p.SrcIP {
				continue
			}
			asked := func(q Packet) bool { return q.PSN == p.PSN && (q.AckReq || q.Opcode == roce.RCReadRequest) }
			if f.Client.QPN == 0 && slices.ContainsFunc(f.Packets, asked) {
				f.Client.QPN, f.Server.TrafficClass = p.DestQP, p.TOS
			}
			if f.Client.QPN == p.DestQP {
				f.Packets = append(f.Packets, p)
				if p.Opcode == roce.RCReadResponseFirst {
					f.Server.MTU = p.PayloadLen
				}
				break
			}
		}
	}
	return slices.DeleteFunc(l, func(f *Flow) bool { return f.Client.QPN == 0 })
}

// grow makes the region of the packet's rkey cover what the packet asks for.
func (f *Flow) grow(p *Packet) {
	n := int(p.DMALen)
	switch {
	case p.Opcode.Has(roce.ExtAtomicETH):
		n = 8
	case !p.Opcode.Has(roce.ExtRETH) || n == 0:
		return
	}
	for i := range f.Regions {
		r := &f.Regions[i]
		if r.RKey == p.RKey {
			end := max(r.VA+uint64(r.Len), p.VA+uint64(n))
			r.VA = min(r.VA, p.VA)
			r.Len = int(end - r.VA)
			return
		}
	}
	f.Regions = append(f.Regions, Region{p.RKey, p.VA, n})
}
