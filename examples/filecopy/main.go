// SPDX-License-Identifier: Apache-2.0

// Command filecopy moves a file from one host's memory to another's by RDMA WRITE and writes what arrived to a new file.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

func main() {
	width := flag.Int("width", 512, "datapath width of the NICs in bits, 64 or 512")
	loss := flag.String("loss", "0%", "frames that the link loses")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: filecopy [flags] FILE COPY")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, *width, *loss, flag.Arg(0), flag.Arg(1)); err != nil {
		log.Fatal(err)
	}
}

const (
	chunk = 16 << 10 // bytes of a WRITE
	batch = 4        // WRITEs per doorbell
	depth = 8 * batch
)

func run(out io.Writer, width int, loss, from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return fmt.Errorf("%s is empty", from)
	}
	p, err := fabric.ParseProbability(loss)
	if err != nil {
		return err
	}
	pair, err := verbstest.New(verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = fabric.Loss(p) }})
	if err != nil {
		return err
	}
	defer pair.Close()
	sender, receiver := pair.Hosts[0], pair.Hosts[1]

	// A short transport timer (4 us * 2^6) makes up for lost frames soon.
	qp, peer, err := pair.Connect(verbs.QPConfig{MaxSendWR: depth, MaxRecvWR: 1}, verbs.ConnectConfig{PathMTU: verbs.MTU1024, Timeout: verbs.Of(uint8(6))})
	if err != nil {
		return err
	}
	src, err := sender.PD.AllocMR(len(data), verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	dst, err := receiver.PD.AllocMR(len(data), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	if err != nil {
		return err
	}
	if _, err := src.WriteAt(data, 0); err != nil {
		return err
	}
	region := dst.Region() // what the receiver tells the sender
	// WRITEs are silent at the far side. The last one carries immediate data, which takes a receive and so tells the
	// receiver that everything is there: a QP's messages arrive in order.
	if _, err := peer.PostRecv(verbs.RecvWR{}); err != nil {
		return err
	}

	start := pair.Now()
	if err := write(qp, sender.CQ, src, region); err != nil {
		return err
	}
	wcs := make([]verbs.WC, 1)
	if _, err := receiver.CQ.Wait(context.Background(), wcs); err != nil {
		return err
	}
	if err := wcs[0].Err(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d bytes in %v of simulated time; the sender says there are %d chunks\n", len(data), pair.Now()-start, wcs[0].Imm)
	return os.WriteFile(to, dst.Bytes(), 0o644)
}

// write moves all of src to the region, with at most depth work requests in flight.
func write(qp *verbs.QP, cq *verbs.CQ, src *verbs.MR, region verbs.Region) error {
	chunks := (src.Len() + chunk - 1) / chunk
	next, inflight := 0, 0
	for next < chunks || inflight > 0 {
		for next < chunks && inflight+batch <= depth {
			b := qp.Begin() // several work requests, one doorbell
			for range batch {
				if next == chunks {
					break
				}
				off := next * chunk
				n := min(chunk, src.Len()-off)
				next++
				if next == chunks {
					b.WriteImm(region.Addr+uint64(off), region.RKey, uint32(chunks))
				} else {
					b.Write(region.Addr+uint64(off), region.RKey)
				}
				b.SGE(src.SGE(off, n))
			}
			n := b.Len()
			b.Signaled().ID(uint64(n)) // the last one tells of all
			if err := b.Ring(); err != nil {
				return err
			}
			inflight += n
		}
		for wc, err := range cq.All() {
			if err == nil {
				err = wc.Err()
			}
			if err != nil {
				return err
			}
			inflight -= int(wc.WRID)
		}
	}
	return nil
}
