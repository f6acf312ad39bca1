// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/regs"
)

// TestReasonsOfRegisterMap: numbers and names are those of enum drop_reason.
func TestReasonsOfRegisterMap(t *testing.T) {
	for r := range Reason(NumReasons) {
		require.Equal(t, regs.DropReason(r).String(), r.String())
	}
	require.EqualValues(t, regs.DropReasonRoCELength, NumReasons-1)
	require.Equal(t, "reason_24", Reason(NumReasons).String())
}

// TestFromRegs sends the verdict of every opcode through the 128 bytes of the layout, built here field by
// field, and back.
func TestFromRegs(t *testing.T) {
	for _, op := range Opcodes() {
		for i := range 2 {
			var p Packet
			p.Parse(build(t, sample(op, i == 1, i+1), payloadFor(op, 5), nil), nil)
			v := p.Verdict()
			w := regs.RxVerdict{
				Reason: regs.DropReason(v.Reason), Opcode: uint8(v.Opcode), FrameLen: v.FrameLen, ICRCOk: v.ICRCOK, IPv6: v.IPv6,
				VLANTags: v.VLANTags, FECN: v.FECN, BECN: v.BECN, AckReq: v.AckReq, TOS: v.TOS, TTL: v.TTL, BTHFlags: v.BTHFlags,
				PKey: v.PKey, Ethertype: v.EtherType, VLANTCI: v.VLANTCI, UDPSport: v.UDPSPort, DestQP: v.DestQP, PSN: v.PSN,
				PayloadOff: v.PayloadOff, PayloadLen: v.PayloadLen, Syndrome: v.Syndrome, MSN: v.MSN, VA: v.VA, RKey: v.RKey,
				DMALen: v.DMALen, Imm: v.Imm, SwapAdd: v.SwapAdd, Compare: v.Compare, SIP: v.SIP, DIP: v.DIP, SMAC: v.SMAC, DMAC: v.DMAC,
			}
			b := make([]byte, regs.RxVerdictSize)
			require.NoError(t, w.Marshal(b))
			var back regs.RxVerdict
			require.NoError(t, back.Unmarshal(b))
			require.Equal(t, v, FromRegs(&back), "%v", op)
		}
	}
}
