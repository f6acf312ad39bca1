// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/openrnic/openrnic/driver/regs"
)

// AH is an address handle: how the work requests of UD QPs reach a peer. Corresponds to struct ibv_ah.
type AH struct {
	pd     *PD
	index  uint32
	closed bool // guarded by dev.mu
}

// CreateAH makes an address handle. Corresponds to ibv_create_ah(3).
func (pd *PD) CreateAH(attr AHAttr) (*AH, error) {
	const verb = "create_ah"
	d := pd.dev
	entry, err := d.ahEntry(&attr)
	if err != nil {
		return nil, err
	}
	entry.PD = pd.id
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pds[pd.id] != pd {
		return nil, &Error{Verb: verb, Attr: "PD", Got: pd.id, Err: ErrClosed}
	}
	index, ok := d.ahn.alloc()
	if !ok {
		return nil, &Error{Verb: verb, Attr: "AHs", Got: d.attr.MaxAH, Limit: d.attr.MaxAH, Err: ErrLimit}
	}
	var body [regs.AHEntrySize]byte
	entry.Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeCreateAH, index, body[:], nil); err != nil {
		d.ahn.free(index)
		return nil, err
	}
	ah := &AH{pd: pd, index: index}
	pd.ahs[index] = ah
	return ah, nil
}

// ahEntry checks attr.
func (d *Device) ahEntry(a *AHAttr) (*regs.AHEntry, error) {
	sgid := d.GID()
	if err := a.check("create_ah", "", sgid); err != nil {
		return nil, err
	}
	e := &regs.AHEntry{IPv6: !sgid.IsIPv4(), SGID: sgid, DGID: a.DGID, TrafficClass: a.TrafficClass, FlowLabel: a.FlowLabel,
		HopLimit: a.hopLimit(), VLAN: a.VLAN != nil, UDPSport: ahSourcePort(a)}
	copy(e.DMAC[:], a.DMAC)
	set(&e.VLANTCI, a.VLAN)
	return e, nil
}

// ahSourcePort gives the UDP source port: from the flow label, or, without one, from the destination, so that equal-cost
// paths are used.
func ahSourcePort(a *AHAttr) uint16 {
	fl := a.FlowLabel
	if fl == 0 {
		h := uint32(2166136261) // FNV-1a
		for _, b := range a.DGID {
			h = (h ^ uint32(b)) * 16777619
		}
		fl = h>>12 | 1
	}
	return udpSourcePort(fl, 0, 0)
}

// Query asks the device. Corresponds to rdma_query_ah.
func (ah *AH) Query() (AHAttr, error) {
	d := ah.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if ah.closed {
		return AHAttr{}, &Error{Verb: "query_ah", Attr: "AH", Got: ah.index, Err: ErrClosed}
	}
	var body [regs.AHEntrySize]byte
	if err := d.cmd.execute(d, "query_ah", regs.CmdOpcodeQueryAH, ah.index, nil, body[:]); err != nil {
		return AHAttr{}, err
	}
	var e regs.AHEntry
	e.Unmarshal(body[:])
	a := AHAttr{DGID: e.DGID, DMAC: net.HardwareAddr(e.DMAC[:]), TrafficClass: e.TrafficClass, HopLimit: e.HopLimit, FlowLabel: e.FlowLabel}
	if e.VLAN {
		a.VLAN = &e.VLANTCI
	}
	return a, nil
}

// Close destroys the address handle. When it returns, no packet is sent to it any more. Corresponds to ibv_destroy_ah(3).
func (ah *AH) Close() error {
	d := ah.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if ah.closed {
		return &Error{Verb: "destroy_ah", Attr: "AH", Got: ah.index, Err: ErrClosed}
	}
	if err := d.cmd.execute(d, "destroy_ah", regs.CmdOpcodeDestroyAH, ah.index, nil, nil); err != nil {
		return err
	}
	ah.closed = true
	delete(ah.pd.ahs, ah.index)
	d.ahn.free(ah.index)
	return nil
}

// GRHBytes is what a UD receive begins with: the GRH. Of IPv6 it is the IP header as it came; of IPv4 the IP header is its
// last 20 bytes and the rest is zero.
const GRHBytes = 40

// AHAttrFromWC tells how to answer a received datagram: to the address that its GRH names as the source, with its traffic class and flow
// label. grh is the beginning of the receive; dmac is the peer's MAC address, or that of the router, which neither the
// completion nor the GRH shows. The QP to answer is wc.SrcQP. Corresponds to ibv_init_ah_from_wc(3).
func AHAttrFromWC(wc *WC, grh []byte, dmac net.HardwareAddr) (AHAttr, error) {
	const verb = "init_ah_from_wc"
	a := AHAttr{DMAC: dmac}
	if !wc.GRH || len(grh) < GRHBytes {
		return a, &Error{Verb: verb, Attr: "GRH", Got: len(grh), Limit: fmt.Sprintf("%d bytes of a completion with GRH", GRHBytes), Err: ErrInvalid}
	}
	switch {
	case grh[0]>>4 == 6:
		head := binary.BigEndian.Uint32(grh)
		a.TrafficClass, a.FlowLabel = uint8(head>>20), head&0xfffff
		a.DGID = GID(grh[8:24])
	case grh[20] == 0x45:
		a.TrafficClass = grh[21]
		a.DGID = GID{10: 0xff, 11: 0xff}
		copy(a.DGID[12:], grh[32:36])
	default:
		return a, &Error{Verb: verb, Attr: "GRH", Got: fmt.Sprintf("% x", grh[:GRHBytes]), Limit: "an IP header", Err: ErrInvalid}
	}
	return a, nil
}

// AHFromWC makes an address handle for the answer to a received datagram, see AHAttrFromWC. Corresponds to
// ibv_create_ah_from_wc(3).
func (pd *PD) AHFromWC(wc *WC, grh []byte, dmac net.HardwareAddr) (*AH, error) {
	a, err := AHAttrFromWC(wc, grh, dmac)
	if err != nil {
		return nil, err
	}
	return pd.CreateAH(a)
}

// DatagramConfig are the attributes of Start.
type DatagramConfig struct {
	QKey    uint32 // that received packets must have; of the GSI QP: 0 means GSIQKey
	PathMTU MTU    // largest message sent; 0: MTU1024
	PSN     uint32 // first PSN sent, 24 bits
	// PKeyIndex names the partition, see QPAttr.
	PKeyIndex int
}

// GSIQKey is the Q_Key of QP1.
const GSIQKey = 0x80010000

// Start takes a UD or raw packet QP from RESET through INIT and RTR to RTS; of the latter cfg is not looked at.
func (qp *QP) Start(cfg DatagramConfig) error {
	if cfg.QKey == 0 && qp.cfg.GSI {
		cfg.QKey = GSIQKey
	}
	if cfg.PathMTU == 0 {
		cfg.PathMTU = MTU1024
	}
	for _, step := range [...]QPAttr{
		{State: Of(StateInit), QKey: &cfg.QKey, PKeyIndex: &cfg.PKeyIndex},
		{State: Of(StateRTR), PathMTU: &cfg.PathMTU},
		{State: Of(StateRTS), SQPSN: &cfg.PSN},
	} {
		if qp.cfg.Type == TypeRawPacket {
			step.QKey, step.PathMTU, step.SQPSN, step.PKeyIndex = nil, nil, nil, nil
		}
		if err := qp.Modify(step); err != nil {
			return err
		}
	}
	return nil
}
