// SPDX-License-Identifier: Apache-2.0

// Package examples_test builds and runs the examples.
package examples_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// example builds the program of a folder and gives a function that runs it.
func example(t *testing.T, name string) func(args ...string) (string, error) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("go", "build", "-o", bin, "./"+name).CombinedOutput()
	require.NoError(t, err, string(out))
	return func(args ...string) (string, error) {
		out, err := exec.Command(bin, args...).CombinedOutput()
		return string(out), err
	}
}

func TestPingPong(t *testing.T) {
	run := example(t, "pingpong")
	for _, width := range []string{"64", "512"} {
		out, err := run("-width", width, "-n", "2")
		require.NoError(t, err, out)
		require.Regexp(t, `^bob   got "alice says hello, round 1"
alice got "bob says hello, round 1"
bob   got "alice says hello, round 2"
alice got "bob says hello, round 2"
2 round trips in \d+(\.\d+)?us of simulated time
$`, out)
	}
}

func TestKVStore(t *testing.T) {
	run := example(t, "kvstore")
	for _, width := range []string{"64", "512"} {
		out, err := run("-width", width)
		require.NoError(t, err, out)
		require.Regexp(t, `^key0: value 0 \(.*us\)
key3: changed \(.*us\)
key4: value 16 \(.*us\)
key9: no such key \(.*us\)
$`, out)
	}
}

func TestFileCopy(t *testing.T) {
	run := example(t, "filecopy")
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	data := make([]byte, 300_001)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	require.NoError(t, os.WriteFile(from, data, 0o644))
	for _, args := range [][]string{{"-loss", "2%"}, {"-width", "64"}} {
		out, err := run(append(args, from, to)...)
		require.NoError(t, err, out)
		require.Contains(t, out, "300001 bytes in ")
		require.Contains(t, out, "there are 19 chunks")
		got, err := os.ReadFile(to)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	}
	out, err := run("-loss", "x", from, to)
	require.Error(t, err)
	require.Contains(t, out, "want 0% to 100%")
	out, err = run(from)
	require.Error(t, err)
	require.Contains(t, out, "usage: filecopy")
}
