// SPDX-License-Identifier: Apache-2.0

// Package capture reads pcap and pcapng files and writes pcapng, as streams and without knowing what the
// packets mean.
//
// Reader takes classic pcap (microseconds or nanoseconds) and pcapng (section header, interface
// description, enhanced and simple packet blocks; other blocks are skipped) in either byte order. A file
// that ends inside a record is a *FormatError that names the file and the byte offset; the packets before
// it have been delivered.
//
// Writer makes pcapng with several interfaces, nanosecond timestamps, comments, directions and packet
// numbers, the way Wireshark shows them.
package capture
