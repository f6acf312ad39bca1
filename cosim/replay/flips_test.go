// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/replay"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/roce/rocetest"
)

// sample is a frame whose bits are flipped one by one.
type sample struct {
	name string
	data []byte
}

// samples: the first short packet of each opcode in the captures, one IPv6 packet of each there, and generated packets
// with every combination of IP version, VLAN tags and pad count, some with UDP checksum and Ethernet padding.
func samples(t *testing.T) []sample {
	var l []sample
	seen := map[string]bool{}
	for _, c := range captureFiles(t) {
		for i, f := range c.frames {
			p, v := codec(&f, roce.Options{})
			key := fmt.Sprintf("%v ipv6 %t", p.Opcode, p.IPv6)
			if v.Reason == roce.ReasonNone && len(f.Data) <= 200 && !seen[key] {
				seen[key] = true
				l = append(l, sample{fmt.Sprintf("%s packet %d, %s", c.name, i+1, key), f.Data})
			}
		}
	}
	require.GreaterOrEqual(t, len(l), 28)
	g := rocetest.NewGen(seed(t))
	for n := range 24 {
		ipv6, tags, pad := n&1 != 0, n>>1%3, n/6
		h := g.Headers()
		for h.IPv6 != ipv6 || int(h.NumVLAN) != tags || !h.Opcode.MayCarryPayload() || h.Opcode == roce.CNP {
			h = g.Headers()
		}
		opt := roce.BuildOptions{UDPChecksum: n%5 < 2, PadByte: byte(n), EthPad: n % 4 * 3}
		payload := bytes.Repeat([]byte{0xa5, byte(n)}, 20)[:4*(n%7)+4-pad]
		f, err := h.Build(payload, &opt)
		require.NoError(t, err)
		l = append(l, sample{fmt.Sprintf("generated %v ipv6 %t, %d tags, pad %d, UDP checksum %t", h.Opcode, ipv6, tags, pad, opt.UDPChecksum), f})
	}
	return l
}

// beforeICRC are the checks that decide where the ICRC lies.
var beforeICRC = map[roce.Reason]bool{
	roce.ReasonIPVersion: true, roce.ReasonIPOptions: true, roce.ReasonIPLength: true, roce.ReasonIPFragment: true,
	roce.ReasonIPv6Ext: true, roce.ReasonNotUDP: true, roce.ReasonUDPTruncated: true, roce.ReasonNotRoCE: true,
	roce.ReasonUDPLength: true, roce.ReasonBTHTruncated: true,
}

// structural tells whether byte n of the frame holds a version, a length, a protocol, a port or fragment bits.
func structural(p *roce.Packet, n int) bool {
	off, udp := n-p.L3Off, n-p.L3Off-p.IPHdrLen
	switch {
	case udp >= 0:
		return udp >= 2 && udp <= 5
	case p.IPv6:
		return off == 0 || off >= 4 && off <= 6
	}
	return off == 0 || off == 2 || off == 3 || off == 6 || off == 7 || off == 9
}

// TestBitFlips flips every bit of every sample. The RTL says what the codec says; and, without the codec: an error in
// what the ICRC covers is found by the ICRC unless it hits a field that decides where the ICRC lies; one in what the
// ICRC masks leaves it right.
func TestBitFlips(t *testing.T) {
	list := samples(t)
	eachWidth(t, func(t *testing.T, width int) {
		for _, cfg := range []struct {
			replay.Config
			spacing int
		}{
			{replay.Config{}, 0}, // one beat per cycle without a pause
			{replay.Config{Gaps: true}, replay.DefaultSpacing},
		} {
			cfg.Width, cfg.Seed = width, seed(t)
			s := open(t, cfg.Config)
			s.Spacing = cfg.spacing
			type flip struct {
				sample *sample
				parsed *roce.Packet // of the sample
				bit    int
			}
			var flips []flip
			for i := range list {
				p := &roce.Packet{}
				require.Equal(t, roce.ReasonNone, p.Parse(list[i].data, nil))
				for bit := range 8 * len(list[i].data) {
					flips = append(flips, flip{&list[i], p, bit})
				}
			}
			// In random order, so that frames of all kinds follow each other.
			rand.New(rand.NewPCG(seed(t), 3)).Shuffle(len(flips), func(i, j int) { flips[i], flips[j] = flips[j], flips[i] })
			frames := make([]replay.Frame, len(flips))
			for i, f := range flips {
				data := bytes.Clone(f.sample.data)
				data[f.bit/8] ^= 1 << (f.bit % 8)
				frames[i] = replay.Frame{Data: data}
			}
			var want replay.Counters
			kinds := map[rocetest.Field]int{}
			require.NoError(t, s.Feed(frames, func(i int, raw *regs.RxVerdict) error {
				f := &flips[i]
				name := fmt.Sprintf("%s, byte %d bit %d", f.sample.name, f.bit/8, f.bit%8)
				_, exp := codec(&frames[i], roce.Options{})
				rtl := roce.FromRegs(raw)
				same(t, name, &frames[i], &rtl, &exp)
				want.Add(&exp)
				field := rocetest.FieldOf(f.parsed, f.bit)
				kinds[field]++
				switch field {
				case rocetest.FieldCovered:
					if rtl.Reason == roce.ReasonICRC {
						require.False(t, raw.ICRCOk, name)
					} else {
						require.True(t, beforeICRC[rtl.Reason] && structural(f.parsed, f.bit/8), "%s: %v", name, rtl.Reason)
					}
				case rocetest.FieldVariant:
					require.True(t, raw.ICRCOk, name)
					require.Contains(t, []roce.Reason{roce.ReasonNone, roce.ReasonIPChecksum, roce.ReasonUDPChecksum}, rtl.Reason, name)
				case rocetest.FieldPadding:
					require.Equal(t, roce.ReasonNone, rtl.Reason, name)
				case rocetest.FieldEthernet:
					if f.bit < 12*8 { // addresses
						require.Equal(t, roce.ReasonNone, rtl.Reason, name)
					}
				}
				return nil
			}))
			require.Len(t, kinds, 4)
			require.Equal(t, want, replay.LoadCounters(s.CSR))
			requireTransport(t, s, want.Accepted)
		}
	})
}
