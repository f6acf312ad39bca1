// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// Config gives a port its identity.
type Config struct {
	MAC  net.HardwareAddr // 6 bytes
	Addr netip.Addr       // IP address of the port: its GID
	// NoPush makes work requests be read from memory always; otherwise one that is posted alone goes to the device together
	// with its doorbell, which saves the read.
	NoPush bool
	// PKeys is the P_Key table: partitions that QPs may be put into, by their index. Bit 15: full member. nil: the default
	// partition, 0xffff.
	PKeys []uint16
	// MaxMR is the number of MRs and memory windows that can exist at once, rounded up to a power of two; 0: 65536. Their contexts
	// live in host memory, 64 bytes each; the device caches those in use.
	MaxMR int
	// MaxQP is the number of QPs that can exist at once, rounded up to a power of two less FirstQPN; 0: 4094. Their contexts live in
	// host memory, 2 KiB each; the device keeps those in use.
	MaxQP int
	// MaxCQ is the number of CQs that can exist at once, rounded up to a power of two; 0: 4096. Their contexts live in host memory,
	// 64 bytes each; the device caches those in use.
	MaxCQ int
	// MaxSRQ is the number of SRQs that can exist at once, rounded up to a power of two; 0: 1024. Their contexts live in host memory,
	// 64 bytes each; the device caches those in use.
	MaxSRQ int
}

// DeviceAttr tells what a device offers. Corresponds to struct ibv_device_attr.
type DeviceAttr struct {
	VersionMajor int
	VersionMinor int
	MaxQP        int    // QPs that can exist at once
	MaxCQ        int    // CQs that can exist at once
	MaxMR        int    // MRs
	MaxEQ        int    // event queues: one for asynchronous events, one for CQs without Channel, one per Channel
	MaxVectors   int    // interrupt vectors
	MaxAH        int    // address handles
	MaxSRQ       int    // SRQs that can exist at once
	FirstQPN     uint32 // QPNs run from here to FirstQPN+MaxQP-1
	MaxSGE       int    // SGEs of a send work request
	MaxQPWR      int    // slots of the largest send queue
	MaxCQE       int    // slots of the largest CQ
	MaxInflight  int    // messages a QP has on the wire at once; more wait in the send queue
	MaxMsgSize   uint64 // bytes of a message
	DataWidth    int    // datapath width of the RTL in bits
	// MaxQPInitRdAtom is the number of READs and atomics that a QP may have outstanding as requester.
	MaxQPInitRdAtom int
	// MaxQPRdAtom is the number of READs and atomics that a QP may have open as responder.
	MaxQPRdAtom int
	// MaxPush is the number of bytes of a WQE that goes to the device with its doorbell; 0: none.
	MaxPush  int
	MaxFrame int // longest Ethernet frame in bytes, without FCS
	MaxPKeys int // entries of the P_Key table
}

// Device is an open RNIC.
type Device struct {
	p    pcie.Device
	csr  *pcie.Region
	db   *pcie.Region
	attr DeviceAttr
	cfg  Config

	cmd cmdQueue
	// contexts is host memory that belongs to the device until its reset.
	contexts []*pcie.DMA

	// pages guards the push windows of the doorbell pages; a QP uses the page that its QPN names.
	pages [regs.DoorbellPages]sync.Mutex

	mu     sync.Mutex
	closed bool
	pds    map[uint32]*PD
	cqs    map[uint32]*CQ
	nextPD uint32
	qpn    idAllocator
	cqn    idAllocator
	mrn    idAllocator
	eqn    idAllocator // of channels, from EQ 1 on
	ahn    idAllocator
	srqn   idAllocator
	// variants are the low bytes of the keys last made, by MR index.
	variants []uint8

	vectors  []*irqVector
	async    *eventQueue
	channel  *Channel          // of CQs without one
	channels map[*Channel]bool // guarded by mu

	// cqByN finds the CQ of an event without a lock: index CQN.
	cqByN []atomic.Pointer[CQ]
	// qps finds the QP of a CQE without a lock: index QPN - FirstQPN.
	qps []atomic.Pointer[QP]
}

// NewDevice resets the function behind p, checks that driver and RTL agree on the register map, and
// starts it with the given port identity. Close the Device before p.
func NewDevice(p pcie.Device, cfg Config) (*Device, error) {
	const verb = "open_device"
	if len(cfg.MAC) != 6 {
		return nil, &Error{Verb: verb, Attr: "MAC", Got: cfg.MAC, Limit: "6 bytes", Err: ErrInvalid}
	}
	if !cfg.Addr.IsValid() {
		return nil, &Error{Verb: verb, Attr: "Addr", Err: ErrInvalid, Hint: "give the port an IPv4 or IPv6 address"}
	}
	if len(cfg.PKeys) == 0 {
		cfg.PKeys = []uint16{defaultPKey}
	}
	for _, k := range cfg.PKeys {
		if k&^pkeyFull == 0 {
			return nil, &Error{Verb: verb, Attr: "PKeys", Got: fmt.Sprintf("0x%04x", k), Err: ErrInvalid,
				Hint: "a partition's number is not 0 (IBTA 10.9.1)"}
		}
	}
	cfg.PKeys = slices.Clone(cfg.PKeys)
	d := &Device{p: p, csr: p.Region(pcie.BARRegisters), db: p.Region(pcie.BARDoorbells), cfg: cfg,
		pds: map[uint32]*PD{}, cqs: map[uint32]*CQ{}}
	if magic := d.csr.Load32(regs.IDOffset); magic != idMagic {
		return nil, &Error{Verb: verb, Attr: "id register", Got: fmt.Sprintf("0x%08x", magic),
			Limit: fmt.Sprintf("0x%08x", uint32(idMagic)), Err: ErrDevice,
			Hint: p.Name() + " is not an openrnic function, or it does not answer"}
	}
	if h := d.csr.Load32(regs.LayoutHashOffset); h != regs.LayoutHash {
		return nil, &Error{Verb: verb, Attr: "layout hash of the RTL", Got: fmt.Sprintf("0x%08x", h),
			Limit: fmt.Sprintf("0x%08x, the driver's", uint32(regs.LayoutHash)), Err: ErrDevice,
			Hint: "RTL and driver were built from different hw/regs; rebuild both (make lib)"}
	}
	d.csr.Store32(regs.ResetOffset, resetMagic)
	if err := d.waitReady(verb); err != nil {
		return nil, err
	}
	if err := d.cmd.start(d); err != nil {
		return nil, err
	}
	var mac uint64
	for i, b := range cfg.MAC {
		mac |= uint64(b) << (8 * i)
	}
	d.csr.Store64(regs.MACAddrOffset, mac)
	d.csr.Store32(regs.CtrlOffset, ctrlEnable|ctrlIRQEnable)
	err := d.queryDevice()
	if err == nil {
		err = d.giveContexts(cfg)
	}
	if err != nil {
		return nil, errors.Join(err, d.shutDown(verb))
	}
	d.attr.MaxPKeys = len(cfg.PKeys)
	d.qps = make([]atomic.Pointer[QP], d.attr.MaxQP)
	d.variants = make([]uint8, d.attr.MaxMR)
	d.qpn.limit = uint32(d.attr.MaxQP)
	d.cqn.limit = uint32(d.attr.MaxCQ)
	d.mrn.limit = uint32(d.attr.MaxMR)
	d.ahn.limit = uint32(d.attr.MaxAH)
	d.srqn.limit = uint32(d.attr.MaxSRQ)
	d.cqByN = make([]atomic.Pointer[CQ], d.attr.MaxCQ)
	d.eqn.limit = uint32(d.attr.MaxEQ) - 1
	if err := d.startEvents(d.attr.MaxVectors); err != nil {
		return nil, errors.Join(err, d.shutDown(verb))
	}
	return d, nil
}

// shutDown stops the function by a reset and takes back what it was given.
func (d *Device) shutDown(verb string) error {
	d.csr.Store32(regs.CtrlOffset, 0)
	d.csr.Store32(regs.ResetOffset, resetMagic)
	return errors.Join(d.waitReady(verb), d.stopEvents(), d.freeContexts(), d.cmd.stop(d))
}

const (
	defaultPKey = 0xffff
	pkeyFull    = 1 << 15 // full member of the partition

	idMagic    = 0x434e524f // "ORNC"
	resetMagic = 0x52535421 // "RST!", see register `reset`
	ctrlEnable = 1 << 0
	// interrupts of armed event queues
	ctrlIRQEnable = 1 << 1
	readyPolls    = 100000
	statusLinkUp  = 1 << 2
	// Ethernet with a tag, IPv6, UDP, BTH, the longest extended headers (RETH, ImmDt) and ICRC
	maxHeaders = 18 + 40 + 8 + 12 + 20 + 4
)

// waitReady waits until status.ready; a function that does not come up is an error.
func (d *Device) waitReady(verb string) error {
	for range readyPolls {
		if d.csr.Load32(regs.StatusOffset)&1 != 0 {
			return nil
		}
		if err := d.relax(); err != nil {
			return &Error{Verb: verb, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
		}
	}
	return &Error{Verb: verb, Attr: "status.ready", Got: 0, Limit: 1, Err: ErrDevice,
		Hint: d.p.Name() + " did not come out of reset"}
}

// Attr tells what the device offers. Corresponds to ibv_query_device(3).
func (d *Device) Attr() DeviceAttr { return d.attr }

// PortState is the state of the port. Corresponds to enum ibv_port_state.
type PortState uint8

// Port states.
const (
	PortDown   PortState = 1
	PortActive PortState = 4
)

// String gives the name that ibv_devinfo prints.
func (s PortState) String() string {
	switch s {
	case PortDown:
		return "PORT_DOWN"
	case PortActive:
		return "PORT_ACTIVE"
	}
	return fmt.Sprintf("PortState(%d)", uint8(s))
}

// PortAttr tells how the port is. Corresponds to struct ibv_port_attr.
type PortAttr struct {
	State     PortState
	ActiveMTU MTU // largest path MTU that fits into a frame
	MaxMsg    uint64
}

// QueryPort asks for the state of the port, whose changes are events. Corresponds to ibv_query_port(3).
func (d *Device) QueryPort() (PortAttr, error) {
	const verb = "query_port"
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return PortAttr{}, &Error{Verb: verb, Err: ErrClosed}
	}
	status := d.csr.Load32(regs.StatusOffset)
	if err := d.p.Err(); err != nil {
		return PortAttr{}, &Error{Verb: verb, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	a := PortAttr{State: PortDown, ActiveMTU: MTU4096, MaxMsg: d.attr.MaxMsgSize}
	if status&statusLinkUp != 0 {
		a.State = PortActive
	}
	for a.ActiveMTU > MTU256 && a.ActiveMTU.Bytes()+maxHeaders > d.attr.MaxFrame {
		a.ActiveMTU--
	}
	return a, nil
}

// PCIe gives the function below, for tools that look at registers.
func (d *Device) PCIe() pcie.Device { return d.p }

// GID is the port's address as a GID. Corresponds to ibv_query_gid(3).
func (d *Device) GID() GID { return GIDFromAddr(d.cfg.Addr) }

// PKey gives an entry of the P_Key table. Corresponds to ibv_query_pkey(3).
func (d *Device) PKey(index int) (uint16, error) {
	if index < 0 || index >= len(d.cfg.PKeys) {
		return 0, &Error{Verb: "query_pkey", Attr: "PKeyIndex", Got: index, Limit: fmt.Sprintf("0 to %d", len(d.cfg.PKeys)-1), Err: ErrLimit}
	}
	return d.cfg.PKeys[index], nil
}

// MAC is the port's Ethernet address.
func (d *Device) MAC() net.HardwareAddr { return d.cfg.MAC }

// Name is the URL-like name of the function below.
func (d *Device) Name() string { return d.p.Name() }

// Close stops the function. Objects that are still open are named in the error, which wraps ErrBusy.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return &Error{Verb: "close_device", Err: ErrClosed}
	}
	for _, pd := range d.pds {
		return &Error{Verb: "close_device", Attr: "PD", Got: pd.id, Err: ErrBusy, Hint: "close it first"}
	}
	for _, cq := range d.cqs {
		return &Error{Verb: "close_device", Attr: "CQ", Got: cq.cqn, Err: ErrBusy, Hint: "close it first"}
	}
	for ch := range d.channels {
		if ch != d.channel {
			return &Error{Verb: "close_device", Attr: "channel", Got: ch.eq.eqn, Err: ErrBusy, Hint: "close it first"}
		}
	}
	d.closed = true
	return d.shutDown("close_device")
}

// AllocPD makes a protection domain. Corresponds to ibv_alloc_pd(3).
func (d *Device) AllocPD() (*PD, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &Error{Verb: "alloc_pd", Err: ErrClosed}
	}
	// PDs are numbers that MRs and QPs are compared by; 24 bits never run out before memory does.
	for range maxPD {
		d.nextPD = (d.nextPD + 1) & maxPD
		if _, used := d.pds[d.nextPD]; !used {
			pd := &PD{dev: d, id: d.nextPD, mrs: map[uint32]*MR{}, qps: map[uint32]*QP{}, srqs: map[uint32]*SRQ{}, mws: map[uint32]*MW{}, ahs: map[uint32]*AH{}}
			d.pds[pd.id] = pd
			return pd, nil
		}
	}
	return nil, &Error{Verb: "alloc_pd", Attr: "PDs", Got: maxPD, Limit: maxPD, Err: ErrLimit}
}

const maxPD = 1<<24 - 1

// PD is a protection domain: QPs reach only the MRs of their own PD.
type PD struct {
	dev  *Device
	id   uint32
	mrs  map[uint32]*MR // all guarded by dev.mu
	qps  map[uint32]*QP
	srqs map[uint32]*SRQ
	mws  map[uint32]*MW
	ahs  map[uint32]*AH
}

// Close frees the PD. Corresponds to ibv_dealloc_pd(3).
func (pd *PD) Close() error {
	pd.dev.mu.Lock()
	defer pd.dev.mu.Unlock()
	if pd.dev.pds[pd.id] != pd {
		return &Error{Verb: "dealloc_pd", Attr: "PD", Got: pd.id, Err: ErrClosed}
	}
	for _, qp := range pd.qps {
		return &Error{Verb: "dealloc_pd", Attr: "QP", Got: fmt.Sprintf("0x%x", qp.qpn), Err: ErrBusy, Hint: "close it first"}
	}
	for _, mr := range pd.mrs {
		return &Error{Verb: "dealloc_pd", Attr: "MR with lkey", Got: fmt.Sprintf("0x%x", mr.key), Err: ErrBusy, Hint: "close it first"}
	}
	for _, ah := range pd.ahs {
		return &Error{Verb: "dealloc_pd", Attr: "AH", Got: ah.index, Err: ErrBusy, Hint: "close it first"}
	}
	for _, s := range pd.srqs {
		return &Error{Verb: "dealloc_pd", Attr: "SRQ", Got: s.srqn, Err: ErrBusy, Hint: "close it first"}
	}
	for _, mw := range pd.mws {
		return &Error{Verb: "dealloc_pd", Attr: "MW with rkey", Got: fmt.Sprintf("0x%x", mw.RKey()), Err: ErrBusy, Hint: "close it first"}
	}
	delete(pd.dev.pds, pd.id)
	return nil
}

// idAllocator hands out numbers below limit, the least recently used first, so that a stale number
// does not soon name a new object.
type idAllocator struct {
	limit uint32
	next  uint32
	used  map[uint32]bool
}

func (a *idAllocator) alloc() (uint32, bool) {
	if a.used == nil {
		a.used = map[uint32]bool{}
	}
	if uint32(len(a.used)) >= a.limit {
		return 0, false
	}
	for a.used[a.next] {
		a.next = (a.next + 1) % a.limit
	}
	id := a.next
	a.used[id] = true
	a.next = (a.next + 1) % a.limit
	return id, true
}

func (a *idAllocator) free(id uint32) { delete(a.used, id) }

// relax lets a poller wait a moment and tells whether the device still works.
func (d *Device) relax() error {
	d.p.Relax()
	return d.p.Err()
}
