// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

func frame(t *testing.T, h roce.Headers, payload int) []byte {
	t.Helper()
	h.SrcIP, h.DstIP = netip.MustParseAddr("192.0.2.1").As16(), netip.MustParseAddr("192.0.2.3").As16()
	h.DMAC = verbstest.MAC(2)
	f, err := h.Build(make([]byte, payload), nil)
	require.NoError(t, err)
	return f
}

// TestCensus: packets are counted by interface, port and opcode; those that are not right are told apart.
func TestCensus(t *testing.T) {
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.Section{})
	require.NoError(t, err)
	c := NewCapture(w)
	c.next("X")
	tap, err := c.tap("a", "tor", 1e9)
	require.NoError(t, err)
	first := frame(t, roce.Headers{Opcode: roce.RCWriteFirst}, 256)
	last := frame(t, roce.Headers{Opcode: roce.RCWriteLast}, 10)
	bad := bytes.Clone(last)
	bad[len(bad)-6] ^= 1
	other := bytes.Clone(last)
	other[14+20+3] = 0xb6 // port 4790
	for _, f := range [][]byte{first, last, last, bad, other, make([]byte, 60)} {
		require.NoError(t, tap.Frame(fabric.AtoB, fabric.Frame{Data: f, At: simtime.Microsecond}, ""))
	}
	require.NoError(t, tap.Frame(fabric.BtoA, fabric.Frame{Data: frame(t, roce.Headers{Opcode: roce.RCAcknowledge}, 0), At: 2 * simtime.Microsecond}, "a note"))
	c.next("Y")
	require.Equal(t, 2*simtime.Microsecond+simtime.Millisecond, c.base, "the next run comes behind this one")
	tap, err = c.tap("a", "tor", 1e9)
	require.NoError(t, err)
	require.NoError(t, tap.Frame(fabric.AtoB, fabric.Frame{Data: first, At: 0}, ""))
	require.NoError(t, w.Flush())
	take := func(f Filter) *Census {
		c, err := TakeCensus(bytes.NewReader(file.Bytes()), f)
		require.NoError(t, err)
		return c
	}
	got := take(Filter{Interface: "X a>tor"})
	require.Equal(t, &Census{Frames: 6, Opcodes: map[roce.Opcode]int{roce.RCWriteFirst: 1, roce.RCWriteLast: 2}, Bad: 1}, got)
	require.Equal(t, 3, got.Total())
	require.Equal(t, map[roce.Opcode]int{roce.RCAcknowledge: 1}, take(Filter{Interface: "X tor>a"}).Opcodes)
	require.Equal(t, map[roce.Opcode]int{roce.RCWriteFirst: 1}, take(Filter{Interface: "Y a>tor"}).Opcodes)
	require.Zero(t, take(Filter{Interface: "X a>tor", Port: 4790}).Total())
	require.Zero(t, take(Filter{Interface: "Z"}).Frames)
	_, err = TakeCensus(bytes.NewReader(file.Bytes()[:file.Len()-5]), Filter{})
	require.Error(t, err, "a capture that was cut")
}

// TestExpected packets of a flow.
func TestExpected(t *testing.T) {
	count := func(f Flow) (map[roce.Opcode]int, map[roce.Opcode]int) {
		f.Count, f.MTU = 3, 1024
		if f.Service == "" {
			f.Service = "rc"
		}
		return Expected(&f)
	}
	none := map[roce.Opcode]int{}
	q, r := count(Flow{Op: "write", Size: 1024})
	require.Equal(t, map[roce.Opcode]int{roce.RCWriteOnly: 3}, q)
	require.Equal(t, none, r)
	q, _ = count(Flow{Op: "write", Size: 1025})
	require.Equal(t, map[roce.Opcode]int{roce.RCWriteFirst: 3, roce.RCWriteLast: 3}, q)
	q, _ = count(Flow{Op: "send", Size: 4097})
	require.Equal(t, map[roce.Opcode]int{roce.RCSendFirst: 3, roce.RCSendMiddle: 9, roce.RCSendLast: 3}, q)
	q, r = count(Flow{Op: "read", Size: 2049})
	require.Equal(t, map[roce.Opcode]int{roce.RCReadRequest: 3}, q)
	require.Equal(t, map[roce.Opcode]int{roce.RCReadResponseFirst: 3, roce.RCReadResponseMiddle: 3, roce.RCReadResponseLast: 3}, r)
	q, _ = count(Flow{Service: "uc", Op: "write", Size: 2048})
	require.Equal(t, map[roce.Opcode]int{roce.UCWriteFirst: 3, roce.UCWriteLast: 3}, q)

	require.Empty(t, differences(q, q))
	require.Equal(t, "UC_RDMA_WRITE_FIRST: 3 on the wire, 0 posted, UC_RDMA_WRITE_LAST: 3 on the wire, 0 posted", differences(none, q))
	require.Equal(t, "UNKNOWN_0xff: 1 on the wire", differences(none, map[roce.Opcode]int{0xff: 1}))
}

// TestLook: what a tap keeps of a frame.
func TestLook(t *testing.T) {
	see := func(h roce.Headers, payload int) Seen {
		return look(fabric.Frame{Data: frame(t, h, payload), At: 5})
	}
	s := see(roce.Headers{Opcode: roce.RCWriteMiddle, TOS: 106, DestQP: 7, PSN: 9, AckReq: true}, 100)
	require.Equal(t, Seen{At: 5, Good: true, Opcode: roce.RCWriteMiddle, TOS: 106, To: Endpoint{2, 7}, PSN: 9, AckReq: true, Payload: 100, Len: 14 + 20 + 8 + 12 + 100 + 4, zero: true}, s)
	require.False(t, s.CE())
	s = see(roce.Headers{Opcode: roce.RCWriteMiddle, TOS: 107}, 256)
	require.True(t, s.CE())
	for ecn := range uint8(3) {
		s.TOS = 104 | ecn
		require.False(t, s.CE(), "ECN %d", ecn)
	}
	s = see(roce.Headers{Opcode: roce.CNP, BECN: true, DestQP: 7}, roce.CNPPayloadLen)
	require.True(t, s.CNP())
	require.True(t, s.BECN)
	require.True(t, s.zero)
	f := frame(t, roce.Headers{Opcode: roce.CNP, TOS: 3}, roce.CNPPayloadLen)
	edit(func(f []byte, p *roce.Packet) { f[p.PayloadOff+15] = 1 })(f)
	s = look(fabric.Frame{Data: f})
	require.True(t, s.Good, "the ICRC is right again")
	require.False(t, s.zero)
	s = look(fabric.Frame{Data: f, Bad: true})
	require.False(t, s.CNP() || s.CE(), "a wrong FCS")
	f[50] ^= 1
	s = look(fabric.Frame{Data: f})
	require.False(t, s.CNP() || s.CE(), "a wrong ICRC")
	pfc := make([]byte, 60)
	copy(pfc, []byte{1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0x88, 0x08, 1, 1})
	s = look(fabric.Frame{Data: pfc})
	require.True(t, s.pause)
	require.Equal(t, -1, s.To.Host)
}
