// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// needCore builds the library of rnic_core, if it is not current.
func needCore(t testing.TB, width int) {
	t.Helper()
	if _, err := exec.LookPath("verilator"); err != nil {
		t.Fatal("verilator is not installed: apt-get install verilator")
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	out, err := exec.Command(filepath.Join(root, "verilator", "build.sh"), fmt.Sprint(width)).CombinedOutput()
	require.NoError(t, err, string(out))
}

func eachCore(t *testing.T, f func(t *testing.T, width int)) {
	for _, w := range []int{64, 512} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			needCore(t, w)
			f(t, w)
		})
	}
}

func TestCoreRegisters(t *testing.T) {
	eachCore(t, func(t *testing.T, width int) {
		p, err := NewPair(PairConfig{Width: width})
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close()) }()
		for _, d := range p.Dev {
			r := d.Region(pcie.BARRegisters)
			require.EqualValues(t, 0x434e524f, r.Load32(regs.IDOffset))
			require.Equal(t, regs.LayoutHash, r.Load32(regs.LayoutHashOffset))
			require.EqualValues(t, width, regs.Caps0Reg(r.Load32(regs.Caps0Offset)).DataWidth())
			r.Store64(regs.MACAddrOffset, 0x060504030201)
			require.EqualValues(t, 0x060504030201, r.Load64(regs.MACAddrOffset))
			require.Nil(t, d.Region(1))
			// the doorbell pages take writes of a queue that does not exist, and count them
			d.Region(pcie.BARDoorbells).Store64(regs.SQDoorbellOffset, regs.SQDoorbell{QPN: 0x123, PI: 1}.Encode())
			require.EqualValues(t, 1, r.Load64(regs.BadDoorbellsOffset))
		}
		require.NoError(t, p.Engine.Err())
	})
}

// A NIC without work is idle: a second of its time costs no cycles, and its clock still shows it.
func TestCoreIdle(t *testing.T) {
	eachCore(t, func(t *testing.T, width int) {
		p, err := NewPair(PairConfig{Width: width})
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close()) }()
		r := p.Dev[0].Region(pcie.BARRegisters)
		for range 1000 {
			if r.Load32(regs.StatusOffset)&1 != 0 {
				break
			}
			p.Dev[0].Relax()
		}
		require.NoError(t, p.Engine.Advance(10*simtime.Microsecond))
		before := p.NIC[0].Stats()
		c0 := r.Load64(regs.CyclesOffset)
		require.NoError(t, p.Engine.Advance(simtime.Second))
		c1 := r.Load64(regs.CyclesOffset)
		after := p.NIC[0].Stats()
		require.Less(t, after.CyclesRun-before.CyclesRun, uint64(100))
		want := uint64(simtime.Second / p.NIC[0].ClockPeriod())
		require.InDelta(t, want, c1-c0, 1000)
	})
}

// A frame that is no RoCE packet ends as a verdict and in a counter; memory is not touched.
func TestCoreVerdict(t *testing.T) {
	eachCore(t, func(t *testing.T, width int) {
		lib, err := model.OpenWidth(width, "")
		require.NoError(t, err)
		e := NewEngine(Config{})
		defer func() { require.NoError(t, e.Close()) }()
		n, err := e.AddNIC("n", lib, model.DefaultConfig(width))
		require.NoError(t, err)
		port := e.AddPort("host")
		_, err = e.Connect(port, n, fabric.Config{Latency: DefaultLatency})
		require.NoError(t, err)
		r := n.Device().Region(pcie.BARRegisters)
		require.NoError(t, e.Advance(20*simtime.Microsecond))
		r.Store32(regs.RxCtrlOffset, 1)
		r.Store32(regs.CtrlOffset, 1)
		require.NoError(t, e.Advance(simtime.Microsecond))
		var got []regs.RxVerdict
		n.OnVerdict(func(d []byte, _ uint64) {
			var v regs.RxVerdict
			v.Unmarshal(d)
			got = append(got, v)
		})
		arp := make([]byte, 60)
		arp[12], arp[13] = 0x08, 0x06
		require.NoError(t, port.Send(arp, 0, false))
		require.NoError(t, port.Send(arp, 0, true))
		require.NoError(t, port.Send(arp[:13], 0, false))
		require.NoError(t, e.Advance(20*simtime.Microsecond))
		require.Len(t, got, 3)
		for i, want := range []regs.DropReason{regs.DropReasonNotIP, regs.DropReasonFrameError, regs.DropReasonL2Truncated} {
			require.Equal(t, want, got[i].Reason)
		}
		require.EqualValues(t, 60, got[0].FrameLen)
		require.EqualValues(t, 1, r.Load64(regs.RxDropOffset+8*uint64(regs.DropReasonNotIP)))
	})
}

func TestMissingLibrary(t *testing.T) {
	t.Setenv(model.EnvDir, t.TempDir())
	_, err := NewPair(PairConfig{Width: 512})
	require.ErrorIs(t, err, model.ErrNoLibrary)
	require.ErrorContains(t, err, "librnic_w512.so")
	require.ErrorContains(t, err, "make lib")
	_, err = pcie.Open("sim:width=64")
	require.ErrorIs(t, err, model.ErrNoLibrary)
	_, err = model.OpenWidth(64, "trace")
	require.ErrorContains(t, err, "verilator/build.sh 64 trace")

	bad := filepath.Join(os.Getenv(model.EnvDir), "librnic_w64.so")
	require.NoError(t, os.WriteFile(bad, []byte("no library"), 0o644))
	_, err = NewPair(PairConfig{Width: 64})
	require.ErrorContains(t, err, bad)
	require.ErrorContains(t, err, "rebuild")
}

func TestOpenURL(t *testing.T) {
	needCore(t, 64)
	d, err := pcie.Open("sim:width=64&seed=3")
	require.NoError(t, err)
	require.Equal(t, "sim:nic", d.Name())
	require.EqualValues(t, 0x434e524f, d.Region(0).Load32(0))
	require.NoError(t, d.Close())
	require.Error(t, d.Err())
	for _, u := range []string{"sim:width=x", "sim:colour=1", "sim:%zz", "sim:seed=-"} {
		_, err := pcie.Open(u)
		require.Error(t, err, u)
	}
}

// BenchmarkCoreIdle evaluates idle cycles one by one: the floor of the cost of a cycle.
func BenchmarkCoreIdle(b *testing.B) {
	for _, w := range []int{64, 512} {
		b.Run(fmt.Sprint(w), func(b *testing.B) {
			needCore(b, w)
			lib, err := model.OpenWidth(w, "")
			require.NoError(b, err)
			c := model.DefaultConfig(w)
			c.NoSkip = true
			n, err := lib.New(c)
			require.NoError(b, err)
			defer n.Close()
			begin, cpu := n.Cycle(), cpuSeconds(b)
			for b.Loop() {
				n.Run(n.Cycle()+1000, 0)
			}
			b.ReportMetric(float64(n.Cycle()-begin)/(cpuSeconds(b)-cpu)/1e6, "Mcycles/cpu-s")
		})
	}
}

func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
