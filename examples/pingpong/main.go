// SPDX-License-Identifier: Apache-2.0

// Command pingpong sends a message to and fro between two NICs with SEND and RECV.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

func main() {
	width := flag.Int("width", 512, "datapath width of the NICs in bits, 64 or 512")
	rounds := flag.Int("n", 5, "round trips")
	flag.Parse()
	if err := run(os.Stdout, *width, *rounds); err != nil {
		log.Fatal(err)
	}
}

// player is one end: a queue pair and a buffer that messages arrive in.
type player struct {
	name string
	host *verbstest.Host
	qp   *verbs.QP
	buf  *verbs.MR
}

const maxMessage = 64

func run(out io.Writer, width, rounds int) error {
	pair, err := verbstest.New(verbstest.Config{Width: width})
	if err != nil {
		return err
	}
	defer pair.Close()

	// A receive queue is part of the QP; the sender's messages are short enough to go inside the work requests.
	a, b, err := pair.Connect(verbs.QPConfig{MaxSendWR: 4, MaxRecvWR: 4, MaxInlineData: maxMessage}, verbs.ConnectConfig{})
	if err != nil {
		return err
	}
	players := [2]*player{{name: "alice", host: pair.Hosts[0], qp: a}, {name: "bob", host: pair.Hosts[1], qp: b}}
	for _, p := range players {
		// The NIC writes into this memory only if the access flag says so.
		if p.buf, err = p.host.PD.AllocMR(maxMessage, verbs.AccessLocalWrite); err != nil {
			return err
		}
		// A message needs a receive before it comes, or its sender is told to wait (RNR).
		if err := p.postRecv(); err != nil {
			return err
		}
	}

	start := pair.Now()
	for i := range rounds {
		for side, p := range players {
			if err := p.send(fmt.Sprintf("%s says hello, round %d", p.name, i+1)); err != nil {
				return err
			}
			text, err := players[1-side].receive()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%-5s got %q\n", players[1-side].name, text)
		}
	}
	fmt.Fprintf(out, "%d round trips in %v of simulated time\n", rounds, pair.Now()-start)
	return nil
}

func (p *player) postRecv() error {
	_, err := p.qp.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{p.buf.SGE(0, maxMessage)}})
	return err
}

// send posts a SEND that asks for a completion: that frees its place in the send queue, and those of any before it that
// did not ask.
func (p *player) send(text string) error {
	b := p.qp.Begin()
	b.Send().Inline([]byte(text)).Signaled()
	return b.Ring()
}

// receive waits for a message.
func (p *player) receive() (string, error) {
	wcs := make([]verbs.WC, 1)
	for {
		if _, err := p.host.CQ.Wait(context.Background(), wcs); err != nil {
			return "", err
		}
		if err := wcs[0].Err(); err != nil {
			return "", err
		}
		if wcs[0].Opcode == verbs.WCRecv { // else that of a SEND of ours
			break
		}
	}
	text := string(p.buf.Bytes()[:wcs[0].ByteLen]) // copied before the buffer is given back
	return text, p.postRecv()
}
