// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"encoding/binary"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
)

// readAttacks are those by READs and atomics.
func readAttacks() (l []attack) {
	ask := func(name string, op roce.Opcode, say []string, drop string, change ...func(*arena, *roce.Headers)) attack {
		return attack{name: fmt.Sprintf("%v, %s", op, name), say: say, drop: map[string]uint64{drop: 1}, dead: true, do: func(a *arena) {
			a.packet(op, wirePSN, nil, a.reth("victim", 1024, 64), func(h *roce.Headers) {
				h.AckReq, h.SwapAdd, h.Compare = true, 0xeeeeeeeeeeeeeeee, binary.LittleEndian.Uint64(a.mrs["victim"].Bytes()[1024:])
				for _, f := range change {
					f(a, h)
				}
			})
		}}
	}
	for _, op := range []roce.Opcode{roce.RCReadRequest, roce.RCCompareSwap, roce.RCFetchAdd} {
		size := int64(8)
		for _, k := range []struct {
			name string
			f    func(*arena, *roce.Headers)
		}{
			{"variant of the rkey", key(func(a *arena) uint32 { return a.mrs["victim"].RKey() ^ 1 })},
			{"index never made", key(func(*arena) uint32 { return 800<<8 | 1 })},
			{"index out of range", key(func(a *arena) uint32 { return a.mrs["victim"].RKey() | 1<<31 })},
			{"rkey of a closed MR", key(func(a *arena) uint32 { return a.closed })},
			{"MR of another PD", aimFor("other PD", 0, 8)},
			{"MR without remote rights", aimFor("local", 0, 8)},
			{"MR for remote write only", aimFor("write only", 0, 8)},
			{"first byte behind", aimFor("victim", end, 8)},
			{"one word too early", aimFor("victim", -size, 8)},
			{"wraps 2^64", field(func(h *roce.Headers) { h.VA = ^uint64(0) - 7 })},
		} {
			l = append(l, ask(k.name, op, access, "nak_access", k.f))
		}
		if op == roce.RCReadRequest {
			l = append(l, ask("one byte too far", op, access, "nak_access", aimFor("victim", end-63, 64)),
				ask("longest", op, access, "nak_access", aimFor("victim", 0, 1<<31)),
				ask("length above 2^31", op, invalid(0), "nak_inv_req", aimFor("victim", 0, 1<<31+1)))
			continue
		}
		l = append(l, ask("MR for remote read only", op, access, "nak_access", aimFor("read only", 0, 8)))
		for _, off := range []int64{1, 4, 7} {
			l = append(l, ask(fmt.Sprintf("unaligned by %d", off), op, invalid(0), "nak_inv_req", aimFor("victim", 1024+off, 8)))
		}
	}
	for _, op := range []roce.Opcode{roce.RCReadRequest, roce.RCCompareSwap, roce.RCFetchAdd} {
		k := ask("QP without the right", op, invalid(0), "nak_inv_req")
		do := k.do
		k.do = func(a *arena) {
			right := allRemote &^ verbs.AccessRemoteRead
			if op != roce.RCReadRequest {
				right = allRemote &^ verbs.AccessRemoteAtomic
			}
			require.NoError(a.t, a.qp.Modify(verbs.QPAttr{Access: &right}))
			do(a)
		}
		l = append(l, k)
	}
	for _, op := range []roce.Opcode{roce.RCReadRequest, roce.RCFetchAdd} {
		k := ask("in a WRITE", op, invalid(1), "nak_inv_req")
		k.wr = wrote("victim", 0, 256)
		k.do = func(a *arena) {
			a.packet(roce.RCWriteFirst, wirePSN, payload[:256], a.reth("victim", 0, 512))
			a.packet(op, wirePSN+1, nil, a.reth("victim", 1024, 64))
		}
		l = append(l, k)
	}
	return l
}
