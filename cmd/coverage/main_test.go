// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// point is a line as Verilator writes it.
func point(file string, line, column int, page, what, lines, inst string, count int) string {
	s := fmt.Sprintf("C '\x01f\x02%s\x01l\x02%d\x01n\x02%d\x01page\x02v_%s/m\x01o\x02%s", file, line, column, page, what)
	if lines != "" {
		s += "\x01S\x02" + lines
	}
	return s + fmt.Sprintf("\x01h\x02%s' %d\n", inst, count)
}

func TestAdd(t *testing.T) {
	places := map[place]*counted{}
	dat := "# SystemC::Coverage-3\n" +
		point("hw/rtl/lib/a.sv", 3, 5, "line", "block", "3-5,8", "tb.a0", 2) +
		point("hw/rtl/lib/a.sv", 5, 7, "branch", "if", "5-6", "tb.a0", 0) +
		point("hw/rtl/lib/a.sv", 5, 8, "branch", "else", "7", "tb.a0", 1) +
		point("hw/rtl/lib/a.sv", 9, 9, "toggle", "x", "", "tb.a0", 0) +
		point("hw/rtl/lib/a.sv", 10, 3, "user", "cover", "", "tb.a0", 4) +
		point("hw/tb/a_tb.sv", 1, 1, "line", "block", "", "tb", 0)
	if err := read(strings.NewReader(dat), "dat", places); err != nil {
		t.Fatal(err)
	}
	got, _ := add(places)
	want := []fileReport{{File: "hw/rtl/lib/a.sv", Lines: share{4, 6}, Branches: share{1, 2}, Toggles: share{0, 1}, Covers: share{1, 1}, Missed: []int{5, 6}}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	// a second instance, or another bench, adds to the same places
	more := point("hw/rtl/lib/a.sv", 5, 7, "branch", "if", "5-6", "tb.a1", 3)
	if err := read(strings.NewReader(more), "dat", places); err != nil {
		t.Fatal(err)
	}
	got, counts := add(places)
	if got[0].Lines != (share{6, 6}) || got[0].Branches != (share{2, 2}) || len(got[0].Missed) != 0 {
		t.Fatalf("with the second instance: %+v", got[0])
	}
	if n := counts["hw/rtl/lib/a.sv"][5]; n != 2 {
		t.Fatalf("line 5 ran %d times, want that of the block that ran least, 2", n)
	}
	if err := read(strings.NewReader("C 'x' many\n"), "dat", places); err == nil {
		t.Fatal("a count that is no number was taken")
	}
}

func TestRanges(t *testing.T) {
	for _, s := range []string{"1", "1-3", "1,3-4,9"} {
		if got := ranges(lineList(s, 0)); got != s {
			t.Errorf("ranges(lineList(%q)) = %q", s, got)
		}
	}
}

func TestGaps(t *testing.T) {
	text := "a\n  /*verilator coverage_off*/ // both at once cannot be\nb\nc\n  /*verilator coverage_on*/\n"
	got, err := gaps("f", text)
	if want := []gap{{"f", 2, 2, "both at once cannot be"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{
		"/*verilator coverage_off*/\n/*verilator coverage_on*/\n", // no reason
		"/*verilator coverage_off*/ // r\n",                       // no end
		"/*verilator coverage_on*/\n",
	} {
		if _, err := gaps("f", bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
