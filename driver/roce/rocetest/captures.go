// SPDX-License-Identifier: Apache-2.0

// Package rocetest makes frames for tests of RoCEv2 receivers: the captures of testdata, random valid
// packets of every kind, and frames that are broken in every way that a receiver must name. Everything is
// a function of a seed.
package rocetest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
)

// Expected is what an independent check says of one capture file (testdata/captures/expected.json).
type Expected struct {
	Kernel  string            `json:"kernel"`
	Packets int               `json:"packets"`
	Opcodes map[string]int    `json:"opcodes"`            // opcode number, "0x0a", to packets
	BadICRC []int             `json:"bad_icrc,omitempty"` // numbers of packets with a wrong ICRC
	Cut     []int             `json:"cut,omitempty"`      // numbers of packets that end early
	Refused map[string]string `json:"refused,omitempty"`  // packet number to drop_reason; the others are accepted
}

// Capture is one file of a directory of captures.
type Capture struct {
	Name string
	Path string
	Expected
}

// Captures lists the captures of a directory with an expected.json, in order of names. A file without an
// entry or an entry without a file is an error.
func Captures(dir string) ([]Capture, error) {
	b, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		return nil, fmt.Errorf("captures: %w", err)
	}
	var exp map[string]Expected
	if err := json.Unmarshal(b, &exp); err != nil {
		return nil, fmt.Errorf("captures: %s: %w", filepath.Join(dir, "expected.json"), err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.pcap*"))
	if err != nil {
		return nil, fmt.Errorf("captures: %w", err)
	}
	slices.Sort(files)
	var l []Capture
	for _, f := range files {
		e, ok := exp[filepath.Base(f)]
		if !ok {
			return nil, fmt.Errorf("captures: %s is not in expected.json", f)
		}
		delete(exp, filepath.Base(f))
		l = append(l, Capture{Name: filepath.Base(f), Path: f, Expected: e})
	}
	for name := range exp {
		return nil, fmt.Errorf("captures: %s of expected.json is missing in %s", name, dir)
	}
	return l, nil
}

// Reason gives what a receiver must say of the packet with this number, from 1.
func (e *Expected) Reason(number int) (roce.Reason, error) {
	s, ok := e.Refused[strconv.Itoa(number)]
	if !ok {
		return roce.ReasonNone, nil
	}
	for r := range roce.Reason(roce.NumReasons) {
		if r.String() == s {
			return r, nil
		}
	}
	return 0, fmt.Errorf("captures: no reason is called %q", s)
}

// Frames reads the frames of a capture file whole.
func Frames(path string) ([][]byte, error) {
	r, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var l [][]byte
	for {
		p, err := r.Next()
		if err == io.EOF {
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		if p.LinkType != capture.LinkEthernet {
			return nil, fmt.Errorf("%s: packet %d has link type %d, not Ethernet", path, p.Number, p.LinkType)
		}
		l = append(l, slices.Clone(p.Data))
	}
}
