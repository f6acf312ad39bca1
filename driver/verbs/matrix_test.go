// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
)

// matrix is a NIC whose peer sends every kind of request with every kind of fault to a QP in every state, whose context is on chip or not.
type matrix struct {
	*wire
	mem    *verbs.MR
	others []*verbs.QP // of the same set of the QP cache
	gone   *verbs.MR   // what SEND with invalidate takes away
	shadow []byte
	cells  int
}

// matrixOp is a kind of request: what it changes, and how it is answered.
type matrixOp struct {
	name string
	op   roce.Opcode
	recv bool // uses a receive
	keys bool // has an R_Key
}

var matrixOps = []matrixOp{
	{"SEND", roce.RCSendOnly, true, false},
	{"SEND with immediate", roce.RCSendOnlyImmediate, true, false},
	{"SEND with invalidate", roce.RCSendOnlyInvalidate, true, false},
	{"WRITE", roce.RCWriteOnly, false, true},
	{"WRITE with immediate", roce.RCWriteOnlyImmediate, true, true},
	{"READ", roce.RCReadRequest, false, true},
	{"CMP_SWAP", roce.RCCompareSwap, false, true},
	{"FETCH_ADD", roce.RCFetchAdd, false, true},
}

// matrixFaults: of every kind of request, but those that need a key or a receive.
var matrixFaults = []string{"none", "sent again", "behind a gap", "ICRC", "P_Key", "rkey", "lkey", "no receive"}

var matrixStates = []verbs.QPState{verbs.StateReset, verbs.StateInit, verbs.StateRTR, verbs.StateRTS, verbs.StateSQD, verbs.StateErr}

const (
	matrixRecv = 512  // where the receive lies
	matrixAt   = 1024 // where WRITEs, READs and atomics go
	matrixLen  = 64

	matrixTable = "../../docs/transport.md"
)

func newMatrix(t *testing.T, width int) *matrix {
	t.Helper()
	m := &matrix{wire: newWire(t, width, verbs.QPConfig{MaxRecvWR: 1}, verbs.MTU256, nil)}
	m.mem = m.mr(2048, verbs.AccessLocalWrite|allRemote)
	m.shadow = make([]byte, m.mem.Len())
	// twice as many as a set has places, so that all of them together leave no room for the QP
	const sets = 64
	for i := range uint32(8) {
		verbs.NextQP(m.dev, m.qp.QPN()+(i+1)*sets)
		qp, err := m.pd.CreateQP(verbs.QPConfig{SendCQ: m.cq, MaxSendWR: 1})
		require.NoError(t, err)
		require.Equal(t, m.qp.QPN()+(i+1)*sets, qp.QPN())
		m.others = append(m.others, qp)
	}
	return m
}

// bring makes a new connection and takes the QP to a state.
func (m *matrix) bring(s verbs.QPState, lkey uint32, recv bool) {
	m.t.Helper()
	sge := m.mem.SGE(matrixRecv, matrixLen)
	sge.LKey ^= lkey
	attrs := append([]verbs.QPAttr{{State: verbs.Of(verbs.StateReset)}}, connectAttrs(0x654321, verbs.MTU256, 0)...)
	attrs = append(attrs, verbs.QPAttr{State: verbs.Of(verbs.StateSQD)})
	for _, a := range attrs {
		if s == verbs.StateErr && *a.State == verbs.StateSQD {
			a = verbs.QPAttr{State: verbs.Of(verbs.StateErr)}
		}
		require.NoError(m.t, m.qp.Modify(a))
		if *a.State == verbs.StateInit && recv {
			m.recv(1, sge)
		}
		if *a.State == s {
			break
		}
	}
	m.psn = wirePSN
	m.poll() // flushes of ERR
}

// evict takes the QP's slot away.
func (m *matrix) evict() {
	m.t.Helper()
	for _, qp := range m.others {
		_, err := qp.Query()
		require.NoError(m.t, err)
	}
}

// request sends a request, with a fault that is in the packet itself.
func (m *matrix) request(op matrixOp, psn uint32, fault string) {
	m.t.Helper()
	h := m.h
	h.Opcode, h.PSN, h.AckReq = op.op, psn&0xffffff, true
	h.VA, h.RKey, h.DMALen, h.Imm, h.SwapAdd, h.Compare = m.mem.Addr()+matrixAt, m.mem.RKey(), matrixLen, 0x12345678, 5, m.word()
	if m.gone != nil {
		h.InvKey = m.gone.RKey()
	}
	switch fault {
	case "P_Key":
		h.PKey = 0x1234
	case "rkey":
		h.RKey ^= 1
	}
	var data []byte
	if op.op != roce.RCReadRequest && op.op != roce.RCCompareSwap && op.op != roce.RCFetchAdd {
		data = payload[:matrixLen]
	}
	frame, err := h.Build(data, nil)
	require.NoError(m.t, err)
	if fault == "ICRC" {
		frame[len(frame)-1] ^= 0x40
	}
	require.NoError(m.t, m.port.Send(frame, 0, false))
}

func (m *matrix) word() uint64 { return binary.LittleEndian.Uint64(m.mem.Bytes()[matrixAt:]) }

// said lets time pass and gives the NIC's frames in words.
func (m *matrix) said() string {
	m.t.Helper()
	require.NoError(m.t, m.eng.Advance(20*simtime.Microsecond))
	var l []string
	for {
		f, _, _ := m.port.Recv()
		if f == nil {
			return strings.Join(l, "; ")
		}
		var p roce.Packet
		require.Equal(m.t, roce.ReasonNone, p.Parse(f, nil))
		s := fmt.Sprintf("%v %+d %02x", p.Opcode, int32((p.PSN-wirePSN)<<8)>>8, p.Syndrome)
		switch p.Opcode {
		case roce.RCAtomicAcknowledge:
			s += fmt.Sprintf(" %d", p.Orig)
		case roce.RCReadResponseOnly:
			s += fmt.Sprintf(" %x", p.Payload(f))
		}
		l = append(l, s)
	}
}

// refused is how often packets were dropped or refused, for any reason.
func (m *matrix) refused() (n uint64) {
	for _, c := range m.counts() {
		n += c
	}
	return n
}

// TestTransportMatrix: every request of RC, with every fault, to a QP in every state, with its context on chip or in host memory: answer, memory,
// state, completions and the counters of refused packets. docs/transport.md has the table of answers.
func TestTransportMatrix(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		m := newMatrix(t, width)
		table := map[string]map[string]string{}
		for _, op := range matrixOps {
			for _, fault := range matrixFaults {
				if fault == "rkey" && !op.keys || (fault == "lkey" || fault == "no receive") && !op.recv || fault == "lkey" && op.keys {
					continue
				}
				for _, state := range matrixStates {
					for _, cached := range []bool{true, false} {
						name := fmt.Sprintf("%s, %s, %v, cached %v", op.name, fault, state, cached)
						got := m.cell(name, op, fault, state, cached)
						row := op.name + ": " + fault
						if table[row] == nil {
							table[row] = map[string]string{}
						}
						if cached {
							table[row][state.String()] = got
						} else {
							require.Equal(t, table[row][state.String()], got, "%s: not what it is with the context on chip", name)
						}
					}
				}
			}
		}
		require.Equal(t, 2*len(matrixStates)*52, m.cells)
		lines := []string{m.line("request", "fault", func(s verbs.QPState) string { return s.String() })}
		for _, op := range matrixOps {
			for _, fault := range matrixFaults {
				if r := table[op.name+": "+fault]; r != nil {
					lines = append(lines, m.line(op.name, fault, func(s verbs.QPState) string { return r[s.String()] }))
				}
			}
		}
		got := strings.Join(lines, "\n")
		want, err := os.ReadFile(matrixTable)
		require.NoError(t, err)
		if !strings.Contains(string(want), got) {
			t.Fatalf("the table in %s must be\n%s", matrixTable, got)
		}
	})
}

func (m *matrix) line(request, fault string, cell func(verbs.QPState) string) string {
	l := fmt.Sprintf("%-22s %-13s", request, fault)
	for _, s := range matrixStates {
		l += fmt.Sprintf(" %-13s", cell(s))
	}
	return strings.TrimRight(l, " ")
}

// cell does one cell of the table, and gives the kind of the answer.
func (m *matrix) cell(name string, op matrixOp, fault string, state verbs.QPState, cached bool) string {
	m.t.Helper()
	t := m.t
	var lkey uint32
	if fault == "lkey" {
		lkey = 1
	}
	m.bring(state, lkey, op.recv && fault != "no receive" && state != verbs.StateReset)
	if !cached {
		m.evict()
	} else {
		_, err := m.qp.Query()
		require.NoError(t, err)
	}
	m.gone = nil
	if op.op == roce.RCSendOnlyInvalidate {
		m.gone = m.mr(64, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteInvalidate)
	}
	alive := state == verbs.StateRTR || state == verbs.StateRTS || state == verbs.StateSQD
	for i := range m.shadow {
		m.shadow[i] = byte(i*7 + m.cells)
	}
	m.cells++
	copy(m.mem.Bytes(), m.shadow)
	word := m.word()

	// the good answer, and what it changes
	good, kind, changes := "RC_ACKNOWLEDGE +0 1f", "ACK", true
	switch op.op {
	case roce.RCReadRequest:
		good, kind, changes = fmt.Sprintf("%v +0 1f %x", roce.RCReadResponseOnly, m.mem.Bytes()[matrixAt:][:matrixLen]), "response", false
	case roce.RCCompareSwap, roce.RCFetchAdd:
		good, kind = fmt.Sprintf("%v +0 1f %d", roce.RCAtomicAcknowledge, word), "response"
	}
	want, after, refused := good, state, uint64(0)
	switch fault {
	case "behind a gap":
		want, kind, changes, refused = "RC_ACKNOWLEDGE +0 60", "NAK sequence", false, 1
	case "ICRC", "P_Key":
		want, kind, changes, refused = "", "-", false, 1
	case "rkey":
		want, kind, changes, refused, after = "RC_ACKNOWLEDGE +0 62", "NAK access", false, 1, verbs.StateErr
	case "lkey":
		want, kind, changes, refused, after = "RC_ACKNOWLEDGE +0 63", "NAK operation", false, 1, verbs.StateErr
	case "no receive":
		want, kind, changes = fmt.Sprintf("RC_ACKNOWLEDGE +0 %02x", 0x20|wireRNR), "RNR NAK", false
	}
	if !alive {
		want, kind, changes, refused, after = "", "-", false, 1, state
	}
	psn := uint32(wirePSN)
	if fault == "behind a gap" {
		psn++
	}
	misses, before := m.counter(regs.QPCacheMissOffset), m.refused()
	m.request(op, psn, fault)
	require.Equal(t, want, m.said(), name)
	if misses = m.counter(regs.QPCacheMissOffset) - misses; fault != "ICRC" {
		require.Equal(t, !cached, misses != 0, "%s: %d misses", name, misses)
	}
	if changes {
		if op.recv && !op.keys {
			copy(m.shadow[matrixRecv:], payload[:matrixLen])
		}
		switch op.op {
		case roce.RCWriteOnly, roce.RCWriteOnlyImmediate:
			copy(m.shadow[matrixAt:], payload[:matrixLen])
		case roce.RCCompareSwap:
			binary.LittleEndian.PutUint64(m.shadow[matrixAt:], 5)
		case roce.RCFetchAdd:
			binary.LittleEndian.PutUint64(m.shadow[matrixAt:], word+5)
		}
	}
	require.Equal(t, m.shadow, m.mem.Bytes(), name)
	if fault == "sent again" {
		if !cached {
			m.evict()
		}
		m.request(op, psn, fault)
		refused++ // a duplicate, or the state is wrong
		require.Equal(t, want, m.said(), "%s: the second time", name)
		require.Equal(t, m.shadow, m.mem.Bytes(), "%s: the second time", name)
	}
	require.Equal(t, refused, m.refused()-before, "%s: packets refused", name)
	info, err := m.qp.Query()
	require.NoError(t, err)
	require.Equal(t, after, info.State, name)
	wcs := m.poll()
	if changes && op.recv && after == state {
		require.Len(t, wcs, 1, name)
		require.NoError(t, wcs[0].Err(), name)
		require.EqualValues(t, matrixLen, wcs[0].ByteLen, name)
		if m.gone != nil {
			require.Equal(t, m.gone.RKey(), wcs[0].InvalidatedRKey, name)
		}
	} else {
		for _, wc := range wcs {
			require.Error(t, wc.Err(), name)
		}
	}
	if m.gone != nil {
		require.NoError(t, m.gone.Close())
	}
	return kind
}
