// SPDX-License-Identifier: Apache-2.0

package regs

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type codec interface {
	Marshal(b []byte) error
	Unmarshal(b []byte) error
}

// structures returns a new one of every layout, in the order of Layouts.
func structures() []codec {
	return []codec{&SGE{}, &AtomicOperands{}, &WQE{}, &CQE{}, &EQE{}, &MREntry{}, &CQContext{}, &EQContext{}, &QPContext{}, &AHEntry{}, &SRQContext{}, &CmdHeader{}, &RspHeader{},
		&CtxMem{}, &DeviceCaps{}, &RxVerdict{}}
}

// leaves lists the numbers, bools and byte arrays of a struct in order.
func leaves(v reflect.Value) []reflect.Value {
	switch {
	case v.Kind() == reflect.Struct:
		var out []reflect.Value
		for i := range v.NumField() {
			out = append(out, leaves(v.Field(i))...)
		}
		return out
	case v.Kind() == reflect.Array && v.Type().Elem().Kind() != reflect.Uint8:
		var out []reflect.Value
		for i := range v.Len() {
			out = append(out, leaves(v.Index(i))...)
		}
		return out
	}
	return []reflect.Value{v}
}

// setBit sets bit i of a leaf.
func setBit(v reflect.Value, i int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Array:
		v.Index(i / 8).SetUint(v.Index(i/8).Uint() | 1<<(i%8))
	default:
		v.SetUint(v.Uint() | 1<<i)
	}
}

func getBit(v reflect.Value, i int) bool {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.Array:
		return v.Index(i/8).Uint()>>(i%8)&1 != 0
	}
	return v.Uint()>>i&1 != 0
}

func TestLayoutsMatchTable(t *testing.T) {
	all := structures()
	require.Len(t, all, len(Layouts()))
	for n, l := range Layouts() {
		ls := leaves(reflect.ValueOf(all[n]).Elem())
		require.Len(t, ls, len(l.Fields), l.Name)
		for i, f := range l.Fields {
			bits := int(ls[i].Type().Size()) * 8
			if ls[i].Kind() == reflect.Bool {
				bits = 1
			}
			require.GreaterOrEqual(t, bits, f.Width, "%s.%s", l.Name, f.Name)
		}
	}
}

// Every bit of every field goes to the byte and bit that the table names, and to no other, and comes back.
func TestLayoutBitWalk(t *testing.T) {
	for n, l := range Layouts() {
		for i, f := range l.Fields {
			for bit := range f.Width {
				x := structures()[n]
				setBit(leaves(reflect.ValueOf(x).Elem())[i], bit)
				b := make([]byte, l.Size)
				for k := range b {
					b[k] = 0xa5 // reserved bits must be cleared
				}
				require.NoError(t, x.Marshal(b))
				want := make([]byte, l.Size)
				want[(f.Lo+bit)/8] = 1 << ((f.Lo + bit) % 8)
				require.Equal(t, want, b, "%s.%s bit %d", l.Name, f.Name, bit)

				y := structures()[n]
				require.NoError(t, y.Unmarshal(b))
				require.Equal(t, x, y)
			}
		}
		// Every bit of memory is seen by the field that owns it and by no other.
		for bit := range l.Size * 8 {
			b := make([]byte, l.Size)
			b[bit/8] = 1 << (bit % 8)
			x := structures()[n]
			require.NoError(t, x.Unmarshal(b))
			for i, v := range leaves(reflect.ValueOf(x).Elem()) {
				f := l.Fields[i]
				if bit >= f.Lo && bit < f.Lo+f.Width {
					require.True(t, getBit(v, bit-f.Lo), "%s.%s bit %d", l.Name, f.Name, bit)
				} else {
					require.True(t, v.IsZero(), "%s.%s sees bit %d", l.Name, f.Name, bit)
				}
			}
		}
	}
}

func TestLayoutRandomRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(4791, 7))
	for n, l := range Layouts() {
		for range 300 {
			x := structures()[n]
			for i, v := range leaves(reflect.ValueOf(x).Elem()) {
				for bit := range l.Fields[i].Width {
					if rng.Uint32()%2 == 0 {
						setBit(v, bit)
					}
				}
			}
			b := make([]byte, l.Size+3)
			b[l.Size] = 0x77
			require.NoError(t, x.Marshal(b))
			require.Equal(t, []byte{0x77, 0, 0}, b[l.Size:], "%s writes behind its end", l.Name)
			y := structures()[n]
			for _, v := range leaves(reflect.ValueOf(y).Elem()) {
				setBit(v, 0) // Unmarshal must overwrite what was there
			}
			require.NoError(t, y.Unmarshal(b))
			require.Equal(t, x, y, l.Name)
		}
	}
}

// Values too large for their field are cut, not spilled into the neighbour.
func TestLayoutOversizedValue(t *testing.T) {
	b := make([]byte, CQESize)
	require.NoError(t, (&CQE{QPN: 0xff123456, Syndrome: 0}).Marshal(b))
	require.Equal(t, byte(0), b[7])
	v := make([]byte, RxVerdictSize)
	require.NoError(t, (&RxVerdict{VLANTags: 0xff}).Marshal(v))
	require.Equal(t, byte(0x0c), v[4])
}

func TestShortBuffer(t *testing.T) {
	for n, l := range Layouts() {
		b := make([]byte, l.Size-1)
		var short *ShortBufferError
		err := structures()[n].Marshal(b)
		require.True(t, errors.As(err, &short), l.Name)
		require.Equal(t, ShortBufferError{Layout: l.Name, Len: l.Size - 1, Need: l.Size}, *short)
		require.ErrorContains(t, structures()[n].Unmarshal(b), l.Name)
		require.Error(t, structures()[n].Unmarshal(nil))
	}
}

func TestCodecsDoNotAllocate(t *testing.T) {
	b := make([]byte, 256)
	for n, x := range structures() {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_ = x.Marshal(b)
			_ = x.Unmarshal(b)
		}), Layouts()[n].Name)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = SQDoorbell{QPN: 1, PI: 2}.Encode() }))
}

func TestKnownBytes(t *testing.T) {
	w := WQE{Opcode: WQEOpcodeRDMAWrite, Signaled: true, Fence: true, NumSGE: 1, Index: 0x1234, RemoteAddr: 0x1122334455667788,
		RKey: 0xaabbccdd}
	w.SGE[1] = SGE{Addr: 0x0102030405060708, Length: 9, LKey: 0x0a0b0c0d}
	b := make([]byte, WQESize)
	require.NoError(t, w.Marshal(b))
	want := make([]byte, WQESize)
	want[0], want[1], want[2] = 1, 1|4, 1
	copy(want[12:], []byte{0x34, 0x12})
	binary.LittleEndian.PutUint64(want[16:], 0x1122334455667788)
	binary.LittleEndian.PutUint32(want[24:], 0xaabbccdd)
	binary.LittleEndian.PutUint64(want[48:], 0x0102030405060708)
	binary.LittleEndian.PutUint32(want[56:], 9)
	binary.LittleEndian.PutUint32(want[60:], 0x0a0b0c0d)
	require.Equal(t, want, b)
	require.Equal(t, 32, WQESGEOffset)
	require.Equal(t, 31, CQEPhaseOffset)
}

func TestDoorbells(t *testing.T) {
	require.Equal(t, uint64(0xbeef_00_123456), SQDoorbell{QPN: 0x123456, PI: 0xbeef}.Encode())
	require.Equal(t, uint64(0xbeef_00_123456), SQDoorbell{QPN: 0xff123456, PI: 0xbeef}.Encode())
	require.Equal(t, uint64(0xbeef_01_123456), SQDoorbell{QPN: 0x123456, Pushed: true, PI: 0xbeef}.Encode())
	require.Equal(t, uint64(0x00_abcdef_03_000007), CQDoorbell{CQN: 7, Arm: true, ArmSolicited: true, CI: 0xabcdef}.Encode())
	for range 100 {
		q := SQDoorbell{QPN: rand.Uint32() & 0xffffff, Pushed: rand.IntN(2) == 0, PI: uint16(rand.Uint32())}
		require.Equal(t, q, DecodeSQDoorbell(q.Encode()))
		r := RQDoorbell{QPN: rand.Uint32() & 0xffffff, PI: uint16(rand.Uint32())}
		require.Equal(t, r, DecodeRQDoorbell(r.Encode()))
		c := CQDoorbell{CQN: rand.Uint32() & 0xffffff, Arm: rand.IntN(2) == 0, ArmSolicited: rand.IntN(2) == 0,
			CI: rand.Uint32() & 0xffffff}
		require.Equal(t, c, DecodeCQDoorbell(c.Encode()))
		e := EQDoorbell{EQN: uint8(rand.Uint32()), Arm: rand.IntN(2) == 0, CI: rand.Uint32() & 0xffffff}
		require.Equal(t, e, DecodeEQDoorbell(e.Encode()))
		s := SRQDoorbell{SRQN: rand.Uint32() & 0xffffff, PI: uint16(rand.Uint32())}
		require.Equal(t, s, DecodeSRQDoorbell(s.Encode()))
	}
	require.Len(t, Doorbells(), 6)
}

func TestRegisterValues(t *testing.T) {
	r := TxCtrlReset
	require.Equal(t, uint16(256), r.Window())
	require.Equal(t, uint8(14), r.QuantumLog())
	r = r.WithWindow(0x8000).WithQuantumLog(0xf3)
	require.Equal(t, TxCtrlReg(0x38000), r, "a value that does not fit is cut")
	c := CtrlReg(0).WithEnable(true).WithIRQEnable(true).WithEnable(false)
	require.Equal(t, CtrlReg(2), c)
	require.True(t, c.IRQEnable())
	i := LastInfoReg(0).WithReason(DropReasonICRC).WithSeq(0xee)
	require.Equal(t, DropReasonICRC, i.Reason())
	require.Equal(t, LastInfoReg(0xee00000000000012), i)
	require.Equal(t, "ORNC", string(binary.LittleEndian.AppendUint32(nil, uint32(IDReset))))
	require.Equal(t, LayoutHash, uint32(LayoutHashReset))
}

func TestTables(t *testing.T) {
	var last uint64
	for _, r := range Registers() {
		require.GreaterOrEqual(t, r.Offset, last, r.Name)
		last = r.Offset + uint64(r.Count)*r.Stride
		var bits uint64
		for _, f := range r.Fields {
			m := uint64(1<<f.Width-1) << f.Lo
			require.Zero(t, bits&m, "%s.%s", r.Name, f.Name)
			bits |= m
		}
		require.Zero(t, r.Reset&^bits, r.Name)
		if r.Width == 32 {
			require.Zero(t, bits>>32, r.Name)
		}
	}
	r, ok := RegisterByName("rx_drop")
	require.True(t, ok)
	require.Equal(t, RxDropOffset, r.Offset)
	require.Equal(t, RxDropCount, r.Count)
	require.Equal(t, int(DropReasonRoCELength)+1, r.Count, "a counter for every reason")
	td, ok := RegisterByName("transport_drop")
	require.True(t, ok)
	require.Equal(t, int(TransportDropNoSlot)+1, td.Count, "a counter for every reason")
	_, ok = RegisterByName("nosuch")
	require.False(t, ok)
	info, ok := RegisterByName("last_info")
	require.True(t, ok)
	f := info.Fields[0]
	require.Equal(t, "icrc", f.Format(f.Extract(0xff00000000000012)))
	require.Equal(t, "0x3e8", info.Fields[2].Format(1000))
	require.Equal(t, "999", info.Fields[2].Format(999))
}

func TestEnums(t *testing.T) {
	require.Equal(t, "icrc", DropReasonICRC.String())
	require.Equal(t, "ICRC wrong", DropReasonICRC.Doc())
	require.Equal(t, "drop_reason(200)", DropReason(200).String())
	require.Equal(t, "rem_access_err", WCStatusRemAccessErr.String())
	require.Equal(t, "", QPStateRTS.Doc())
	require.Equal(t, "rw1c", AccessRW1C.String())
	require.Equal(t, "Access(9)", Access(9).String())
}
