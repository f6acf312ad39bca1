// SPDX-License-Identifier: Apache-2.0

// Command kvstore is a key-value store whose clients GET with one-sided RDMA READs, without the server's program, and PUT
// with a SEND that the server's program carries out.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"log"
	"os"

	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

func main() {
	width := flag.Int("width", 512, "datapath width of the NICs in bits, 64 or 512")
	flag.Parse()
	if err := run(os.Stdout, *width); err != nil {
		log.Fatal(err)
	}
}

// The table is an array of slots in the server's memory; a key is in the first slot from its hash on that is its own.
//
//	byte 0  CRC-32 of the rest: a READ that meets a PUT half way sees a wrong one, and reads again
//	     4  length of the key, 0: the slot is free
//	     5  length of the value
//	     6  key, then value
const (
	slotSize = 64
	slots    = 256
	room     = slotSize - 6 // for key and value together
)

var (
	errNotFound = errors.New("no such key")
	errFull     = errors.New("the table is full")
)

func run(out io.Writer, width int) error {
	pair, err := verbstest.New(verbstest.Config{Width: width})
	if err != nil {
		return err
	}
	defer pair.Close()
	qp, peer, err := pair.Connect(verbs.QPConfig{MaxSendWR: 4, MaxRecvWR: 4, MaxInlineData: slotSize},
		verbs.ConnectConfig{Access: verbs.AccessRemoteRead})
	if err != nil {
		return err
	}
	s, err := newServer(pair.Hosts[1], peer)
	if err != nil {
		return err
	}
	c := &client{host: pair.Hosts[0], qp: qp, table: qp.Remote(s.table.Region())}

	for i := range 5 {
		if err := c.put(s, fmt.Sprintf("key%d", i), fmt.Sprintf("value %d", i*i)); err != nil {
			return err
		}
	}
	if err := c.put(s, "key3", "changed"); err != nil {
		return err
	}
	for _, key := range []string{"key0", "key3", "key4", "key9"} {
		start := pair.Now()
		value, err := c.get(key)
		if err != nil && !errors.Is(err, errNotFound) {
			return err
		}
		if err != nil {
			value = err.Error()
		}
		fmt.Fprintf(out, "%s: %s (%v)\n", key, value, pair.Now()-start)
	}
	return nil
}

// server owns the table. Its program takes part in PUTs only.
type server struct {
	host  *verbstest.Host
	qp    *verbs.QP
	table *verbs.MR // clients may read it
	inbox *verbs.MR // a PUT arrives here
}

func newServer(host *verbstest.Host, qp *verbs.QP) (s *server, err error) {
	s = &server{host: host, qp: qp}
	if s.table, err = host.PD.AllocMR(slots*slotSize, verbs.AccessLocalWrite|verbs.AccessRemoteRead); err != nil {
		return nil, err
	}
	if s.inbox, err = host.PD.AllocMR(slotSize, verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	return s, s.postRecv()
}

func (s *server) postRecv() error {
	_, err := s.qp.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{s.inbox.SGE(0, slotSize)}})
	return err
}

// serve takes one PUT: a slot as it should be.
func (s *server) serve() error {
	wcs := make([]verbs.WC, 1)
	if _, err := s.host.CQ.Wait(context.Background(), wcs); err != nil {
		return err
	}
	if err := wcs[0].Err(); err != nil {
		return err
	}
	slot := s.inbox.Bytes()
	key, _, ok := parse(slot)
	if !ok {
		return errors.New("a PUT that makes no sense")
	}
	for i := range slots {
		at := s.table.Bytes()[(hash(key)+i)%slots*slotSize:][:slotSize]
		if k, _, ok := parse(at); !ok || k == key { // free, or its own
			copy(at, slot)
			return s.postRecv()
		}
	}
	return errFull
}

// client knows where the table is.
type client struct {
	host  *verbstest.Host
	qp    *verbs.QP
	table io.ReaderAt // the server's memory
}

// put sends the slot; the server carries it out. Here, where both hosts are one program, it does so at once.
func (c *client) put(s *server, key, value string) error {
	slot, err := format(key, value)
	if err != nil {
		return err
	}
	b := c.qp.Begin()
	b.Send().Inline(slot).Signaled()
	if err := b.Ring(); err != nil {
		return err
	}
	if err := s.serve(); err != nil {
		return err
	}
	wcs := make([]verbs.WC, 1)
	if _, err := c.host.CQ.Wait(context.Background(), wcs); err != nil {
		return err
	}
	return wcs[0].Err()
}

// get reads slots from the server's memory until it meets the key or a free slot.
func (c *client) get(key string) (string, error) {
	slot := make([]byte, slotSize)
	for i := 0; i < slots; {
		if _, err := c.table.ReadAt(slot, int64((hash(key)+i)%slots*slotSize)); err != nil {
			return "", err
		}
		k, value, ok := parse(slot)
		switch {
		case !ok && slot[4] != 0:
			continue // a PUT was half way; read again
		case !ok:
			return "", errNotFound
		case k == key:
			return value, nil
		}
		i++
	}
	return "", errNotFound
}

func hash(key string) int {
	h := fnv.New32a()
	io.WriteString(h, key) // never fails
	return int(h.Sum32() % slots)
}

// format makes a slot.
func format(key, value string) ([]byte, error) {
	if len(key) == 0 || len(key)+len(value) > room {
		return nil, fmt.Errorf("key of %d and value of %d bytes: want a key, and at most %d bytes together", len(key), len(value), room)
	}
	b := make([]byte, slotSize)
	b[4], b[5] = byte(len(key)), byte(len(value))
	copy(b[6+copy(b[6:], key):], value)
	binary.LittleEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b, nil
}

// parse takes a slot apart; ok is false if it is free or half written.
func parse(b []byte) (key, value string, ok bool) {
	k, v := int(b[4]), int(b[5])
	if k == 0 || k+v > room || binary.LittleEndian.Uint32(b) != crc32.ChecksumIEEE(b[4:]) {
		return "", "", false
	}
	return string(b[6 : 6+k]), string(b[6+k : 6+k+v]), true
}
