// SPDX-License-Identifier: Apache-2.0

package wireshark

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
)

// TestPostDissector: every packet has the fields that it should have, and no others.
func TestPostDissector(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Fatal("tshark is not installed: apt-get install tshark")
	}
	v4, v6 := [2]string{"192.0.2.1", "192.0.2.2"}, [2]string{"2001:db8::1", "2001:db8::2"}
	cnp := roce.Headers{Opcode: roce.CNP, BECN: true, DestQP: 0xd2, PKey: 0xffff, TOS: 48 << 2}
	with := func(h roce.Headers, change func(h *roce.Headers)) roce.Headers {
		change(&h)
		return h
	}
	data := roce.Headers{Opcode: roce.RCWriteMiddle, DestQP: 0x123456, PKey: 0xffff, TOS: 106, PSN: 7}
	packets := []struct {
		h       roce.Headers
		addr    [2]string
		payload []byte
		want    string // opcode, destqp, cnp, malformed, fecn, becn, ce
	}{
		{cnp, v4, make([]byte, 16), "0x81|0x0000d2|1|||1|"},
		{cnp, v6, make([]byte, 16), "0x81|0x0000d2|1|||1|"},
		{with(cnp, func(h *roce.Headers) { h.NumVLAN, h.VLAN[0] = 1, roce.VLAN{TPID: roce.EtherTypeVLAN, TCI: 6 << 13} }), v4, make([]byte, 16), "0x81|0x0000d2|1|||1|"},
		{with(cnp, func(h *roce.Headers) { h.BECN = false }), v4, make([]byte, 16), "0x81|0x0000d2|1|want BECN without FECN|||"},
		{with(cnp, func(h *roce.Headers) { h.FECN = true }), v4, make([]byte, 16), "0x81|0x0000d2|1|want BECN without FECN|1|1|"},
		{with(cnp, func(h *roce.Headers) { h.PSN = 1 }), v4, make([]byte, 16), "0x81|0x0000d2|1|want PSN 0 and no AckReq||1|"},
		{with(cnp, func(h *roce.Headers) { h.AckReq = true }), v4, make([]byte, 16), "0x81|0x0000d2|1|want PSN 0 and no AckReq||1|"},
		{cnp, v4, append(make([]byte, 15), 1), "0x81|0x0000d2|1|reserved bytes are not 0||1|"},
		{data, v4, make([]byte, 256), "0x07|0x123456|||||"},
		{with(data, func(h *roce.Headers) { h.TOS = 107 }), v4, make([]byte, 256), "0x07|0x123456|||||1"},
		{with(data, func(h *roce.Headers) { h.TOS, h.FECN = 105, true }), v6, make([]byte, 256), "0x07|0x123456|||1||"},
		{with(data, func(h *roce.Headers) { h.TOS, h.BECN = 107, true }), v6, make([]byte, 256), "0x07|0x123456||||1|1"},
	}
	file := filepath.Join(t.TempDir(), "p.pcapng")
	f, err := os.Create(file)
	require.NoError(t, err)
	w, err := capture.NewWriter(f, capture.Section{})
	require.NoError(t, err)
	_, err = w.AddInterface(capture.Interface{})
	require.NoError(t, err)
	write := func(frame []byte) { require.NoError(t, w.WritePacket(&capture.Packet{Data: frame})) }
	var want []string
	for i, p := range packets {
		a, b := netip.MustParseAddr(p.addr[0]), netip.MustParseAddr(p.addr[1])
		p.h.IPv6 = a.Is6()
		p.h.SrcIP, p.h.DstIP = a.As16(), b.As16()
		frame, err := p.h.Build(p.payload, nil)
		require.NoError(t, err, i)
		write(frame)
		want = append(want, p.want)
	}
	cnp.SrcIP, cnp.DstIP = netip.MustParseAddr(v4[0]).As16(), netip.MustParseAddr(v4[1]).As16()
	last, err := cnp.Build(make([]byte, 16), nil)
	require.NoError(t, err)
	other := append([]byte(nil), last...)
	other[14+20+3] ^= 1 // not the port of RoCEv2
	write(other)
	write(last[:14+20+8+11]) // cut
	want = append(want, "||||||", "||||||")
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())

	cmd := exec.Command("tshark", "-X", "lua_script:openrnic.lua", "-n", "-r", file, "-T", "fields", "-E", "separator=|", "-e", "openrnic.opcode", "-e", "openrnic.destqp",
		"-e", "openrnic.cnp", "-e", "openrnic.cnp.malformed", "-e", "openrnic.fecn", "-e", "openrnic.becn", "-e", "openrnic.ce")
	var notes strings.Builder
	cmd.Stderr = &notes
	out, err := cmd.Output()
	require.NoError(t, err, notes.String())
	require.NotContains(t, notes.String(), "Lua")
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	require.Equal(t, want, got)

	out, err = exec.Command("tshark", "-X", "lua_script:openrnic.lua", "-n", "-r", file, "-Y", "openrnic.cnp and not openrnic.cnp.malformed", "-T", "fields", "-e", "_ws.col.Info").Output()
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("CNP QP=0x0000d2\n", 3), string(out))
}
