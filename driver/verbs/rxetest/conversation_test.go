// SPDX-License-Identifier: Apache-2.0

package rxetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/roce"
)

func load(t *testing.T) []*Conversation {
	t.Helper()
	all, err := Load("../../../testdata/captures")
	require.NoError(t, err)
	return all
}

func TestLoad(t *testing.T) {
	all := load(t)
	by := map[string]*Conversation{}
	kinds := map[string]int{}
	for _, c := range all {
		by[c.Name] = c
		switch {
		case c.Client.Script:
			kinds["inject"]++
		case c.Server.Script:
			kinds["serve"]++
		default:
			kinds["vt"]++
		}
	}
	require.Len(t, by, len(all), "names are not unique")
	require.Equal(t, map[string]int{"vt": 96, "serve": 41, "inject": 120}, kinds)

	c := by["rxe61_rnr_recovers_write_imm"]
	require.Equal(t, []Op{{Name: "w", Len: 64, V1: 64}, {Name: "wi", Len: 64, V1: 64}, {Name: "w", Len: 64, V1: 64, Last: true}}, c.Ops)
	require.True(t, c.Server.Late)
	require.EqualValues(t, 14, c.Server.RNRTimer)
	require.Equal(t, []WC{{ID: 0, Status: "success", Opcode: "RECV_WRITE_IMM", Len: 64, HasImm: true, Imm: 0xabcd0002}}, c.Server.WCs)
	require.EqualValues(t, 0x54, c.Server.QPN)
	require.EqualValues(t, 0x7f6bd8186000, c.Server.VA)

	c = by["rxe61_serve_rnr00"]
	require.True(t, c.Server.Script)
	require.EqualValues(t, 0xabcde, c.Server.QPN)
	require.EqualValues(t, 19, c.Client.Timeout)
	require.True(t, c.Packets[0].FromClient)

	c = by["rxe61_loss_nak"]
	var lost []string
	for _, p := range c.Packets {
		if p.Lost {
			lost = append(lost, p.Opcode.String())
		}
	}
	require.Equal(t, []string{"RC_RDMA_WRITE_MIDDLE", "RC_ACKNOWLEDGE"}, lost)
}

// TestRequests compares what the model says of the client's packets and memory with the recording.
func TestRequests(t *testing.T) {
	packets := 0
	for _, c := range load(t) {
		if c.Client.Script {
			continue
		}
		plan := c.Requests()
		buf := ClientBuffer()
		loads := strings.ContainsAny(opNames(c), "rf") // READ and FETCH_ADD change what later operations send
		for _, p := range c.Packets {
			if !p.FromClient {
				continue
			}
			packets++
			found := false
			for _, r := range plan {
				done := (p.PSN - r.PSN) & 0xffffff
				if done >= uint32(r.PSNs) {
					continue
				}
				found = true
				require.Equal(t, r.Opcode, p.Opcode, "%s packet %d", c.Name, p.Number)
				if r.Opcode == roce.RCReadRequest {
					require.EqualValues(t, r.Len-int(done)*c.Client.MTU, p.DMALen, "%s packet %d", c.Name, p.Number)
				} else if !r.Opcode.Has(roce.ExtAtomicETH) {
					require.Equal(t, r.Len, p.PayloadLen, "%s packet %d", c.Name, p.Number)
					if !loads {
						require.Equal(t, buf[Local(r.Op)+r.Off:][:r.Len], p.Payload(p.Frame), "%s packet %d", c.Name, p.Number)
					}
				}
			}
			require.True(t, found, "%s packet %d", c.Name, p.Number)
		}
	}
	require.Greater(t, packets, 500)
}

func opNames(c *Conversation) (s string) {
	for _, o := range c.Ops {
		s += o.Name[:1]
	}
	return s
}

// TestRewrite: the same numbers leave every frame as it is, also broken ones; others change nothing but the numbers,
// and what was right or wrong of the checksums stays so.
func TestRewrite(t *testing.T) {
	for _, c := range load(t) {
		for _, p := range c.Packets {
			same := Fields{DestQP: destQP(p.Frame), SrcQP: p.SrcQP, RKey: p.RKey, InvKey: p.InvKey, VA: p.VA}
			require.Equal(t, p.Frame, p.Rewrite(same), "%s packet %d", c.Name, p.Number)
			f := Fields{DestQP: 0x123456, SrcQP: 0x654321, RKey: 0x89abcdef, InvKey: 0xfedcba98, VA: 0x0123456789abcdef}
			frame := p.Rewrite(f)
			var q roce.Packet
			require.Equal(t, p.Reason, q.Parse(frame, nil), "%s packet %d", c.Name, p.Number)
			want := p.Headers
			if p.HasBTH {
				want.DestQP = f.DestQP
			}
			if p.HasExt {
				if p.Opcode.Has(roce.ExtDETH) {
					want.SrcQP = f.SrcQP
				}
				if p.Opcode.Has(roce.ExtRETH) || p.Opcode.Has(roce.ExtAtomicETH) {
					want.VA, want.RKey = f.VA, f.RKey
				}
				if p.Opcode.Has(roce.ExtIETH) {
					want.InvKey = f.InvKey
				}
			}
			require.Equal(t, want, q.Headers, "%s packet %d", c.Name, p.Number)
			require.Equal(t, p.Payload(p.Frame), q.Payload(frame))
		}
	}
}

func TestFlowsAreFound(t *testing.T) {
	all, err := Flows("../../../testdata/captures")
	require.NoError(t, err)
	requests, answers := 0, 0
	names := map[string]bool{}
	for _, f := range all {
		names[f.Name] = true
		require.NotZero(t, f.Client.QPN, f.Name)
		for _, p := range f.Packets {
			if p.FromClient {
				require.Equal(t, f.Server.QPN, p.DestQP)
				requests++
				continue
			}
			answers++
			require.Equal(t, roce.ServiceRC, f.Service)
			require.Equal(t, f.Client.QPN, p.DestQP)
			require.Equal(t, f.Server.IP, p.SrcIP)
		}
	}
	require.Len(t, names, len(all))
	t.Logf("%d flows, %d requests, %d answers", len(all), requests, answers)
	require.Equal(t, 94, len(all))
	for _, f := range all {
		if f.Name == "rxe61_write_bw_2qp_bidir/0" {
			require.Len(t, f.Regions, 1)
			require.EqualValues(t, 1024, f.Server.MTU)
			require.Len(t, f.Packets, 25, "5 WRITEs of 4 packets and their acknowledges")
		}
	}
}
