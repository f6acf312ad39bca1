// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// TestResetUnderTraffic resets either function in the middle of a transfer, by register. The models stop the
// simulation at any broken AXI or stream rule; afterwards registers are at power-on, and a new connection
// between the same functions carries data.
func TestResetUnderTraffic(t *testing.T) {
	const size = 1 << 18
	forWidths(t, func(t *testing.T, width int) {
		for _, victim := range []int{0, 1} {
			for _, after := range []int{1, 7, 40, 300} { // register reads, that is time, between doorbell and reset
				p := newPair(t, verbstest.Config{Width: width, Seed: uint64(after)})
				a, b := p.Hosts[0], p.Hosts[1]
				src, err := a.PD.AllocMR(size, verbs.AccessLocalWrite)
				require.NoError(t, err)
				dst, err := b.PD.AllocMR(size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
				require.NoError(t, err)
				qp, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 64}, verbs.ConnectConfig{})
				require.NoError(t, err)
				for range 16 {
					_, err = qp.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, size)},
						RemoteAddr: dst.Addr(), RKey: dst.RKey()})
					require.NoError(t, err)
				}
				csr := p.Sim.Dev[victim].Region(pcie.BARRegisters)
				for range after {
					csr.Load32(regs.StatusOffset)
				}
				csr.Store32(regs.ResetOffset, 0x52535421)
				ready := false
				for range 100000 {
					if ready = csr.Load32(regs.StatusOffset)&1 != 0; ready {
						break
					}
				}
				require.True(t, ready, "function %d not ready after the reset", victim)
				require.Zero(t, csr.Load32(regs.CtrlOffset))
				require.Zero(t, csr.Load64(regs.CmdqBaseOffset))
				require.Zero(t, csr.Load64(regs.TxFramesOffset))

				// A new driver on both functions: NewDevice resets what is left of the other one.
				var hosts [2]*verbs.Device
				var mrs [2]*verbs.MR
				var cqs [2]*verbs.CQ
				var qps [2]*verbs.QP
				for i := range hosts {
					hosts[i], err = verbs.NewDevice(p.Sim.Dev[i], verbs.Config{
						MAC:  net.HardwareAddr{0x02, 0x00, 0x5e, 0x00, 0x53, byte(1 + i)},
						Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})})
					require.NoError(t, err)
					pd, err := hosts[i].AllocPD()
					require.NoError(t, err)
					mrs[i], err = pd.AllocMR(size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
					require.NoError(t, err)
					cqs[i], err = hosts[i].CreateCQ(16)
					require.NoError(t, err)
					qps[i], err = pd.CreateQP(verbs.QPConfig{SendCQ: cqs[i], RecvCQ: cqs[i], MaxSendWR: 16})
					require.NoError(t, err)
				}
				for i := range qps {
					require.NoError(t, qps[i].Connect(qps[1-i].Local(uint32(100-i)), verbs.ConnectConfig{PSN: uint32(100 - (1 - i))}))
				}
				for i := range mrs[0].Bytes() {
					mrs[0].Bytes()[i] = byte(i*7 + after)
				}
				_, err = qps[0].PostSend(verbs.SendWR{WRID: 5, Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled,
					SGEs: []verbs.SGE{mrs[0].SGE(0, size)}, RemoteAddr: mrs[1].Addr(), RKey: mrs[1].RKey()})
				require.NoError(t, err)
				wcs := make([]verbs.WC, 1)
				n := 0
				for range 1000000 {
					if n, err = cqs[0].Poll(wcs); n > 0 || err != nil {
						break
					}
				}
				require.NoError(t, err)
				require.Equal(t, 1, n)
				require.Equal(t, verbs.StatusSuccess, wcs[0].Status)
				require.True(t, bytes.Equal(mrs[0].Bytes(), mrs[1].Bytes()), "data differs")
			}
		}
	})
}
