// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
)

// perfJSON runs a test and gives its document.
func perfJSON(t *testing.T, args ...string) perfDocument {
	t.Helper()
	code, out, notes := rnic(t, nil, append(append([]string{"perf"}, args...), "--json")...)
	require.Zero(t, code, notes)
	var doc perfDocument
	require.NoError(t, json.Unmarshal([]byte(out), &doc), out)
	require.NotEmpty(t, doc.Results)
	return doc
}

func TestPerfBandwidth(t *testing.T) {
	for _, op := range []string{"write-bw", "send_bw"} {
		// long enough for the first message of a connection, which waits for credits if it is a SEND
		doc := perfJSON(t, op, "-n", "256", "--report_gbits")
		r := doc.Results[0]
		require.Equal(t, 65536, r.MsgSize)
		require.Equal(t, 256, r.Iterations)
		require.InDelta(t, 97.7, *r.Average, 1.5, "goodput of the link is 98.1 Gb/s")
		require.GreaterOrEqual(t, *r.Peak, *r.Average*0.9999)
		require.Less(t, *r.Peak, 100.0, "more than the link carries")
		require.InDelta(t, *r.Average*1e3/8/65536, *r.MsgRate, 1e-6)
		require.Nil(t, r.Typical)
		require.Equal(t, "Gb/sec", doc.Info.BWUnit)

		both := perfJSON(t, op, "-n", "256", "--report_gbits", "-b", "-q", "4")
		require.Greater(t, *both.Results[0].Average, 1.7**r.Average)
		require.Less(t, *both.Results[0].Peak, 200.0)
	}
	uc := perfJSON(t, "write-bw", "-n", "64", "--report_gbits", "-c", "UC")
	require.Equal(t, "UC", uc.Info.Connection)
	require.InDelta(t, 97.7, *uc.Results[0].Average, 1.5)
	// perftest's unit, small inline messages, the small NIC by URL
	mib := perfJSON(t, "write-bw", "sim:width=64", "-s", "1024", "-n", "40")
	require.Equal(t, "MiB/sec", mib.Info.BWUnit)
	require.InDelta(t, 110, *mib.Results[0].Average, 6, "1 Gb/s are 119 MiB/s less headers")
	small := perfJSON(t, "send-bw", "-s", "64", "-I", "64", "-n", "500", "-q", "8", "-t", "4")
	require.Zero(t, small.Info.Overflow)
	require.Greater(t, *small.Results[0].MsgRate, 5.0)
}

func TestPerfLatency(t *testing.T) {
	write := perfJSON(t, "write-lat", "-n", "50").Results[0]
	inline := perfJSON(t, "write-lat", "-n", "50", "-I", "32").Results[0]
	send := perfJSON(t, "send-lat", "-n", "50").Results[0]
	require.Equal(t, 2, write.MsgSize)
	require.InDelta(t, 1.47, *write.Typical, 0.1, "the latency of rnic bench")
	require.Less(t, *inline.Typical, *write.Typical-0.4, "no payload read of 500 ns")
	require.Greater(t, *send.Typical, *write.Typical)
	uc := perfJSON(t, "send-lat", "-n", "50", "-c", "UC").Results[0]
	require.InDelta(t, *send.Typical, *uc.Typical, 0.1)
	for _, r := range []perfSeries{write, inline, send, uc} {
		require.LessOrEqual(t, *r.Min, *r.Typical)
		require.LessOrEqual(t, *r.Typical, *r.P99)
		require.LessOrEqual(t, *r.P99, *r.P999)
		require.LessOrEqual(t, *r.P999, *r.Max)
		require.Nil(t, r.Average)
	}
	// a delay of 10 us for the requests of one side is 5 us of each half round trip
	slow := perfJSON(t, "write-lat", "-n", "20", "--fault", "delay 10us every RC_RDMA_WRITE_ONLY a>b").Results[0]
	require.InDelta(t, *write.Typical+5, *slow.Typical, 0.1)
	// a loss is a transport timer: 4.096 us * 2^5
	lost := perfJSON(t, "send-lat", "-n", "20", "-u", "5", "--fault", "drop 7th RC_SEND_ONLY a>b").Results[0]
	require.InDelta(t, *send.Typical, *lost.Typical, 0.1)
	require.InDelta(t, *send.Typical+131/2.0, *lost.Max, 6)
}

func TestPerfReadAndAtomics(t *testing.T) {
	bw := perfJSON(t, "read-bw", "-n", "64", "--report_gbits").Results[0]
	require.Greater(t, *bw.Average, 80.0)
	require.Less(t, *bw.Peak, 100.0)
	both := perfJSON(t, "read-bw", "-n", "64", "--report_gbits", "-b", "-q", "4").Results[0]
	require.Greater(t, *both.Average, 1.5**bw.Average)
	small := perfJSON(t, "read_bw", "sim:width=64", "-s", "2048", "-n", "40").Results[0]
	require.Greater(t, *small.Average, 70.0)
	rate := perfJSON(t, "atomic-bw", "-n", "100", "-q", "2").Results[0]
	require.Equal(t, 8, rate.MsgSize)
	require.Greater(t, *rate.MsgRate, 0.3)

	write := perfJSON(t, "write-lat", "-n", "20").Results[0]
	for _, test := range []string{"read-lat", "atomic-lat"} {
		doc := perfJSON(t, test, "-n", "30")
		require.Equal(t, "post to completion", doc.Info.LatencyKind)
		require.Greater(t, *doc.Results[0].Typical, *write.Typical, "a whole round trip")
		require.Less(t, *doc.Results[0].Typical, 3**write.Typical)
	}
}

func TestPerfOptions(t *testing.T) {
	all := perfJSON(t, "write-bw", "-a", "-n", "8", "-t", "8")
	require.Len(t, all.Results, 20)
	require.Equal(t, 1<<20, all.Results[19].MsgSize)
	require.Greater(t, *all.Results[19].Average, *all.Results[5].Average)

	timed := perfJSON(t, "write-bw", "-D", "50us", "-s", "8192", "--report_gbits")
	require.InDelta(t, 50e-6*97e9/8/8192, timed.Results[0].Iterations, 150) // those in flight at the end are waited for
	require.Equal(t, timed.Results, perfJSON(t, "write-bw", "-D", "0.00005", "-s", "8192", "--report_gbits", "--threads", "2", "-F").Results)

	pcap := filepath.Join(t.TempDir(), "perf.pcapng")
	doc := perfJSON(t, "send-bw", "-n", "60", "-s", "9000", "--loss", "2%", "-u", "5", "--seed", "5", "--pcap", pcap)
	require.NotZero(t, doc.Info.FaultsDone[0].Dropped)
	require.Equal(t, []string{"loss 2%"}, doc.Info.Faults)
	require.EqualValues(t, 5, doc.Info.Seed)
	r, err := capture.Open(pcap)
	require.NoError(t, err)
	defer r.Close()
	dropped := 0
	for {
		pkt, err := r.Next()
		if err != nil {
			break
		}
		var p roce.Packet
		require.Equal(t, roce.ReasonNone, p.Parse(pkt.Data, nil))
		dropped += len(pkt.Comments)
	}
	require.EqualValues(t, doc.Info.FaultsDone[0].Dropped+doc.Info.FaultsDone[1].Dropped, dropped)
	again := filepath.Join(t.TempDir(), "perf.pcapng")
	require.Equal(t, doc.Results, perfJSON(t, "send-bw", "-n", "60", "-s", "9000", "--loss", "2%", "-u", "5", "--seed", "5", "--pcap", again, "--threads", "2").Results)
	one, err := os.ReadFile(pcap)
	require.NoError(t, err)
	two, err := os.ReadFile(again)
	require.NoError(t, err)
	require.Equal(t, one, two)
}

// A receiver that is sent more than it can take says so; with flow control it stops the sender.
func TestPerfTellsOfOverflow(t *testing.T) {
	slow := []string{"perf", "write-bw", "-s", "4096", "-n", "200", "-q", "4", "-u", "5", "--dma-write", "3000"}
	code, out, notes := rnic(t, nil, append(slow, "--no-pfc")...)
	require.Zero(t, code, notes)
	require.Regexp(t, `server dropped \d+ frames for want of room`, out)
	code, out, notes = rnic(t, nil, slow...)
	require.Zero(t, code, notes)
	require.NotContains(t, out, "dropped")
}

// The table has perftest's columns.
func TestPerfText(t *testing.T) {
	code, out, notes := rnic(t, nil, "perf", "write-bw", "-n", "5")
	require.Zero(t, code, notes)
	require.Contains(t, out, "RDMA_Write BW Test")
	require.Contains(t, out, " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n")
	m := regexp.MustCompile(`(?m)^ 65536\s+5\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)$`).FindStringSubmatch(out)
	require.NotNil(t, m, out)
	v, err := strconv.ParseFloat(m[2], 64)
	require.NoError(t, err)
	require.Greater(t, v, 5000.0)
	code, out, notes = rnic(t, nil, "perf", "send-lat", "-n", "5", "--loss", "0%")
	require.Zero(t, code, notes)
	require.Contains(t, out, "t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]")
	require.Contains(t, out, "no fault (seed 1)")
}

func TestPerfRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"write-bw", "-s", "0"}, exitUsage, "--size 0: want 1 to"},
		{[]string{"write-bw", "-n", "-3"}, exitUsage, "--iters -3: want 1 to"},
		{[]string{"write-bw", "-q", "121"}, exitUsage, "--qp 121: want 1 to 120"},
		{[]string{"write-bw", "-q", "100", "-t", "1000"}, exitUsage, "100000 completions; a CQ holds 16000"},
		{[]string{"write-bw", "-m", "1500"}, exitUsage, "256, 512, 1024, 2048 or 4096 bytes"},
		{[]string{"write-bw", "-I", "97"}, exitUsage, "--inline_size 97: want 0 to 96"},
		{[]string{"write-bw", "-D", "soon"}, exitUsage, "--duration soon: want a time above 0"},
		{[]string{"write-bw", "--width", "65"}, exitUsage, "--width 65"},
		{[]string{"write-bw", "vfio:0000:65:00.0"}, exitUsage, "only sim: has two NICs"},
		{[]string{"write-bw", "sim:speed=3"}, exitUsage, `option "speed" is unknown`},
		{[]string{"write-bw", "sim:width=64", "--width", "512"}, exitUsage, "width 64, but --width 512"},
		{[]string{"write-bw", "sim:seed=x"}, exitUsage, "seed"},
		{[]string{"write-bw", "--server-opt", "-m 1024"}, exitUsage, "path MTU: 4096 at the client, 1024 at the server (-m); both sides must be given the same"},
		{[]string{"write-bw", "-s", "4096", "--server-opt", "-s 8192"}, exitUsage, "message size: 4096 at the client, 8192 at the server (-s)"},
		{[]string{"send-bw", "-D", "1ms", "--server-opt", "-D 2ms"}, exitUsage, "duration: 1ms at the client, 2ms at the server (-D)"},
		{[]string{"read-bw", "-c", "UC"}, exitUsage, "--connection UC: read-bw is RC only"},
		{[]string{"read-lat", "-I", "8"}, exitUsage, "unknown shorthand flag: 'I'"},
		{[]string{"atomic-lat", "-s", "16"}, exitUsage, "unknown shorthand flag: 's'"},
		{[]string{"send-bw", "-c", "UD"}, exitUsage, "--connection UD: want RC or UC"},
		{[]string{"send-bw", "-c", "uc", "--server-opt", "-c RC"}, exitUsage, "connection type: UC at the client, RC at the server (-c)"},
		{[]string{"send-bw", "-b", "--server-opt", "-b=false"}, exitUsage, "bidirectional: true at the client, false at the server (-b)"},
		{[]string{"write-bw", "--server-opt", "-z"}, exitUsage, `--server-opt "-z": unknown shorthand flag`},
		{[]string{"write-bw", "--server-opt", "x"}, exitUsage, `--server-opt: "x" is no option`},
		{[]string{"write-bw", "--server-opt", "-m 3"}, exitUsage, `--server-opt: --mtu`},
		{[]string{"write-lat", "-q", "2"}, exitUsage, "unknown shorthand flag: 'q'"},
		{[]string{"write-bw", "--fault", "drop"}, exitUsage, "column 5: at the end"},
		{[]string{"write-bw", "--loss", "x"}, exitUsage, "--loss"},
		{[]string{"write-bw", "a", "b"}, exitUsage, "at most 1 arg"},
		{[]string{"write-bw", "--pcap", "/does/not/exist/x"}, exitFailed, "capture: open /does/not/exist/x"},
		{[]string{"write-bw", "-n", "3", "-u", "1", "--loss", "100%"}, exitFailed, "transport retry counter exceeded"},
		{[]string{"send-lat", "-n", "3", "-u", "1", "--loss", "100%"}, exitFailed, "transport retry counter exceeded"},
		{[]string{"write-lat", "-n", "3", "-u", "1", "--loss", "100%"}, exitFailed, "transport retry counter exceeded"},
		{[]string{"no-such-test"}, exitUsage, "no-such-test"},
	} {
		args := append([]string{"perf"}, c.args...)
		code, _, notes := rnic(t, nil, args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, notes)
		require.Contains(t, notes, c.text, c.args)

		// with --json, the same is a JSON document and nothing else
		code, out, _ := rnic(t, nil, append([]string{"perf", c.args[0], "--json"}, c.args[1:]...)...)
		require.Equal(t, c.code, code)
		var doc map[string]string
		require.NoError(t, json.Unmarshal([]byte(out), &doc), "%v: %q", c.args, out)
		require.NotEmpty(t, doc["error"])
	}
	// a server option that does not matter to the other side may differ
	doc := perfJSON(t, "write-bw", "-n", "3", "--server-opt", "-t 64 -I 32")
	require.Equal(t, 3, doc.Results[0].Iterations)
}
