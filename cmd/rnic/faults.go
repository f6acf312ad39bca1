// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openrnic/openrnic/cosim/fabric"
)

// faultFlags ask for faults on the link.
type faultFlags struct {
	loss string
	text []string
}

func (f *faultFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.text, "fault", nil, "fault on the link by `rule`, may be repeated: \"drop 3rd RC_RDMA_WRITE_MIDDLE\", \"delay 10us 1% packet a>b\" (see 'rnic faults')")
	fl.StringVar(&f.loss, "loss", "", "lose frames of both directions with this `probability`, such as 1%")
}

// rules of the flags; the error is one of usage.
func (f *faultFlags) rules() (rules []fabric.Rule, err error) {
	for _, text := range f.text {
		r, err := fabric.ParseRules(text)
		if err != nil {
			return nil, usageErrorf("--fault: %w", err)
		}
		rules = append(rules, r...)
	}
	if f.loss != "" {
		p, err := fabric.ParseProbability(f.loss)
		if err != nil {
			return nil, usageErrorf("--loss: %w", err)
		}
		rules = append(rules, fabric.Loss(p)...)
	}
	return rules, nil
}

// printFaults tells what the rules did; nothing if there are none.
func (f *faultFlags) print(out io.Writer, l *fabric.Link) {
	if f.loss == "" && len(f.text) == 0 {
		return
	}
	for _, d := range []fabric.Dir{fabric.AtoB, fabric.BtoA} {
		s := l.Stats(d)
		var parts []string
		for _, c := range []struct {
			n    uint64
			name string
		}{{s.Dropped, "dropped"}, {s.Corrupted, "corrupted"}, {s.BadFCS, "bad FCS"}, {s.Duplicated, "duplicated"}, {s.Delayed, "delayed"}, {s.Reordered, "reordered"}, {s.Rewritten, "rewritten"}} {
			if c.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
			}
		}
		if len(parts) == 0 {
			parts = []string{"no fault"}
		}
		fmt.Fprintf(out, "faults  %v: %d frames, %s (seed %d)\n", d, s.Frames, strings.Join(parts, ", "), l.Seed())
	}
}

func newFaultsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "faults [RULE]...",
		Short: "Explain and check the rules for faults on a link",
		Long: `Checks rules for --fault of other commands, and explains their form:

  ` + fabric.RuleGrammar + `

The first rule that acts on a frame decides. A rule without a>b or b>a holds for both directions, each with a count of
its own. Byte 0 is the first of the Ethernet frame. A corrupted frame has one bit flipped and a right FCS, as after a
fault inside a switch. Delayed and held frames do not stop those behind them; a held frame waits at most ` + fabric.MaxHold.String() + `. Random
faults depend on the seed only, so that a run repeats bit for bit. A capture (-w) shows frames as they were sent, with a
comment where a fault meets them.`,
		Example: `  rnic faults "drop the 3rd RC_RDMA_WRITE_MIDDLE of qp 0x101" "reorder 3 2% packet"
  rnic demo --fault "dup 2nd RC_RDMA_WRITE_LAST" --fault "delay 10us every RC_ACKNOWLEDGE"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			for _, text := range args {
				if _, err := fabric.ParseRules(text); err != nil {
					return usageErrorf("%w", err)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d rules are right\n", len(args))
			return nil
		},
	}
}
