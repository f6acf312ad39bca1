// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
)

var someResults = []Result{
	{ID: "L1", Name: "RDMA works", Pass: true, Numbers: Numbers{{"messages posted", 60, ""}, {"largest queue", 1.5, "us"}},
		Controls: []ControlResult{{"wrong bytes", true, "1 differs"}}},
	{ID: "L2", Name: "blind", Problem: "the check is blind: it passes with nothing", Controls: []ControlResult{{"nothing", false, ""}, {"less", true, "no"}}},
	{ID: "L6", Name: "CNPs come back", NotAvailable: "not available: no NP", Problem: "not available: no NP"},
}

func TestPrintLevels(t *testing.T) {
	var b strings.Builder
	PrintLevels(&b, someResults)
	require.Equal(t, `L1  RDMA works                                   pass
      messages posted 60, largest queue 1.5 us
      control, wrong bytes: fails as it must: 1 differs
L2  blind                                        FAIL
      the check is blind: it passes with nothing
      control, nothing: PASSES, the check is blind
      control, less: fails as it must: no
L6  CNPs come back                               not available: no NP
`, b.String())
}

func TestLevelsDocument(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&Document{Width: 512, Seed: 3, Levels: LevelsDocument(someResults)}).Write(&b))
	var doc struct {
		Width  int  `json:"data_width"`
		Pass   bool `json:"pass"`
		Levels []struct {
			ID           string             `json:"id"`
			Name         string             `json:"name"`
			Pass         bool               `json:"pass"`
			ControlFails bool               `json:"control_fails"`
			NotAvailable string             `json:"not_available"`
			Numbers      map[string]float64 `json:"numbers"`
		} `json:"levels"`
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &doc))
	require.Equal(t, 512, doc.Width)
	require.Len(t, doc.Levels, 3)
	l := doc.Levels
	require.Equal(t, map[string]float64{"messages_posted": 60, "largest_queue": 1.5}, l[0].Numbers)
	require.True(t, l[0].Pass && l[0].ControlFails)
	require.False(t, l[1].Pass || l[1].ControlFails, "one of two controls passes")
	require.False(t, l[2].Pass || l[2].ControlFails)
	require.Equal(t, "not available: no NP", l[2].NotAvailable)
	require.Equal(t, "requests_with_tos_106_dscp_26_ect0", key("requests with ToS 106 (DSCP 26, ECT(0))"))
}

// TestClimb: a level passes if its check says yes to the subject and no to every control; what cannot be run is an error.
func TestClimb(t *testing.T) {
	always := func(err error) func(*trial) (Numbers, error) {
		return func(*trial) (Numbers, error) { return nil, err }
	}
	pair := func(int) *Scenario { return star([]string{"a", "b"}, Flow{From: "a", To: "b", Size: 1, Count: 1}) }
	same := control{name: "same"}
	for _, c := range []struct {
		name    string
		l       level
		pass    bool
		problem string
		err     string
	}{
		{"no and no", level{check: always(findingf("never")), controls: []control{same}}, false, "never", ""},
		{"yes and yes", level{check: always(nil), controls: []control{same}}, false, "the check is blind: it passes with same", ""},
		{"a failure is not a no", level{check: always(errors.New("broken")), controls: []control{same}}, false, "", "broken"},
		{"not available", level{needs: func() error { return needRegisters("dragon", "rx_frames", "fire") }}, false, "not available: the RTL has no dragon (register fire)", ""},
		{"cannot tell", level{needs: func() error { return errors.New("broken") }}, false, "", "broken"},
		{"yes and no", level{check: func(t *trial) (Numbers, error) {
			if t.tools.filter.Port == 1 {
				return nil, findingf("no")
			}
			return nil, nil
		}, controls: []control{{name: "port", tools: func(x *instruments) { x.filter.Port = 1 }}}}, true, "", ""},
	} {
		c.l.scenario = pair
		r, err := c.l.climb(Config{Width: 512}, goodInstruments(), func(string) {})
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.pass, r.Pass, c.name)
		require.Equal(t, c.problem, r.Problem, c.name)
	}
}

// someRun is made by hand: two flows of 1000 bytes per us, one of which stops half way, marks in the second half.
func someRun() *Run {
	const us = simtime.Microsecond
	r := &Run{Scenario: &Scenario{Name: "hand-made", About: "a test", Topology: Topology{Hosts: []string{"a", "b"}, Switches: []Switch{{Name: "tor"}}}},
		Sample: us, Start: 10 * us, End: 109 * us, LineMbps: 1e5, Hosts: []HostResult{{"a", map[string]uint64{"rx_becn": 3}}, {"b", map[string]uint64{}}}}
	depth := make([]int, 120)
	for i := 60; i < 120; i++ {
		depth[i] = 20_000
	}
	r.Links = []LinkResult{{Name: "a-tor", Ends: []string{"a", "tor"}, Port: [2]*fabric.SwitchPortStats{nil, {PeakBytes: 64, Depth: make([]int, 120)}}},
		{Name: "tor-b", Ends: []string{"tor", "b"}, Port: [2]*fabric.SwitchPortStats{{PeakBytes: 20_000, Depth: depth, Marked: 50}, nil}}}
	f1, f2 := FlowResult{Flow: Flow{Name: "one"}}, FlowResult{Flow: Flow{Name: "two <&>"}}
	for i := range 100 {
		f1.Rate = append(f1.Rate, 1000)
		f2.Rate = append(f2.Rate, map[bool]int{true: 1000}[i < 50])
		s := Seen{At: r.Start + simtime.Time(i)*us, Good: true, Opcode: roce.RCWriteMiddle, TOS: 2}
		if i >= 50 {
			s.TOS = 3
		}
		r.Links[1].Seen[0] = append(r.Links[1].Seen[0], s)
		if i%10 == 0 {
			r.Links[0].Seen[1] = append(r.Links[0].Seen[1], Seen{At: s.At, Good: true, Opcode: roce.CNP})
		}
	}
	r.Flows = []FlowResult{f1, f2}
	return r
}

func TestOver(t *testing.T) {
	r := someRun()
	s := r.Over(1000)
	require.Equal(t, simtime.Microsecond, s.Step)
	require.Len(t, s.Flows[0].Values, 100)
	require.Equal(t, 8.0, s.Flows[0].Values[99], "1000 bytes per us")
	require.Len(t, s.Queues, 1, "the short one is left out")
	require.Equal(t, "tor>b", s.Queues[0].Name)
	require.Equal(t, []float64{0, 20_000}, s.Queues[0].Values[49:51])
	s = r.Over(20)
	require.Equal(t, 5*simtime.Microsecond, s.Step)
	require.Equal(t, []float64{8, 0}, s.Flows[1].Values[9:11])
	require.Equal(t, []float64{0, 5}, s.Marks.Values[9:11])
	require.Equal(t, []float64{1, 0}, s.CNPs.Values[:2])
	require.Equal(t, 50.0, s.Marks.sum())
	require.Zero(t, s.Pauses.sum())
}

// TestPlot: SVG and PNG show the same curves where they belong.
func TestPlot(t *testing.T) {
	s := someRun().Over(100)
	svg := s.SVG("a <title>")
	d := xml.NewDecoder(bytes.NewReader(svg))
	texts, lines := []string{}, 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch e := tok.(type) {
		case xml.CharData:
			texts = append(texts, string(e))
		case xml.StartElement:
			for _, a := range e.Attr {
				if a.Name.Local == "stroke-width" && a.Value == "1.5" {
					lines++
				}
			}
		}
	}
	require.Equal(t, 2+1+2, lines, "flows, queue, marks and CNPs")
	for _, want := range []string{"a <title>", "two <&>", "tor>b", "CE marks", "CNPs", "20000", "0 us", "100"} {
		require.Contains(t, texts, want)
	}
	data, err := s.PNG("a <title>")
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, plotWidth, s.height()), img.Bounds())
	// the first flow is flat at 8 of 8 Gb/s, at the top of the first panel; the second is there only in the first half, under it
	near := func(x, y int, c color.RGBA) bool {
		for dy := -2; dy <= 2; dy++ {
			r, g, b, _ := img.At(x, y+dy).RGBA()
			if abs(int(r>>8)-int(c.R))+abs(int(g>>8)-int(c.G))+abs(int(b>>8)-int(c.B)) < 120 { // edges are blended with what is below
				return true
			}
		}
		return false
	}
	top, bottom := plotTop+22, plotTop+panelHeight-24
	right := plotLeft + (plotRight-plotLeft)*3/4
	require.True(t, near(right, top, rgb(colors[0])), "flow one")
	require.True(t, near(right, bottom, rgb(colors[1])) || near(right, bottom, rgb("#000000")), "flow two has stopped")
	require.False(t, near(right, (top+bottom)/2, rgb(colors[0])) || near(right, (top+bottom)/2, rgb(colors[1])))
	require.Equal(t, 0.5, tick(2, 4))
	require.Equal(t, 20.0, tick(100, 5))
	require.Equal(t, 1.0, tick(0, 4))
}

func TestPrintScenario(t *testing.T) {
	r := someRun()
	r.Flows[0].Error, r.Flows[0].Failed = "no answer", 2
	var b strings.Builder
	r.Print(&b, []Check{{"one", ""}, {"two", "why"}})
	for _, want := range []string{"two <&>", "2 of 0 failed: no answer", "tor>b", "a: rx_becn 3\n", "one ", "pass\n", "FAIL: why"} {
		require.Contains(t, b.String(), want)
	}
	d := r.Document([]Check{{"two", "why"}})
	require.Equal(t, 3, int(d.Hosts["a"]["rx_becn"]))
	require.Equal(t, []CheckDocument{{"two", false, "why"}}, d.Checks)
	require.Len(t, d.Rates["one"], 100)
	require.EqualValues(t, 1000, d.StepNs)
	require.Equal(t, "tor>a", d.Queues[0].Name)
	require.EqualValues(t, 50, d.Queues[1].Marked)
}
