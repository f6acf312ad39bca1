// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ScenarioError says what is wrong with a scenario file, where, and what would be right.
type ScenarioError struct {
	File      string
	Line, Col int    // from 1; 0: the file as a whole
	Key       string // such as flows[1].to
	Problem   string
	Fix       string
}

// Error gives one line.
func (e *ScenarioError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Col)
	}
	s := at + ": "
	if e.Key != "" {
		s += e.Key + ": "
	}
	s += e.Problem
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// place of a key in the file.
type place struct{ line, col int }

// document is a YAML file on its way into a Scenario.
type document struct {
	file   string
	places map[string]place
}

// errorf makes an error at a key, or at the nearest key above it that the file has.
func (d *document) errorf(key, fix, format string, args ...any) error {
	at, ok := d.places[key]
	for up := key; !ok && up != ""; at, ok = d.places[up] {
		up = up[:max(strings.LastIndexAny(up, ".["), 0)]
	}
	return &ScenarioError{File: d.file, Line: at.line, Col: at.col, Key: key, Problem: fmt.Sprintf(format, args...), Fix: fix}
}

// scalar is a value with a text form of its own.
type scalar interface {
	// parse takes the text; the error names what would be right.
	parse(text string) error
}

// decode fills the value that v points to. Unknown keys, keys given twice and wrong kinds of values are errors.
func (d *document) decode(data []byte, v any) error {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		var at place
		if n, _ := fmt.Sscanf(first, "[%d:%d]", &at.line, &at.col); n == 2 {
			_, first, _ = strings.Cut(first, "] ")
		}
		return &ScenarioError{File: d.file, Line: at.line, Col: at.col, Problem: "this is not YAML: " + first, Fix: "see docs/lab.md for an example"}
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return &ScenarioError{File: d.file, Problem: "no scenario in it", Fix: "want one YAML document with topology and flows"}
	}
	return d.fill("", f.Docs[0].Body, reflect.ValueOf(v).Elem())
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (d *document) fill(key string, n ast.Node, v reflect.Value) error {
	if _, ok := d.places[key]; !ok {
		d.note(key, n)
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if s, ok := v.Addr().Interface().(scalar); ok {
		text, ok := scalarText(n)
		if !ok {
			return d.errorf(key, "", "want one value, not a list or a mapping")
		}
		if err := s.parse(text); err != nil {
			return d.errorf(key, err.Error(), "%q cannot be used", text)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.fillStruct(key, n, v)
	case reflect.Map:
		pairs, ok := mapping(n)
		if !ok {
			return d.errorf(key, "write it as \"name: value\"", "want a mapping")
		}
		v.Set(reflect.MakeMap(v.Type()))
		for _, p := range pairs {
			name := p.Key.GetToken().Value
			at := join(key, name)
			d.note(at, p.Key)
			if v.MapIndex(reflect.ValueOf(name)).IsValid() {
				return d.errorf(at, "remove one", "given twice")
			}
			x := reflect.New(v.Type().Elem()).Elem()
			if err := d.fill(at, p.Value, x); err != nil {
				return err
			}
			v.SetMapIndex(reflect.ValueOf(name), x)
		}
		return nil
	case reflect.Slice:
		s, ok := n.(*ast.SequenceNode)
		if !ok {
			return d.errorf(key, "write it as [x, y] or as lines that begin with \"- \"", "want a list")
		}
		v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
		for i, x := range s.Values {
			if err := d.fill(fmt.Sprintf("%s[%d]", key, i), x, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.String:
		text, ok := scalarText(n)
		if !ok {
			return d.errorf(key, "", "want text")
		}
		v.SetString(text)
		return nil
	}
	panic("lab: no YAML form for " + v.Type().String())
}

func (d *document) fillStruct(key string, n ast.Node, v reflect.Value) error {
	var known []string
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("yaml"); name != "" {
			known = append(known, name)
			fields[name] = v.Field(i)
		}
	}
	pairs, ok := mapping(n)
	if !ok {
		return d.errorf(key, "known keys: "+strings.Join(known, ", "), "want a mapping")
	}
	seen := map[string]bool{}
	for _, p := range pairs {
		name := p.Key.GetToken().Value
		at := join(key, name)
		d.note(at, p.Key)
		field, ok := fields[name]
		switch {
		case !ok:
			return d.errorf(at, "want one of "+strings.Join(known, ", "), "unknown key%s", closest(name, known))
		case seen[name]:
			return d.errorf(at, "remove one", "given twice")
		}
		seen[name] = true
		if err := d.fill(at, p.Value, field); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) note(key string, n ast.Node) {
	if t := n.GetToken(); t != nil && t.Position != nil {
		d.places[key] = place{t.Position.Line, t.Position.Column}
	}
}

func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// closest suggests a name; empty if none is near.
func closest(name string, known []string) string {
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is the number of letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
