// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// situation is one that a reliable connection gets into. The names are those that other RNICs' test plans use.
type situation struct {
	name   string
	faults []string // rules of cosim/fabric, while the situation lasts
	setup  func(*checklist)
	retry  uint8 // retry_cnt; 0: 7
	noRecv bool  // receives are posted late, not before the SENDs
	change func(*verbs.SendWR)
	reads  uint8        // max_rd_atomic; 0: what the device offers
	access verbs.Access // of the QPs; 0: all
	// fails is how the first work request ends that does not succeed; the others behind it are flushed.
	fails verbs.WCStatus
	// host and counters whose sum tells that it took place
	host    int
	proof   []uint64
	atLeast uint64
}

const (
	clReq, clResp = 0, 1 // hosts
	clSize        = 3000 // bytes of a message, three packets
	clArea        = 16 * clSize
)

func dropCount(reason regs.TransportDrop) uint64 { return regs.TransportDropOffset + 8*uint64(reason) }

var situations = []situation{
	{name: "NormalReq", proof: []uint64{regs.RxReadRequestsOffset}, host: clResp, atLeast: 2},
	{name: "DupReq", faults: []string{"dup every RC_RDMA_WRITE_*", "dup every RC_SEND_*", "dup every RC_RDMA_READ_REQUEST", "dup every RC_FETCH_ADD"},
		host: clResp, proof: []uint64{regs.DuplicateRequestOffset}, atLeast: 10},
	{name: "NoAckReq", change: func(wr *verbs.SendWR) { wr.Flags &^= verbs.SendSignaled }, proof: []uint64{regs.RxSendRequestsOffset}, host: clResp, atLeast: 2},
	{name: "TooManyReadAtomic", reads: 1, proof: []uint64{regs.RxReadRequestsOffset}, host: clResp, atLeast: 2},
	{name: "ReqErr", access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead, fails: verbs.StatusRemoteInvReqErr,
		host: clResp, proof: []uint64{dropCount(regs.TransportDropNakInvReq)}, atLeast: 1},
	{name: "PermCheckFail", change: func(wr *verbs.SendWR) {
		if wr.Opcode == verbs.OpRDMARead {
			wr.RKey ^= 1
		}
	}, fails: verbs.StatusRemoteAccessErr, host: clResp, proof: []uint64{dropCount(regs.TransportDropNakAccess)}, atLeast: 1},
	{name: "DmaReadErr", setup: func(c *checklist) {
		iova, _ := c.near.IOVA()
		c.p.Sim.NIC[clReq].ErrorRange(iova+clSize, iova+clSize+64, true, false)
	}, fails: verbs.StatusLocalQPOpErr, host: clReq, proof: []uint64{regs.AXIReadErrorsOffset}, atLeast: 1},
	{name: "Rnr", noRecv: true, host: clReq, proof: []uint64{regs.RNRNakRetryErrOffset}, atLeast: 2},
	{name: "SeqErr", faults: []string{"drop the 2nd RC_RDMA_WRITE_MIDDLE", "drop the 1st RC_SEND_LAST"},
		host: clReq, proof: []uint64{regs.PacketSeqErrOffset}, atLeast: 1},
	{name: "NormalResp", reads: 1, host: clResp, proof: []uint64{regs.TxReadResponsesOffset}, atLeast: 6},
	{name: "DupResp", faults: []string{"dup every RC_RDMA_READ_RESPONSE_*", "dup every RC_ACKNOWLEDGE", "dup every RC_ATOMIC_ACKNOWLEDGE"},
		host: clReq, proof: []uint64{regs.RxDupResponsesOffset}, atLeast: 4},
	{name: "GhostResp", faults: []string{"dup 3 times every RC_ACKNOWLEDGE", "delay 40us the 1st RC_RDMA_READ_RESPONSE_LAST"},
		host: clReq, proof: []uint64{dropCount(regs.TransportDropGhostAck), regs.RxGhostResponsesOffset, regs.RxDupResponsesOffset}, atLeast: 1},
	{name: "RespErr", setup: func(c *checklist) {
		iova, _ := c.far.IOVA()
		c.p.Sim.NIC[clResp].ErrorRange(iova+8*clSize+1024, iova+8*clSize+1088, true, false)
	}, fails: verbs.StatusRemoteOpErr, host: clResp, proof: []uint64{dropCount(regs.TransportDropNakOp)}, atLeast: 1},
	{name: "RetryErr", faults: []string{"drop the 1st to 2nd RC_RDMA_WRITE_LAST", "drop the 1st to 2nd RC_RDMA_READ_RESPONSE_MIDDLE"},
		host: clReq, proof: []uint64{regs.TxRetransmitsOffset}, atLeast: 4},
	{name: "TimeOutErr", faults: []string{"drop the 1st to 6th RC_ACKNOWLEDGE", "drop the 1st RC_RDMA_READ_REQUEST"},
		host: clReq, proof: []uint64{regs.LocalAckTimeoutErrOffset}, atLeast: 1},
	{name: "NestedRetry", noRecv: true, faults: []string{"drop the 2nd to 5th RC_RDMA_WRITE_MIDDLE", "drop the 1st to 3rd RC_SEND_FIRST", "drop the 1st to 2nd RC_ACKNOWLEDGE"},
		host: clReq, proof: []uint64{regs.TxRetransmitsOffset}, atLeast: 8},
	{name: "ImplicitRetry", faults: []string{"drop the 1st RC_RDMA_READ_RESPONSE_*", "drop the 4th RC_RDMA_READ_RESPONSE_*"},
		host: clReq, proof: []uint64{regs.ImpliedNakSeqErrOffset}, atLeast: 1},
	{name: "ExcRetryLimit", faults: []string{"drop every RC_RDMA_WRITE_FIRST"}, retry: 2, fails: verbs.StatusRetryExcErr,
		host: clReq, proof: []uint64{regs.PacketSeqErrOffset, regs.LocalAckTimeoutErrOffset}, atLeast: 3},
	{name: "ExcTimeOutLimit", faults: []string{"drop every packet a>b"}, retry: 2, fails: verbs.StatusRetryExcErr,
		host: clReq, proof: []uint64{regs.LocalAckTimeoutErrOffset}, atLeast: 3},
	{name: "ErrFlush", change: func(wr *verbs.SendWR) {
		if wr.Opcode == verbs.OpSend {
			wr.SGEs[0].LKey ^= 1
		}
	}, fails: verbs.StatusLocalProtErr, host: clReq, proof: []uint64{regs.ReqCQEFlushErrorOffset}, atLeast: 1},
	{name: "ZeroLen", change: func(wr *verbs.SendWR) {
		if wr.Opcode != verbs.OpAtomicFetchAdd {
			wr.SGEs = nil
		}
	}, host: clResp, proof: []uint64{regs.RxReadRequestsOffset}, atLeast: 2},
}

// checklist is a connection in a situation.
type checklist struct {
	t         *testing.T
	s         situation
	p         *verbstest.Pair
	qp        [2]*verbs.QP
	near, far *verbs.MR    // the requester's memory, the responder's
	on        *atomic.Bool // the faults take place
	epoch     uint64       // in the WRIDs
	sent      []verbs.SendWR
	received  int
	bad       int // the first work request that failed; -1: none
	done      int // those that are over
}

func newChecklist(t *testing.T, width int, s situation) *checklist {
	c := &checklist{t: t, s: s, on: new(atomic.Bool), bad: -1}
	var rules []fabric.Rule
	for _, text := range s.faults {
		parsed, err := fabric.ParseRules(text)
		require.NoError(t, err)
		for _, r := range parsed {
			match := r.Match
			r.Match = func(frame []byte) bool { return c.on.Load() && (match == nil || match(frame)) }
			rules = append(rules, r)
		}
	}
	c.p = newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = rules }})
	for i, h := range c.p.Hosts {
		mr, err := h.PD.AllocMR(clArea, mrAll)
		require.NoError(t, err)
		for j := range mr.Bytes() {
			mr.Bytes()[j] = byte(j*(5+2*i) + j>>9)
		}
		if i == clReq {
			c.near = mr
		} else {
			c.far = mr
		}
		c.qp[i], err = h.PD.CreateQP(verbs.QPConfig{SendCQ: h.CQ, RecvCQ: h.CQ, MaxSendWR: 16, MaxRecvWR: 8})
		require.NoError(t, err)
	}
	c.connect(0xfffff8, 0x123456)
	if s.setup != nil {
		s.setup(c)
	}
	return c
}

func (c *checklist) connect(psns ...uint32) {
	c.t.Helper()
	cfg := verbs.ConnectConfig{PathMTU: verbs.MTU1024, Access: accessAll, Timeout: verbs.Of(uint8(5)), NoFlowControl: c.s.noRecv}
	if c.s.retry != 0 {
		cfg.RetryCnt = verbs.Of(c.s.retry)
	}
	if c.s.access != 0 {
		cfg.Access = c.s.access
	}
	if c.s.reads != 0 {
		cfg.MaxRdAtomic = verbs.Of(c.s.reads)
	}
	for i, qp := range c.qp {
		cfg.PSN = psns[i]
		require.NoError(c.t, qp.Connect(c.qp[1-i].Local(psns[1-i]), cfg))
	}
}

func (c *checklist) postRecvs() {
	c.t.Helper()
	for i := range 2 {
		_, err := c.qp[clResp].PostRecv(verbs.RecvWR{WRID: c.epoch<<8 + uint64(i), SGEs: []verbs.SGE{c.far.SGE((10+i)*clSize, clSize)}})
		require.NoError(c.t, err)
	}
}

// post posts WRITEs, SENDs, READs and an atomic: the near memory's first eight messages go to the same places of the far memory,
// or to receives; messages 8 and 9 of the far memory are read into the near one's.
func (c *checklist) post(change func(*verbs.SendWR)) {
	c.t.Helper()
	if !c.s.noRecv {
		c.postRecvs()
	}
	add := func(op verbs.Opcode, off, n int) {
		wr := verbs.SendWR{WRID: c.epoch<<8 + uint64(len(c.sent)), Opcode: op, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{c.near.SGE(off, n)}}
		if op != verbs.OpSend {
			wr.RemoteAddr, wr.RKey = c.far.Addr()+uint64(off), c.far.RKey()
		}
		if op == verbs.OpAtomicFetchAdd {
			wr.CompareAdd = 11
		}
		c.sent = append(c.sent, wr)
	}
	c.sent, c.received, c.done, c.bad = nil, 0, 0, -1
	add(verbs.OpRDMAWrite, 0, clSize)
	add(verbs.OpRDMAWrite, clSize, clSize)
	add(verbs.OpSend, 2*clSize, clSize)
	add(verbs.OpRDMARead, 8*clSize, clSize)
	add(verbs.OpAtomicFetchAdd, 14*clSize, 8)
	add(verbs.OpRDMARead, 9*clSize, clSize)
	add(verbs.OpSend, 3*clSize, clSize)
	add(verbs.OpRDMAWrite, 4*clSize, clSize)
	for i := range c.sent {
		if change != nil {
			change(&c.sent[i])
		}
		c.sent[len(c.sent)-1].Flags |= verbs.SendSignaled
	}
	_, err := c.qp[clReq].PostSend(c.sent...)
	require.NoError(c.t, err)
}

// run polls for a time, and gives up early when all work requests are over.
func (c *checklist) run(d simtime.Time) {
	c.t.Helper()
	wcs := make([]verbs.WC, 8)
	recvs := !c.s.noRecv
	for end := c.p.Now() + d; c.p.Now() < end && c.done < len(c.sent); {
		if !recvs && c.p.Now() > end-d/2 {
			c.postRecvs()
			recvs = true
		}
		n, err := c.p.Hosts[clReq].CQ.Poll(wcs)
		require.NoError(c.t, err)
		for _, wc := range wcs[:n] {
			require.Equal(c.t, c.epoch, wc.WRID>>8, "a completion of before the reset")
			i := int(wc.WRID & 0xff)
			for c.done < i { // unsignaled ones do not complete by themselves
				require.Zero(c.t, c.sent[c.done].Flags&verbs.SendSignaled, "no completion of %d", c.done)
				c.done++
			}
			require.Equal(c.t, i, c.done, "in order, once")
			c.done++
			switch {
			case wc.Err() == nil:
				require.Negative(c.t, c.bad, "%d succeeds behind one that failed", i)
			case c.bad < 0:
				require.Equal(c.t, c.s.fails, wc.Status, "%d: %v", i, wc.Err())
				c.bad = i
			default:
				require.ErrorIs(c.t, wc.Err(), verbs.StatusWRFlushErr)
			}
		}
		n, err = c.p.Hosts[clResp].CQ.Poll(wcs)
		require.NoError(c.t, err)
		for _, wc := range wcs[:n] {
			require.Equal(c.t, c.epoch, wc.WRID>>8, "a completion of before the reset")
			if wc.Err() == nil {
				require.EqualValues(c.t, c.received, wc.WRID&0xff)
				c.received++
			}
		}
	}
}

// delivered requires that the memory looks as the first n work requests leave it.
func (c *checklist) delivered(n int) {
	c.t.Helper()
	recvs := 0
	for i, wr := range c.sent[:n] {
		switch at := int(wr.RemoteAddr - c.far.Addr()); {
		case len(wr.SGEs) == 0:
			recvs++
		case wr.Opcode == verbs.OpRDMAWrite, wr.Opcode == verbs.OpRDMARead:
			require.True(c.t, bytes.Equal(c.near.Bytes()[at:at+clSize], c.far.Bytes()[at:at+clSize]), "bytes of %d", i)
		case wr.Opcode == verbs.OpSend:
			from := int(wr.SGEs[0].Addr - c.near.Addr())
			require.True(c.t, bytes.Equal(c.near.Bytes()[from:from+clSize], c.far.Bytes()[(10+recvs)*clSize:(11+recvs)*clSize]), "bytes of %d", i)
			recvs++
		default:
			require.Equal(c.t, binary.LittleEndian.Uint64(c.near.Bytes()[at:])+11, binary.LittleEndian.Uint64(c.far.Bytes()[at:]), "atomic")
		}
	}
}

func (c *checklist) count() (n uint64) {
	for _, off := range c.s.proof {
		n += verbs.Counter(c.p.Hosts[c.s.host].Dev, off)
	}
	return n
}

// TestChecklist takes a connection into each of the situations that a reliable transport must come out of: it ends as it
// should. Then again, with a reset of both QPs at several times in it: nothing of before the reset completes afterwards, and
// the QPs, connected again, carry everything.
func TestChecklist(t *testing.T) {
	const limit = 20 * simtime.Millisecond
	forWidths(t, func(t *testing.T, width int) {
		for _, s := range situations {
			t.Run(s.name, func(t *testing.T) {
				c := newChecklist(t, width, s)
				before, start := c.count(), c.p.Now()
				c.on.Store(true)
				c.post(s.change)
				c.run(limit)
				require.Equal(t, len(c.sent), c.done, "work requests that are over")
				if s.fails == verbs.StatusSuccess {
					require.Negative(t, c.bad)
					c.delivered(len(c.sent))
				} else {
					require.GreaterOrEqual(t, c.bad, 0, "nothing failed")
					c.delivered(c.bad)
				}
				require.GreaterOrEqual(t, c.count()-before, s.atLeast, "it did not take place")
				took := c.p.Now() - start
				for k := range 4 {
					t.Run(fmt.Sprintf("reset%d", k), func(t *testing.T) {
						c := newChecklist(t, width, s)
						c.on.Store(true)
						c.post(s.change)
						c.run(took * simtime.Time(2*k+1) / 8)
						c.on.Store(false)
						for i := range 2 {
							qp := c.qp[(i+k)%2]
							require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
						}
						c.epoch++
						for i := range 2 {
							for nic := range 2 {
								mr := []*verbs.MR{c.near, c.far}[nic]
								iova, _ := mr.IOVA()
								c.p.Sim.NIC[nic].ErrorRange(iova, iova+clArea, false, false)
							}
							c.s.fails, c.s.access = verbs.StatusSuccess, 0
							if i == 0 {
								c.connect(uint32(0x400000+k), uint32(0x800000+k))
							}
							c.post(nil)
							c.run(limit)
							require.Equal(t, len(c.sent), c.done, "work requests that are over")
							require.Equal(t, 2, c.received)
							require.Negative(t, c.bad)
							c.delivered(len(c.sent))
							c.epoch++
						}
					})
				}
			})
		}
	})
}
