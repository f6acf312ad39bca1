// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
)

const small = `name: small
times-at: 100gbit
topology:
  hosts: [a, b, c]
  switches:
    - {name: tor, buffer: 1MB, latency: 300ns}
  links:
    - {ends: [a, tor], rate: 10gbit}
    - {ends: [b, tor]}
    - ends: [tor, c]
      latency: 2us
      limit: 500KB
      red: {kmin: 5KB, kmax: 0x100, pmax: 1%}
      pfc: {xoff: 60KB, xon: 40KB}
flows:
  - {from: a, to: c, service: rc, op: send, size: 64KB, count: 10, start: 1.5us, tos: 0x6a, qps: 2, depth: 3, mtu: 4096}
  - {from: b, to: c, size: 1, count: 1}
faults:
  - {link: a-tor, rule: drop 1% packet a>b}
parameters:
  ack_ctrl.coalesce: 8
  tx_ctrl.window: 0x40
`

// TestScenarioFile: every key and unit ends where it belongs.
func TestScenarioFile(t *testing.T) {
	s, err := Parse("small.yaml", []byte(strings.Replace(small, "0x100", "200000", 1)))
	require.NoError(t, err)
	require.Equal(t, "small", s.Name)
	require.EqualValues(t, 100e9, s.TimesAt)
	require.Equal(t, []string{"a", "b", "c"}, s.Topology.Hosts)
	require.Equal(t, Switch{"tor", 1 << 20, Time(300 * simtime.Nanosecond)}, s.Topology.Switches[0])
	l := s.Topology.Links
	require.EqualValues(t, 10e9, l[0].Rate)
	require.EqualValues(t, simtime.Microsecond, l[1].Latency, "default")
	require.EqualValues(t, 2*simtime.Microsecond, l[2].Latency)
	require.Equal(t, RED{5 << 10, 200_000, 0.01}, *l[2].RED)
	require.Equal(t, PFC{60 << 10, 40 << 10}, *l[2].PFC)
	require.EqualValues(t, 500<<10, l[2].Limit)
	require.Equal(t, Flow{Name: "a->c", From: "a", To: "c", Service: "rc", Op: "send", Size: 64 << 10, Count: 10, Start: Time(1500 * simtime.Nanosecond), TOS: 106, QPs: 2,
		Depth: 3, MTU: 4096}, s.Flows[0])
	require.Equal(t, Flow{Name: "b->c", From: "b", To: "c", Service: "rc", Op: "write", Size: 1, Count: 1, QPs: 1, Depth: 8, MTU: 1024}, s.Flows[1])
	require.Equal(t, []Fault{{Link: "a-tor", Rule: "drop 1% packet a>b"}}, s.Faults)
	require.Equal(t, map[string]Int{"ack_ctrl.coalesce": 8, "tx_ctrl.window": 64}, s.Parameters)
	p, err := l[2].port(1000)
	require.NoError(t, err)
	require.EqualValues(t, 1000, p.RateMbps)
	require.EqualValues(t, 0xff, p.PFC)
	require.Equal(t, 500<<10, p.Queues[5].Limit)
	require.Equal(t, 200_000, p.Queues[5].RED.Kmax)
}

// TestScenarioErrors: what cannot work is refused with file, place, key and what would be right.
func TestScenarioErrors(t *testing.T) {
	good := strings.Replace(small, "0x100", "200000", 1)
	for _, c := range []struct{ old, new, key, problem, fix string }{
		{"name: small", "nmae: small", "nmae", "unknown key (did you mean name?)", "want one of name, about"},
		{"size: 64KB", "length: 64KB", "flows[0].length", "unknown key", "size"},
		{"{from: b, to: c", "{from: b, to: z", "flows[1].to", `there is no host "z"`, "want one of a, b, c"},
		{"{from: b, to: c", "{from: tor, to: c", "flows[1].from", `there is no host "tor"`, "want one of a, b, c"},
		{"{from: b, to: c", "{from: b, to: b", "flows[1].to", "ends where it begins", "another host"},
		{"rate: 10gbit", "rate: 0", "topology.links[0].rate", `"0" cannot be used`, "rate above 0"},
		{"rate: 10gbit", "rate: 0gbit", "topology.links[0].rate", `"0gbit" cannot be used`, "rate above 0"},
		{"rate: 10gbit", "rate: 10", "topology.links[0].rate", `"10" cannot be used`, "25gbit"},
		{"rate: 10gbit", "rate: 10gbit, rate: 1gbit", "", "", ""},
		{"size: 64KB", "size: 0", "flows[0].size", "0 cannot be used", "1 to"},
		{"count: 10", "count: -1", "flows[0].count", `"-1" cannot be used`, "whole number"},
		{"count: 10", "count: [1, 2]", "flows[0].count", "want one value", ""},
		{"start: 1.5us", "start: 5", "flows[0].start", `"5" cannot be used`, "10us"},
		{"tos: 0x6a", "tos: 256", "flows[0].tos", "256 cannot be used", "0 to 255"},
		{"mtu: 4096", "mtu: 1500", "flows[0].mtu", "1500 cannot be used", "want 256"},
		{"qps: 2", "qps: 65", "flows[0].qps", "65 cannot be used", "1 to 64"},
		{"op: send", "op: receive", "flows[0].op", `no operation "receive"`, "write, send or read"},
		{"service: rc", "service: ud", "flows[0].service", `no service "ud"`, "rc or uc"},
		{"service: rc", "service: uc", "flows[0].op", "send on uc", "op: write"},
		{"kmin: 5KB", "kmin: 300KB", "topology.links[2]", "Kmin", "docs/lab.md"},
		{"kmax: 200000, ", "", "topology.links[2]", "red without kmax", ""},
		{"pmax: 1%", "pmax: 101%", "topology.links[2].red.pmax", `"101%" cannot be used`, "0% to 100%"},
		{"xon: 40KB", "xon: 70KB", "topology.links[2]", "XOFF", ""},
		{"ends: [b, tor]", "ends: [b, c]", "topology.links[2].ends[1]", "host c has a link already", "put a switch between"},
		{"ends: [b, tor]", "ends: [b, top]", "topology.links[1].ends[1]", `no host or switch "top"`, "want one of a, b, c, tor"},
		{"ends: [b, tor]", "ends: [b]", "topology.links[1].ends", "1 ends", "[host, switch]"},
		{"    - {ends: [b, tor]}\n", "", "topology.hosts[1]", "no way from a to b", "add a link"},
		{"    - {ends: [b, tor]}\n", "    - {ends: [b, tor]}\n    - {ends: [tor, tor]}\n", "topology.links[2].ends", "connected already", "one way only"},
		{"hosts: [a, b, c]", "hosts: [a, b, c, a]", "topology.hosts[3]", "used twice", "of its own"},
		{"hosts: [a, b, c]", "hosts: [a]", "topology.hosts", "1 hosts", "2 to 200"},
		{"hosts: [a, b, c]", "hosts: a", "topology.hosts", "want a list", "[x, y]"},
		{"link: a-tor", "link: a-b", "faults[0].link", `no link "a-b"`, "a-tor, b-tor, tor-c"},
		{"drop 1% packet a>b", "lose 1% of everything", "faults[0].rule", "fault rule", "rnic faults"},
		{"tx_ctrl.window: 0x40", "tx_ctrl.windows: 1", "parameters.tx_ctrl.windows", `no field "windows"`, "registers.md"},
		{"tx_ctrl.window: 0x40", "rp_nothing: 1", "parameters.rp_nothing", `no register "rp_nothing"`, "registers.md"},
		{"tx_ctrl.window: 0x40", "rx_frames: 1", "parameters.rx_frames", "cannot be set", ""},
		{"ack_ctrl.coalesce: 8", "ack_ctrl.coalesce: 256", "parameters.ack_ctrl.coalesce", "does not fit into 8 bits", ""},
		{"limit: 500KB", "tbf: {burst: 32kb}", "topology.links[2].tbf.rate", "no rate", "100mbit"},
		{"rate: 10gbit}", "rate: 10gbit, tbf: {rate: 20gbit, burst: 32kb}}", "topology.links[0].tbf.rate", "more than the link", ""},
		{"limit: 500KB", "tc-red: {limit: 400000, min: 30000, max: 20000}", "topology.links[2]", "min 30000 and max 20000", ""},
		{"flows:", "flows: [", "", "not YAML", "docs/lab.md"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		require.NotEqual(t, good, text, c.old)
		_, err := Parse("dir/my.yaml", []byte(text))
		var bad *ScenarioError
		require.True(t, errors.As(err, &bad), "%s: %v", c.new, err)
		if c.problem == "" {
			continue // refused by the YAML parser or by us
		}
		require.Equal(t, c.key, bad.Key, err)
		require.Contains(t, bad.Problem, c.problem)
		require.Contains(t, bad.Fix, c.fix, err)
		require.Contains(t, err.Error(), "dir/my.yaml:", "the file")
		require.Contains(t, err.Error(), c.key)
		if last := c.key[strings.LastIndex(c.key, ".")+1:]; c.key != "" && c.problem != "no rate" && !strings.HasSuffix(last, "]") { // then the file has the key
			require.Contains(t, strings.Split(text, "\n")[bad.Line-1], last, err)
		} else if c.key != "" {
			require.Positive(t, bad.Line)
		}
	}
	_, err := Parse("e.yaml", nil)
	require.ErrorContains(t, err, "e.yaml: no scenario in it")
	_, err = Parse("e.yaml", []byte("topology: {hosts: [a, b], links: [{ends: [a, b]}]}"))
	require.ErrorContains(t, err, "e.yaml:1:9: flows: no flow; want at least one")
	_, err = Parse("e.yaml", []byte("topology: {hosts: [a, b], links: [{ends: [a, b], red: {kmin: 1, kmax: 2, pmax: 1}}]}"))
	require.ErrorContains(t, err, "e.yaml:1:50: topology.links[0].red: both ends are hosts, there is no queue; put a switch at one end")
	_, err = Load("no-such-scenario")
	require.ErrorContains(t, err, "no such file; want a YAML file or one of incast-2to1, incast-8to1")
}

// TestScenariosOfTheProgram can all be loaded by name, and say what they are.
func TestScenariosOfTheProgram(t *testing.T) {
	require.Equal(t, []string{"incast-2to1", "incast-8to1", "lossy", "parking-lot", "staggered", "tc-shaped", "victim-pfc"}, Scenarios())
	for _, name := range Scenarios() {
		s, err := Load(name)
		require.NoError(t, err)
		require.Equal(t, name, s.Name)
		require.NotEmpty(t, s.About)
	}
	tc, err := Load("tc-shaped")
	require.NoError(t, err)
	p, err := tc.Topology.Links[1].port(1e5)
	require.NoError(t, err)
	require.EqualValues(t, 100, p.ShapeMbps)
	require.Equal(t, 32<<10, p.ShapeBurst)
	require.Equal(t, 400_000, p.Queues[0].Limit, "of red, below the 657768 bytes of tbf")
	a := p.Queues[0].Average
	require.Equal(t, []int{30_000, 100_000, 1000, 55}, []int{a.Min, a.Max, a.AvPkt, a.Burst})
	require.EqualValues(t, 100, a.BandwidthMbps)
}
