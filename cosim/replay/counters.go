// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
)

// Counters are the counters of the receive front end.
type Counters struct {
	Frames   uint64                  // rx_frames
	Bytes    uint64                  // rx_bytes
	Accepted uint64                  // rx_roce_packets
	CE       uint64                  // rx_ecn_ce
	FECN     uint64                  // rx_fecn
	BECN     uint64                  // rx_becn
	Drop     [roce.NumReasons]uint64 // rx_drop; element 0 counts accepted frames
}

// LoadCounters reads the registers.
func LoadCounters(csr *pcie.Region) Counters {
	c := Counters{
		Frames:   csr.Load64(regs.RxFramesOffset),
		Bytes:    csr.Load64(regs.RxBytesOffset),
		Accepted: csr.Load64(regs.RxRoCEPacketsOffset),
		CE:       csr.Load64(regs.RxECNCEOffset),
		FECN:     csr.Load64(regs.RxFECNOffset),
		BECN:     csr.Load64(regs.RxBECNOffset),
	}
	for i := range c.Drop {
		c.Drop[i] = csr.Load64(regs.RxDropOffset + uint64(i)*regs.RxDropStride)
	}
	return c
}

// Add counts one frame with its verdict.
func (c *Counters) Add(v *roce.Verdict) {
	c.Frames++
	c.Bytes += uint64(v.FrameLen)
	if int(v.Reason) < len(c.Drop) {
		c.Drop[v.Reason]++
	}
	if v.Reason != roce.ReasonNone {
		return
	}
	c.Accepted++
	if v.TOS&3 == 3 {
		c.CE++
	}
	if v.FECN {
		c.FECN++
	}
	if v.BECN {
		c.BECN++
	}
}

// Since gives what was counted after before was taken.
func (c *Counters) Since(before *Counters) Counters {
	d := Counters{Frames: c.Frames - before.Frames, Bytes: c.Bytes - before.Bytes, Accepted: c.Accepted - before.Accepted,
		CE: c.CE - before.CE, FECN: c.FECN - before.FECN, BECN: c.BECN - before.BECN}
	for i := range d.Drop {
		d.Drop[i] = c.Drop[i] - before.Drop[i]
	}
	return d
}

// Counter is one counter with the name of its register.
type Counter struct {
	Name  string
	Value uint64
}

// List gives the counters in order of registers.
func (c *Counters) List() []Counter {
	l := []Counter{{"rx_frames", c.Frames}, {"rx_bytes", c.Bytes}, {"rx_roce_packets", c.Accepted}, {"rx_ecn_ce", c.CE},
		{"rx_fecn", c.FECN}, {"rx_becn", c.BECN}}
	for i, n := range c.Drop {
		l = append(l, Counter{"rx_drop[" + roce.Reason(i).String() + "]", n})
	}
	return l
}

// Last is what the last_* registers hold: a verdict of which only some fields are kept, undefined ones zero. seq
// counts captures modulo 256.
func Last(csr *pcie.Region) (v roce.Verdict, seq uint8) {
	info := regs.LastInfoReg(csr.Load64(regs.LastInfoOffset))
	bth := regs.LastBTHReg(csr.Load64(regs.LastBTHOffset))
	v = roce.Verdict{
		Reason: roce.Reason(info.Reason()), Opcode: roce.Opcode(info.Opcode()), FrameLen: info.FrameLen(), EtherType: info.Ethertype(),
		VLANTags: info.VLANTags(), IPv6: info.IPv6(), ICRCOK: info.ICRCOk(),
		DestQP: bth.DestQP(), BTHFlags: bth.Flags(), PSN: bth.PSN(), BECN: bth.BECN(), FECN: bth.FECN(),
	}
	for i := range uint64(2) {
		binary.LittleEndian.PutUint64(v.SIP[8*i:], csr.Load64(regs.LastSIPOffset+8*i))
		binary.LittleEndian.PutUint64(v.DIP[8*i:], csr.Load64(regs.LastDIPOffset+8*i))
	}
	return v.Defined(), info.Seq()
}

// Kept gives the part of a verdict that the last_* registers keep.
func Kept(v roce.Verdict) roce.Verdict {
	return roce.Verdict{Reason: v.Reason, Opcode: v.Opcode, FrameLen: v.FrameLen, EtherType: v.EtherType, VLANTags: v.VLANTags,
		IPv6: v.IPv6, ICRCOK: v.ICRCOK, DestQP: v.DestQP, BTHFlags: v.BTHFlags, PSN: v.PSN, BECN: v.BECN, FECN: v.FECN,
		SIP: v.SIP, DIP: v.DIP}.Defined()
}
