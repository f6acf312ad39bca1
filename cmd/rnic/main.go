// SPDX-License-Identifier: Apache-2.0

// Command rnic works with openrnic NICs and with RoCEv2 captures.
//
// Exit codes: 0 all is well, 1 a check failed or the work could not be done, 2 the command line is wrong.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// exitError is an error with an exit code of its own. err may be nil when everything has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageErrorf reports a command line that parses but makes no sense: exit code 2.
func usageErrorf(format string, a ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, a...)}
}

// newRootCmd makes the command tree. A subcommand lives in a file of its own and is added here.
// Commands write results to cmd.OutOrStdout() and notes to cmd.ErrOrStderr(); they must not set
// PersistentPreRun, which run uses to tell usage errors from others.
func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "rnic",
		Short:         "Work with openrnic NICs and RoCEv2 captures",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		newDecodeCmd(),
		newDemoCmd(),
		newBenchCmd(),
		newReplayCmd(),
		newFaultsCmd(),
		newPerfCmd(),
		newLabCmd(),
	)
	return root
}

// run executes the command line and returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRootCmd()
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	code := exitFailed
	if !started { // refused by the parser of flags or arguments
		code = exitUsage
	}
	var ee *exitError
	quiet := false
	if errors.As(err, &ee) {
		code = ee.code
		quiet = ee.err == nil
	}
	if _, ok := cmd.Annotations[jsonErrors]; ok && wantsJSON(args) {
		_ = writeJSON(out, map[string]string{"error": err.Error()}) // the exit code tells, whatever becomes of the text
	}
	if !quiet {
		fmt.Fprintf(errOut, "rnic: %v\n", err)
	}
	if code == exitUsage {
		fmt.Fprintf(errOut, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return code
}

// wantsJSON tells whether --json is among the arguments, also of a command line that is wrong.
func wantsJSON(args []string) bool {
	for _, a := range args {
		if a == "--" {
			break
		}
		if a == "--json" || a == "--json=true" {
			return true
		}
	}
	return false
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
