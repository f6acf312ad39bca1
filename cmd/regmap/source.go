// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// pos is a place in a source file; lines and columns count from 1.
type pos struct {
	file      string
	line, col int
}

func (p pos) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.col) }

// diagnostics collects every error found, so that one run names them all.
type diagnostics struct {
	list []diagnostic
}

type diagnostic struct {
	pos pos
	msg string
}

func (d *diagnostics) errorf(p pos, format string, args ...any) {
	d.list = append(d.list, diagnostic{p, fmt.Sprintf(format, args...)})
}

// err returns nil, or one error with a line per diagnostic in order of file, line and column.
func (d *diagnostics) err() error {
	if len(d.list) == 0 {
		return nil
	}
	sort.SliceStable(d.list, func(i, j int) bool {
		a, b := d.list[i].pos, d.list[j].pos
		if a.file != b.file {
			return a.file < b.file
		}
		if a.line != b.line {
			return a.line < b.line
		}
		return a.col < b.col
	})
	lines := make([]string, 0, len(d.list))
	for _, x := range d.list {
		lines = append(lines, fmt.Sprintf("%s: %s", x.pos, x.msg))
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}

// value is one YAML node with its place.
type value struct {
	node ast.Node
	pos  pos
	d    *diagnostics
}

// mapping is a YAML mapping whose keys have been checked against the schema.
type mapping struct {
	pos  pos
	d    *diagnostics
	keys map[string]value
}

// parseYAML reads one document.
func parseYAML(file string, src []byte, d *diagnostics) (value, bool) {
	f, err := parser.ParseBytes(src, 0)
	if err != nil {
		line, col, msg := syntaxPos(err)
		d.errorf(pos{file, line, col}, "%s", msg)
		return value{}, false
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		d.errorf(pos{file, 1, 1}, "want exactly one YAML document")
		return value{}, false
	}
	return value{node: f.Docs[0].Body, pos: nodePos(file, f.Docs[0].Body), d: d}, true
}

// syntaxPos takes place and text out of a parser error of the form "[line:col] message\n...".
func syntaxPos(err error) (line, col int, msg string) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	line, col, msg = 1, 1, first
	if n, _ := fmt.Sscanf(first, "[%d:%d]", &line, &col); n == 2 {
		if _, rest, ok := strings.Cut(first, "] "); ok {
			msg = rest
		}
	}
	return line, col, "YAML: " + msg
}

func nodePos(file string, n ast.Node) pos {
	// The token of a block mapping is the colon of its first pair; the key is what a reader looks for.
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			n = m.Values[0].Key
		}
	case *ast.MappingValueNode:
		n = m.Key
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return pos{file, 1, 1}
	}
	return pos{file, t.Position.Line, t.Position.Column}
}

func (v value) child(n ast.Node) value {
	return value{node: n, pos: nodePos(v.pos.file, n), d: v.d}
}

// mapping checks that v is a mapping with all of the required keys and no others than required and optional ones.
func (v value) mapping(what string, required, optional []string) (mapping, bool) {
	m := mapping{pos: v.pos, d: v.d, keys: map[string]value{}}
	var pairs []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		v.d.errorf(v.pos, "%s: want a mapping", what)
		return m, false
	}
	ok := true
	for _, p := range pairs {
		key := v.child(p.Key)
		name := p.Key.GetToken().Value
		known := false
		for _, list := range [][]string{required, optional} {
			for _, k := range list {
				known = known || k == name
			}
		}
		if !known {
			v.d.errorf(key.pos, "%s: unknown key %q", what, name)
			ok = false
			continue
		}
		if _, dup := m.keys[name]; dup {
			v.d.errorf(key.pos, "%s: key %q given twice", what, name)
			ok = false
			continue
		}
		m.keys[name] = v.child(p.Value)
	}
	for _, k := range required {
		if _, there := m.keys[k]; !there {
			v.d.errorf(v.pos, "%s: key %q is missing", what, k)
			ok = false
		}
	}
	return m, ok
}

func (m mapping) has(key string) bool { _, ok := m.keys[key]; return ok }

// list returns the elements of a sequence.
func (v value) list(what string) []value {
	s, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.d.errorf(v.pos, "%s: want a list", what)
		return nil
	}
	out := make([]value, 0, len(s.Values))
	for _, n := range s.Values {
		out = append(out, v.child(n))
	}
	return out
}

// text returns a string scalar.
func (v value) text(what string) string {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value)
	}
	v.d.errorf(v.pos, "%s: want text", what)
	return ""
}

// number returns an unsigned integer of at most 64 bits.
func (v value) number(what string) uint64 {
	if n, ok := v.node.(*ast.IntegerNode); ok {
		if x, err := strconv.ParseUint(n.GetToken().Value, 0, 64); err == nil {
			return x
		}
	}
	v.d.errorf(v.pos, "%s: want an unsigned number", what)
	return 0
}

func (m mapping) text(key string) string {
	v, ok := m.keys[key]
	if !ok {
		return ""
	}
	return v.text(key)
}

func (m mapping) number(key string) uint64 {
	v, ok := m.keys[key]
	if !ok {
		return 0
	}
	return v.number(key)
}

// name returns the value of key "name", checked as an identifier.
func (m mapping) name() (string, pos) {
	v, ok := m.keys["name"]
	if !ok {
		return "", m.pos
	}
	s := v.text("name")
	if s != "" && !isIdent(s) {
		v.d.errorf(v.pos, "name %q: want lower case letters, digits and single underscores, a letter first", s)
		return "", v.pos
	}
	return s, v.pos
}

func isIdent(s string) bool {
	last := byte('_')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z':
		case c >= '0' && c <= '9' && i > 0:
		case c == '_' && last != '_':
		default:
			return false
		}
		last = c
	}
	return s != "" && last != '_'
}
