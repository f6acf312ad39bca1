/* SPDX-License-Identifier: Apache-2.0
 *
 * C ABI between a verilated NIC (librnic_w<WIDTH>.so, built by verilator/build.sh) and its user.
 * It lives in this Go package so that the Go tool sees its changes; the harness includes it from here.
 *
 * One handle is one NIC with its pin-level surroundings: host memory behind an AXI4 slave, a MAC, a
 * register master. Calls on one handle must not overlap; different handles are independent.
 * Rings and counters are plain memory: they may be read and written between two calls of rnic_run.
 * All times are picoseconds of simulated time; cycle n begins at n * clock_ps.
 */
#ifndef RNIC_HARNESS_H
#define RNIC_HARNESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RNIC_ABI_VERSION 5u

/* Ring sizes. Producer and consumer positions run freely; the slot is position modulo size. */
#define RNIC_MMIO_SLOTS 4096u
#define RNIC_FRAME_RING_BYTES (1u << 21)
#define RNIC_VERDICT_SLOTS 4096u
#define RNIC_MAX_FRAME 16384u
#define RNIC_VERDICT_BYTES 128u
#define RNIC_VECTORS 4u

/* Reasons for which rnic_run came back; all but LIMIT, ERROR and RING stop only if asked for. */
#define RNIC_STOP_LIMIT 0x01u   /* reached the cycle asked for */
#define RNIC_STOP_READ 0x02u    /* a register read was answered */
#define RNIC_STOP_IRQ 0x04u     /* interrupt request */
#define RNIC_STOP_FRAME 0x08u   /* a frame was put into the TX ring */
#define RNIC_STOP_VERDICT 0x10u /* a verdict was put into its ring */
#define RNIC_STOP_RING 0x20u    /* TX or verdict ring has no room: empty it */
#define RNIC_STOP_ERROR 0x40u   /* protocol error of the core: see err */
#define RNIC_STOP_MMIO 0x80u    /* all posted register writes have been answered */

struct rnic_config {
  uint32_t abi;                  /* RNIC_ABI_VERSION */
  uint32_t clock_ps;             /* clock period */
  uint64_t seed;                 /* of every random choice of the harness */
  uint32_t mac_mbps;             /* link rate in Mb/s; 0: not paced */
  uint32_t mac_tx_stall;         /* probability of tx_ready = 0 in a cycle, in 1/65536 */
  uint32_t mac_rx_gap;           /* probability of a gap before an RX beat, in 1/65536 */
  uint32_t mmio_delay_ps;        /* from posting a register access to the bus */
  uint32_t axi_read_latency_ps;  /* AR to first R */
  uint32_t axi_write_latency_ps; /* last W to memory and B */
  uint32_t axi_jitter_ps;        /* random addition to both, up to this */
  uint32_t axi_read_mbytes;      /* MB/s (10^6); 0: one beat per cycle */
  uint32_t axi_write_mbytes;
  uint32_t axi_read_outstanding; /* bursts; 0: 64 */
  uint32_t axi_write_outstanding;
  uint32_t axi_stall;            /* probability of a stall per channel and cycle, in 1/65536 */
  uint32_t axi_reorder;          /* 0: in order; 1: bursts of different IDs overtake; 2: and their R beats mix */
  uint32_t flags;                /* RNIC_CFG_* */
  uint32_t mac_pfc_quanta;       /* pause time in the MAC's PFC frames, 1 to 65535; 0: the MAC has no PFC */
};

#define RNIC_CFG_NO_SKIP 1u /* evaluate idle cycles too */
#define RNIC_CFG_CHECK 2u   /* verify, in every cycle, what saving an evaluation relies on: slow, for tests */

/* A register access. Reads come behind all earlier writes. */
struct rnic_mmio {
  uint64_t addr; /* 8-byte aligned */
  uint64_t data;
  uint32_t strb; /* byte strobes of a write */
  uint32_t op;   /* 0 write, 1 read */
};

/* Head of a frame in a ring; data follows, padded to 8 bytes. A head with len RNIC_WRAP, or fewer than
 * sizeof(head) bytes before the end of the ring, means: go on at the start of the ring. */
struct rnic_frame {
  uint32_t len;
  uint32_t flags; /* RNIC_FRAME_* */
  uint64_t t0;    /* TX: first beat left the core. RX: arrival, first beat not before this time */
  uint64_t t1;    /* TX: last bit (of the FCS) has left on the link */
};
#define RNIC_WRAP 0xffffffffu
#define RNIC_FRAME_BAD 1u /* tuser with the last beat */

struct rnic_verdict {
  uint64_t cycle;
  uint8_t data[RNIC_VERDICT_BYTES];
};

struct rnic_stats {
  uint64_t cycles_run;     /* evaluated */
  uint64_t cycles_skipped; /* idle, jumped over */
  uint64_t cycles_busy;    /* evaluated with idle_o = 0 */
  uint64_t tx_frames, tx_bytes, tx_underruns;
  uint64_t rx_frames, rx_bytes;    /* as tx: without PFC frames */
  uint64_t tx_pfc_frames, rx_pfc_frames;
  uint64_t axi_read_bursts, axi_read_beats, axi_write_bursts, axi_write_beats;
  uint64_t axi_decerr, axi_slverr; /* beats to unmapped memory; beats in the error range */
  uint64_t axi_fault_addr;         /* last of either */
  uint64_t mmio_writes, mmio_reads, mmio_errors;
  uint64_t protocol_errors;
};

struct rnic_shared {
  uint64_t cycle;                  /* next cycle to simulate */
  uint64_t mmio_prod, mmio_cons;   /* slots; cons: answered */
  uint64_t tx_prod, tx_cons;       /* bytes */
  uint64_t rx_prod, rx_cons;       /* bytes */
  uint64_t verdict_prod, verdict_cons;
  uint64_t read_count, read_data;  /* reads answered; value of the last one */
  uint64_t irq_count[RNIC_VECTORS]; /* interrupts requested: cycles with irq_o[n] = 1 */
  uint64_t wake;                   /* with idle: no timer of the core fires before this cycle; ~0: none runs */
  uint32_t read_resp;              /* AXI response of the last read */
  uint32_t idle;                   /* nothing to do until an input comes or the cycle `wake` */
  uint32_t want_verdicts;          /* in: collect verdicts */
  uint32_t pfc_pause;              /* in: pfc_pause_i, besides what PFC frames ask for */
  uint32_t pfc_xoff;               /* out: pfc_xoff_o */
  uint32_t link_down;              /* in: 1: link_up_i is 0 */
  struct rnic_stats stats;
  char err[256];                   /* first protocol error, with its cycle */
};

struct rnic_info {
  uint32_t abi;
  uint32_t data_w;
  uint32_t trace; /* 1: rnic_trace works */
  uint32_t config_bytes, shared_bytes, frame_bytes, mmio_bytes, verdict_bytes;
  const char *top; /* name of the top module */
};

/* What this library is. */
const struct rnic_info *rnic_library_info(void);
/* A NIC after reset, at cycle 0; NULL and a text in err if the configuration is not usable. */
void *rnic_create(const struct rnic_config *cfg, char *err, uint32_t err_bytes);
void rnic_destroy(void *h);
struct rnic_shared *rnic_shared_of(void *h);
struct rnic_mmio *rnic_mmio_ring(void *h);
uint8_t *rnic_tx_ring(void *h);
uint8_t *rnic_rx_ring(void *h);
struct rnic_verdict *rnic_verdict_ring(void *h);
/* Host memory: iova and len are multiples of 4096. 0, or -1: overlap, alignment. */
int rnic_map(void *h, uint64_t iova, uint64_t len, void *mem);
int rnic_unmap(void *h, uint64_t iova);
/* Simulates to cycle `until` or to an event of `stop`; gives the reasons. */
uint32_t rnic_run(void *h, uint64_t until, uint32_t stop);
/* Pin reset for 16 cycles; what is in flight on the pins and in the register ring is dropped. */
void rnic_reset(void *h);
/* Accesses to [lo, hi) are answered SLVERR; which: bit 0 reads, bit 1 writes; 0 switches off. */
void rnic_error_range(void *h, uint64_t lo, uint64_t hi, uint32_t which);
/* FST trace of [from_cycle, to_cycle), `levels` deep (0: all); NULL ends it. -1: not a trace build. */
int rnic_trace(void *h, const char *file, uint32_t levels, uint64_t from_cycle, uint64_t to_cycle);

#ifdef __cplusplus
}
#endif
#endif
