// SPDX-License-Identifier: Apache-2.0

// Package verbs is the RDMA programming interface of openrnic: protection domains, memory regions,
// completion queues and reliable-connection queue pairs, with the names of libibverbs.
//
// A program opens a device, allocates a PD, registers memory, creates a CQ and QPs, moves each QP
// through RESET, INIT, RTR and RTS, posts work requests and polls completions:
//
//	dev, err := verbs.NewDevice(p, verbs.Config{MAC: mac, Addr: addr}) // p is a pcie.Device
//	pd, _ := dev.AllocPD()
//	mr, _ := pd.AllocMR(1<<20, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
//	cq, _ := dev.CreateCQ(128)
//	qp, _ := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, MaxSendWR: 64})
//	_ = qp.Connect(verbs.Remote{...})
//	_, _ = qp.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: sges, ...})
//	n, _ := cq.Poll(wcs)
//
// Work requests can also be built one by one, with one doorbell for all ([Batch]), and small payloads go inside them:
//
//	b := qp.Begin()
//	b.Write(addr, rkey).SGE(mr.SGE(0, 4096))
//	b.Send().Inline(header).Signaled().ID(7)
//	err := b.Ring()
//
// [QP.Remote] is the simplest of all: the peer's memory as an io.ReaderAt and io.WriterAt.
//
// The package knows registers, doorbells, rings in DMA memory and the command queue; it does not
// know whether the NIC behind [pcie.Device] is RTL under simulation or a board.
//
// # Memory
//
// Memory that a NIC may access lives outside the Go heap and belongs to its MR ([PD.AllocMR]).
// MR.Bytes is that memory; it stays valid until MR.Close.
//
// # Concurrency
//
// Device, PD, MR, CQ and QP are safe for concurrent use. PostSend takes the QP's lock, Poll the CQ's;
// two goroutines that use different QPs and CQs do not meet. PostSend and Poll do not allocate.
//
// # Waiting
//
// [CQ.Poll] never sleeps. [CQ.Wait] arms the CQ and sleeps until an interrupt tells of its event; a [Channel] gives one
// goroutine the events of many CQs; [Device.Events] gives what happens beside completions. In stepped simulation a
// sleeping program is what moves time, over idle stretches in one go.
//
// # Lifetime
//
// Every object has Close. An object that others still use refuses with [ErrBusy] and names one of them.
package verbs
