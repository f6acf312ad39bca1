// SPDX-License-Identifier: Apache-2.0

package cosim_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
)

// TestSwitch: frames of the program through a switch in the engine's time, also when all else is quiet and the engine jumps.
func TestSwitch(t *testing.T) {
	e := cosim.NewEngine(cosim.Config{})
	defer e.Close()
	rate := fabric.SwitchPortConfig{RateMbps: 10_000}
	sw, err := e.AddSwitch(fabric.SwitchConfig{Name: "tor", Ports: []fabric.SwitchPortConfig{rate, rate, rate}})
	require.NoError(t, err)
	var hosts []*cosim.Port
	for i, name := range []string{"a", "b", "c"} {
		p := e.AddPort(name)
		l, err := e.Connect(p, sw.Port(i), fabric.Config{Latency: 500 * simtime.Nanosecond})
		require.NoError(t, err)
		require.Equal(t, name+"-tor."+string(rune('0'+i)), l.Name())
		hosts = append(hosts, p)
	}
	_, err = e.Connect(e.AddPort("d"), sw.Port(0), fabric.Config{Latency: simtime.Microsecond})
	require.ErrorContains(t, err, "already on link")
	_, err = e.AddSwitch(fabric.SwitchConfig{Name: "none"})
	require.ErrorContains(t, err, "without ports")

	frame := func(from, to byte, n uint32) []byte {
		f := make([]byte, 1000)
		f[0], f[5], f[6], f[11] = 2, to, 2, from
		binary.BigEndian.PutUint32(f[20:], n)
		return f
	}
	require.NoError(t, hosts[2].Send(frame(3, 9, 0), 0, false))
	require.NoError(t, e.Advance(10*simtime.Microsecond))
	for i := range 2 {
		f, _, _ := hosts[i].Recv()
		require.NotNil(t, f, "flooded")
	}
	start := 20 * simtime.Microsecond
	const n = 50
	for k := range uint32(n) {
		require.NoError(t, hosts[0].Send(frame(1, 3, k), start, false))
		require.NoError(t, hosts[1].Send(frame(2, 3, k), start, false))
	}
	require.NoError(t, e.Advance(200*simtime.Microsecond))
	want := start + 2*500*simtime.Nanosecond + simtime.Time(8+1000+4)*800
	var next [3]uint32
	for i := range 2 * n {
		f, at, bad := hosts[2].Recv()
		require.NotNil(t, f, "frame %d", i)
		require.False(t, bad)
		require.Equal(t, want+simtime.Time(i*1024*800), at, "frame %d", i)
		require.Equal(t, next[f[11]], binary.BigEndian.Uint32(f[20:]))
		next[f[11]]++
	}
	st := sw.Stats(2)
	require.EqualValues(t, 2*n, st.TxFrames)
	require.Equal(t, (2*n-1)*1000, st.PeakBytes, "all of them came at once")
	require.NoError(t, e.Close())
	_, err = e.AddSwitch(fabric.SwitchConfig{Name: "late", Ports: []fabric.SwitchPortConfig{rate}})
	require.ErrorIs(t, err, cosim.ErrClosed)
}
