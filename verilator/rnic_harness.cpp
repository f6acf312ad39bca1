// SPDX-License-Identifier: Apache-2.0
//
// One verilated NIC and what surrounds its pins: clock and reset, register master, host memory
// (axi_memory.h), MAC with link pacing and PFC, interrupt and verdict sampling, FST trace. No knowledge of protocols
// above the MAC.
//
// A cycle: inputs are driven and settle with the clock low; outputs are sampled; then the rising edge.
// All inputs are functions of earlier cycles only, so the core sees a synchronous environment.

#include "rnic_harness.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>

#include "Vrnic.h"
#include "Vrnic___024root.h"
#include "axi_memory.h"
#include "verilated.h"
#if RNIC_TRACE
#include "verilated_fst_c.h"
#endif

#define RNIC_API extern "C" __attribute__((visibility("default")))

namespace {

using rnic::AddrBeat;

constexpr unsigned kBeat = RNIC_DATA_W / 8;
constexpr uint32_t kPreamble = 8, kFcs = 4, kGap = 12, kMinFrame = 60;
using Keep = std::remove_reference<decltype(Vrnic::rx_keep_i)>::type;
constexpr uint64_t kAllBytes = kBeat == 64 ? ~0ull : (1ull << (kBeat % 64)) - 1;
constexpr uint32_t kTxSlackCycles = 16;  // how far the MAC's FIFO takes frames ahead of the link
constexpr uint32_t kResetCycles = 16;
// PFC frame (IEEE 802.1Q 36.1, 802.3 31): to 01-80-c2-00-00-01, type 8808, opcode 0101, enable vector, 8 times in quanta of 512 bits.
constexpr uint32_t kPfcFrame = 60;
constexpr uint8_t kPfcHead[] = {0x01, 0x80, 0xc2, 0, 0, 1}, kPfcType[] = {0x88, 0x08, 0x01, 0x01};

template <class T>
uint8_t *bytes(T &port) {
  static_assert(sizeof(T) == kBeat, "data port has another width than the library");
  return reinterpret_cast<uint8_t *>(&port);
}

// Lets the model see the next rising edge without an evaluation at clock low, which costs as much as any other. The name
// of what it remembers of the clock depends on Verilator's version; false: not known here, evaluate twice.
template <class R>
auto clock_was_low(R *r, int) -> decltype(r->__Vtrigrprev__TOP__clk_i, true) {
  r->__Vtrigrprev__TOP__clk_i = 0;
  return true;
}
template <class R>
auto clock_was_low(R *r, long) -> decltype(r->__Vtrigprevexpr___TOP__clk_i__0, true) {
  r->__Vtrigprevexpr___TOP__clk_i__0 = 0;
  return true;
}
template <class R>
bool clock_was_low(R *, ...) {
  return false;
}

class Nic {
 public:
  Nic(const rnic_config &cfg, const char *name)
      : cfg_(cfg), clk_(cfg.clock_ps), sh_(new rnic_shared()), err_{sh_.get()}, rng_(cfg.seed ^ 0x3ac5ull),
        axi_(cfg, sh_.get(), &err_), ctx_(new VerilatedContext) {
    mmio_.reset(new rnic_mmio[RNIC_MMIO_SLOTS]());
    due_.reset(new uint64_t[RNIC_MMIO_SLOTS]());
    tx_ring_.reset(new uint8_t[RNIC_FRAME_RING_BYTES]());
    rx_ring_.reset(new uint8_t[RNIC_FRAME_RING_BYTES]());
    verdicts_.reset(new rnic_verdict[RNIC_VERDICT_SLOTS]());
    ctx_->traceEverOn(RNIC_TRACE != 0);
    ctx_->randSeed(static_cast<int>(cfg.seed & 0x7fffffff) | 1);
    ctx_->fatalOnError(false);
    ctx_->assertOn(false);  // until the reset has been seen
    top_.reset(new Vrnic(ctx_.get(), name));
    inputs_off();
    top_->clk_i = 0;
    top_->rst_ni = 0;
    top_->eval();
    reset();
  }
  ~Nic() {
    trace(nullptr, 0, 0, 0);
    top_->final();
  }
  Nic(const Nic &) = delete;
  Nic &operator=(const Nic &) = delete;

  rnic_shared *shared() { return sh_.get(); }
  rnic_mmio *mmio() { return mmio_.get(); }
  uint8_t *tx_ring() { return tx_ring_.get(); }
  uint8_t *rx_ring() { return rx_ring_.get(); }
  rnic_verdict *verdicts() { return verdicts_.get(); }
  rnic::AxiMemory<kBeat> &axi() { return axi_; }

  void reset() {
    inputs_off();
    ctx_->assertOn(false);
    if (rx_len_ != 0) rx_pop();
    tx_len_ = 0;
    pfc_sent_ = 0;
    for (uint64_t &p : paused_ps_) p = 0;
    tx_in_ = tx_held_ = false;
    axi_.reset();
    sh_->mmio_cons = issued_ = stamped_ = sh_->mmio_prod;
    mm_ = Mm::Idle;
    mm_writes_ = 0;
    top_->rst_ni = 0;
    for (uint32_t i = 0; i < kResetCycles; i++) edge();
    top_->rst_ni = 1;
    ctx_->assertOn(true);
    quiet_ = false;
    sh_->idle = 0;
    sh_->wake = ~0ull;
    changed_ = true;
    aw_taken_ = w_taken_ = ar_taken_ = false;
    driven_ = 0;
    drive();
  }

  uint32_t run(uint64_t until, uint32_t stop) {
    stop |= RNIC_STOP_ERROR;
    stamp_mmio();
    drive();
    uint32_t ev = 0;
    while (sh_->cycle < until) {
      if (quiet_ && skip(until)) continue;
      if (tx_room() < RNIC_MAX_FRAME + kPfcFrame + 4 * sizeof(rnic_frame) ||
          sh_->verdict_prod - sh_->verdict_cons >= RNIC_VERDICT_SLOTS) {
        ev |= RNIC_STOP_RING;
        break;
      }
      ev |= cycle();
      if (err_.raised) {
        err_.raised = false;
        ev |= RNIC_STOP_ERROR;
      }
      if (ev & stop) break;
    }
    if (sh_->cycle >= until) ev |= RNIC_STOP_LIMIT;
    sh_->idle = quiet_ && sh_->mmio_cons == sh_->mmio_prod && top_->wake_valid_o;
    sh_->wake = top_->wake_o;
    sh_->pfc_xoff = top_->pfc_xoff_o;
    return ev;
  }

  int trace(const char *file, uint32_t levels, uint64_t from, uint64_t to) {
#if RNIC_TRACE
    if (fst_) {
      fst_->close();
      fst_.reset();
    }
    if (file == nullptr) return 0;
    fst_.reset(new VerilatedFstC);
    top_->trace(fst_.get(), levels == 0 ? 99 : static_cast<int>(levels));
    fst_->open(file);
    trace_from_ = from;
    trace_to_ = to;
    return fst_->isOpen() ? 0 : -2;
#else
    (void)file, (void)levels, (void)from, (void)to;
    return -1;
#endif
  }

 private:
  // Writes are posted: the next one is shown when the one before was taken, answered or not; reads wait for all answers.
  enum class Mm { Idle, Write, Read };
  static constexpr unsigned kMmioWrites = 16;  // not answered

  const rnic_config cfg_;
  const uint64_t clk_;
  std::unique_ptr<rnic_shared> sh_;
  rnic::ErrorSink err_;
  rnic::Rng rng_;
  rnic::AxiMemory<kBeat> axi_;
  std::unique_ptr<VerilatedContext> ctx_;
  std::unique_ptr<Vrnic> top_;
  std::unique_ptr<rnic_mmio[]> mmio_;
  std::unique_ptr<uint64_t[]> due_;
  std::unique_ptr<uint8_t[]> tx_ring_, rx_ring_;
  std::unique_ptr<rnic_verdict[]> verdicts_;
#if RNIC_TRACE
  std::unique_ptr<VerilatedFstC> fst_;
  uint64_t trace_from_ = 0, trace_to_ = 0;
#endif

  bool changed_ = true;  // an input other than clk_i and time_i differs from the last evaluation
  bool quiet_ = false;   // nothing in flight; nothing changes before an input comes or a timer fires
  // register master
  Mm mm_ = Mm::Idle;  // what is shown, of a read until its answer
  unsigned mm_writes_ = 0;
  uint64_t issued_ = 0, stamped_ = 0;
  bool aw_taken_ = false, w_taken_ = false, ar_taken_ = false;  // the request drops after the edge
  // MAC, transmit side
  uint64_t link_free_ps_ = 0, tx_t0_ = 0;
  uint32_t tx_len_ = 0;
  bool tx_in_ = false, tx_held_ = false, tx_held_last_ = false;
  uint64_t tx_held_keep_ = 0;
  uint8_t tx_held_data_[kBeat] = {};
  uint8_t tx_buf_[RNIC_MAX_FRAME + 64] = {};
  uint8_t pfc_sent_ = 0;           // priorities that the peer was told to stop
  uint64_t pfc_refresh_ps_ = 0;    // and when it is to be told again
  // MAC, receive side
  uint64_t paused_ps_[8] = {};     // end of the pause of each priority
  uint32_t rx_len_ = 0, rx_off_ = 0;  // frame being given to the core
  uint32_t rx_flags_ = 0;
  const uint8_t *rx_data_ = nullptr;

  template <class P, class V>
  void set(P &port, V v) {
    const P x = static_cast<P>(v);
    if (port == x) return;
    port = x;
    changed_ = true;
  }
  uint64_t now_ps() const { return sh_->cycle * clk_; }
  uint64_t byte_ps(uint64_t n) const { return cfg_.mac_mbps ? n * 8000000ull / cfg_.mac_mbps : 0; }
  uint64_t tx_room() const { return RNIC_FRAME_RING_BYTES - (sh_->tx_prod - sh_->tx_cons); }

  void inputs_off() {
    Vrnic &t = *top_;
    t.time_i = sh_->cycle;
    t.s_axil_awvalid_i = t.s_axil_wvalid_i = t.s_axil_arvalid_i = 0;
    t.s_axil_awprot_i = t.s_axil_arprot_i = 0;
    t.s_axil_bready_i = t.s_axil_rready_i = 1;
    t.m_axi_awready_i = t.m_axi_wready_i = t.m_axi_arready_i = 0;
    t.m_axi_bvalid_i = t.m_axi_rvalid_i = 0;
    t.rx_valid_i = 0;
    t.tx_ready_i = 0;
    t.pfc_pause_i = 0;
    t.link_up_i = sh_->link_down == 0;
  }

  void edge() {
    Vrnic &t = *top_;
    t.clk_i = 0;
    t.eval();
    dump(0);
    t.clk_i = 1;
    t.eval();
    dump(clk_ / 2);
    sh_->cycle++;
  }

  void dump(uint64_t off) {
#if RNIC_TRACE
    if (fst_ && sh_->cycle >= trace_from_ && sh_->cycle < trace_to_) fst_->dump(now_ps() + off);
#else
    (void)off;
#endif
  }

  // Everything that sample() looks at.
  struct Outputs {
    uint64_t bits = 0, ar = 0, aw = 0, strb = 0, keep = 0, rdata = 0;
    uint8_t w[kBeat] = {}, tx[kBeat] = {};
    bool operator==(const Outputs &o) const {
      return bits == o.bits && ar == o.ar && aw == o.aw && strb == o.strb && keep == o.keep && rdata == o.rdata &&
             memcmp(w, o.w, kBeat) == 0 && memcmp(tx, o.tx, kBeat) == 0;
    }
  };
  Outputs outputs() {
    Vrnic &t = *top_;
    Outputs o;
    const uint64_t flags[] = {t.s_axil_awready_o, t.s_axil_wready_o, t.s_axil_arready_o, t.s_axil_bvalid_o, t.s_axil_rvalid_o,
                              t.m_axi_arvalid_o, t.m_axi_awvalid_o, t.m_axi_wvalid_o, t.m_axi_wlast_o, t.m_axi_rready_o,
                              t.m_axi_bready_o, t.tx_valid_o, t.tx_last_o, t.tx_user_o, t.verdict_valid_o, t.idle_o};
    for (const uint64_t f : flags) o.bits = o.bits << 1 | f;
    o.bits = o.bits << RNIC_VECTORS | t.irq_o;
    if (t.m_axi_arvalid_o) o.ar = t.m_axi_araddr_o << 12 | static_cast<uint64_t>(t.m_axi_arlen_o) << 4 | t.m_axi_arid_o;
    if (t.m_axi_awvalid_o) o.aw = t.m_axi_awaddr_o << 12 | static_cast<uint64_t>(t.m_axi_awlen_o) << 4 | t.m_axi_awid_o;
    if (t.m_axi_wvalid_o) {
      o.strb = t.m_axi_wstrb_o;
      memcpy(o.w, bytes(t.m_axi_wdata_o), kBeat);
    }
    if (t.tx_valid_o) {
      o.keep = t.tx_keep_o;
      memcpy(o.tx, bytes(t.tx_data_o), kBeat);
    }
    if (t.s_axil_rvalid_o) o.rdata = t.s_axil_rdata_o;
    return o;
  }

  // Jumps over idle time, to the core's next timer at the farthest; false if the next cycle has something to do.
  bool skip(uint64_t until) {
    if (cfg_.flags & RNIC_CFG_NO_SKIP || mm_ != Mm::Idle || mm_writes_ != 0 || top_->rx_valid_i || rx_len_ != 0) return false;
    if (!top_->wake_valid_o) return false;
    uint64_t to = top_->wake_o < until ? top_->wake_o : until;
    if (sh_->mmio_prod != issued_) {
      uint64_t c = due_cycle(due_[issued_ % RNIC_MMIO_SLOTS]);
      if (c < to) to = c;
    }
    const rnic_frame *f = rx_head();
    if (f != nullptr) {
      uint64_t c = due_cycle(f->t0);
      if (c < to) to = c;
    }
    for (const uint64_t p : paused_ps_)
      if (p > now_ps() && due_cycle(p) < to) to = due_cycle(p);
    if (top_->pfc_xoff_o != pfc_sent_) return false;
    if (pfc_sent_ != 0 && due_cycle(pfc_refresh_ps_) < to) to = due_cycle(pfc_refresh_ps_);
    if (to <= sh_->cycle) return false;
    sh_->stats.cycles_skipped += to - sh_->cycle;
    sh_->cycle = to;
    drive();
    return true;
  }
  uint64_t due_cycle(uint64_t ps) const { return (ps + clk_ - 1) / clk_; }

  uint32_t cycle() {
    Vrnic &t = *top_;
    // Outputs are as the last evaluation left them, unless an input has changed since. (time_i has no path to them
    // but through registers.)
    const bool check = (cfg_.flags & RNIC_CFG_CHECK) != 0 && !changed_;
    const Outputs before = check ? outputs() : Outputs();
    if (RNIC_TRACE || changed_ || check || !clock_was_low(t.rootp, 0)) {
      t.clk_i = 0;
      t.eval();
      dump(0);
      changed_ = false;
      if (check && !(before == outputs())) err_.fail("an output depends on time_i alone, without a register");
    }
    uint32_t ev = sample();
    t.clk_i = 1;
    t.eval();
    dump(clk_ / 2);
    sh_->cycle++;
    sh_->stats.cycles_run++;
    drive();
    return ev;
  }

  // ---- what the core shows in this cycle ---------------------------------------------------------
  uint32_t sample() {
    Vrnic &t = *top_;
    const uint64_t now = now_ps();
    uint32_t ev = 0;

    // register master
    bool mmio_busy = mm_ != Mm::Idle || mm_writes_ != 0;
    if (mmio_busy) ev |= sample_mmio();

    // host memory
    AddrBeat a;
    if (t.m_axi_arvalid_o) {
      a.addr = t.m_axi_araddr_o, a.len = t.m_axi_arlen_o, a.size = t.m_axi_arsize_o;
      a.burst = t.m_axi_arburst_o, a.id = t.m_axi_arid_o;
    }
    axi_.sample_ar(t.m_axi_arvalid_o, a, now);
    if (t.m_axi_awvalid_o) {
      a.addr = t.m_axi_awaddr_o, a.len = t.m_axi_awlen_o, a.size = t.m_axi_awsize_o;
      a.burst = t.m_axi_awburst_o, a.id = t.m_axi_awid_o;
    }
    axi_.sample_aw(t.m_axi_awvalid_o, a);
    axi_.sample_w(t.m_axi_wvalid_o, bytes(t.m_axi_wdata_o), t.m_axi_wstrb_o, t.m_axi_wlast_o, now);
    axi_.sample_r(t.m_axi_rready_o);
    axi_.sample_b(t.m_axi_bready_o);

    ev |= sample_tx(now);
    if (!tx_in_ && cfg_.mac_pfc_quanta != 0) ev |= sample_pfc(now);

    if (t.verdict_valid_o && sh_->want_verdicts) {
      rnic_verdict &v = verdicts_[sh_->verdict_prod % RNIC_VERDICT_SLOTS];
      v.cycle = sh_->cycle;
      memcpy(v.data, &t.verdict_o, RNIC_VERDICT_BYTES);
      sh_->verdict_prod++;
      ev |= RNIC_STOP_VERDICT;
    }
    if (t.irq_o != 0) {
      for (unsigned v = 0; v < RNIC_VECTORS; v++) sh_->irq_count[v] += t.irq_o >> v & 1;
      ev |= RNIC_STOP_IRQ;
    }

    bool idle = t.idle_o;
    if (!idle) sh_->stats.cycles_busy++;
    quiet_ = idle && !mmio_busy && !t.rx_valid_i && rx_len_ == 0 && !tx_in_ && axi_.empty();
    return ev;
  }

  uint32_t sample_mmio() {
    Vrnic &t = *top_;
    aw_taken_ = t.s_axil_awvalid_i && t.s_axil_awready_o;
    w_taken_ = t.s_axil_wvalid_i && t.s_axil_wready_o;
    ar_taken_ = t.s_axil_arvalid_i && t.s_axil_arready_o;
    if (mm_writes_ != 0 && t.s_axil_bvalid_o) {
      if (t.s_axil_bresp_o != rnic::kOkay) sh_->stats.mmio_errors++;
      sh_->stats.mmio_writes++;
      mm_writes_--;
      sh_->mmio_cons++;
      return sh_->mmio_cons == sh_->mmio_prod ? RNIC_STOP_MMIO : 0;
    }
    if (mm_ == Mm::Read && t.s_axil_rvalid_o) {
      if (t.s_axil_rresp_o != rnic::kOkay) sh_->stats.mmio_errors++;
      sh_->stats.mmio_reads++;
      sh_->read_data = t.s_axil_rdata_o;
      sh_->read_resp = t.s_axil_rresp_o;
      sh_->read_count++;
      mm_ = Mm::Idle;
      sh_->mmio_cons++;
      return RNIC_STOP_READ | (sh_->mmio_cons == sh_->mmio_prod ? RNIC_STOP_MMIO : 0);
    }
    return 0;
  }

  uint32_t sample_tx(uint64_t now) {
    Vrnic &t = *top_;
    const bool valid = t.tx_valid_o, ready = t.tx_ready_i;
    if (tx_held_) {
      if (!valid || t.tx_keep_o != tx_held_keep_ || t.tx_last_o != tx_held_last_ ||
          memcmp(bytes(t.tx_data_o), tx_held_data_, kBeat) != 0)
        err_.fail("TX: valid taken back or payload changed before ready");
      tx_held_ = false;
    }
    if (!valid) {
      if (tx_in_ && ready) sh_->stats.tx_underruns++;
      return 0;
    }
    if (!ready) {
      tx_held_ = true;
      tx_held_keep_ = t.tx_keep_o;
      tx_held_last_ = t.tx_last_o;
      memcpy(tx_held_data_, bytes(t.tx_data_o), kBeat);
      return 0;
    }
    if (!tx_in_) {
      tx_in_ = true;
      tx_t0_ = now;
      tx_len_ = 0;
    }
    const uint64_t keep = t.tx_keep_o;
    if ((keep & 1) == 0 || (keep & (keep + 1)) != 0 || (!t.tx_last_o && keep != kAllBytes))
      err_.fail("TX: keep 0x%llx is not contiguous, or not full before the last beat",
                static_cast<unsigned long long>(keep));
    memcpy(tx_buf_ + tx_len_, bytes(t.tx_data_o), kBeat);
    tx_len_ += static_cast<uint32_t>(__builtin_popcountll(keep));
    if (tx_len_ > RNIC_MAX_FRAME) {
      err_.fail("TX: frame longer than %u bytes", RNIC_MAX_FRAME);
      tx_len_ = 0;
    }
    if (!t.tx_last_o) return 0;
    tx_in_ = false;
    const uint64_t start = link_free_ps_ > tx_t0_ ? link_free_ps_ : tx_t0_;
    const uint64_t on_wire = kPreamble + (tx_len_ > kMinFrame ? tx_len_ : kMinFrame) + kFcs;
    uint64_t end = start + byte_ps(on_wire);
    if (end < now + clk_) end = now + clk_;
    link_free_ps_ = end + byte_ps(kGap);
    rnic_frame f{};
    f.len = tx_len_;
    f.flags = t.tx_user_o ? RNIC_FRAME_BAD : 0;
    f.t0 = tx_t0_;
    f.t1 = end;
    push(tx_ring_.get(), sh_->tx_prod, f, tx_buf_);
    sh_->stats.tx_frames++;
    sh_->stats.tx_bytes += tx_len_;
    return RNIC_STOP_FRAME;
  }

  uint64_t quanta_ps(uint64_t n) const { return n * 512 * 1000000ull / (cfg_.mac_mbps ? cfg_.mac_mbps : 100000); }

  // Between two frames: a PFC frame if priorities are to be stopped or let go, or before the peer's pause runs out.
  uint32_t sample_pfc(uint64_t now) {
    const uint8_t xoff = top_->pfc_xoff_o;
    if (xoff == pfc_sent_ && (xoff == 0 || now < pfc_refresh_ps_)) return 0;
    uint8_t b[kPfcFrame] = {};
    memcpy(b, kPfcHead, sizeof kPfcHead);
    for (unsigned i = 0; i < 6; i++) b[6 + i] = static_cast<uint8_t>(top_->mac_addr_o >> (8 * i));
    memcpy(b + 12, kPfcType, sizeof kPfcType);
    b[17] = xoff | pfc_sent_;
    for (unsigned i = 0; i < 8; i++) {
      if ((xoff >> i & 1) == 0) continue;
      b[18 + 2 * i] = static_cast<uint8_t>(cfg_.mac_pfc_quanta >> 8);
      b[19 + 2 * i] = static_cast<uint8_t>(cfg_.mac_pfc_quanta);
    }
    const uint64_t start = link_free_ps_ > now ? link_free_ps_ : now;
    uint64_t end = start + byte_ps(kPreamble + kMinFrame + kFcs);
    if (end < now + clk_) end = now + clk_;
    link_free_ps_ = end + byte_ps(kGap);
    pfc_sent_ = xoff;
    pfc_refresh_ps_ = end + quanta_ps(cfg_.mac_pfc_quanta) / 2;
    rnic_frame f{};
    f.len = kPfcFrame;
    f.t0 = now;
    f.t1 = end;
    push(tx_ring_.get(), sh_->tx_prod, f, b);
    sh_->stats.tx_pfc_frames++;
    return RNIC_STOP_FRAME;
  }

  // True if the MAC keeps a received frame: it is a PFC frame.
  bool take_pfc(const rnic_frame &f, const uint8_t *b, uint64_t now) {
    if (cfg_.mac_pfc_quanta == 0 || f.len < kPfcFrame || memcmp(b, kPfcHead, sizeof kPfcHead) != 0 ||
        memcmp(b + 12, kPfcType, sizeof kPfcType) != 0)
      return false;
    if (f.flags & RNIC_FRAME_BAD) return true;
    for (unsigned i = 0; i < 8; i++)
      if (b[17] >> i & 1) paused_ps_[i] = now + quanta_ps(static_cast<uint64_t>(b[18 + 2 * i]) << 8 | b[19 + 2 * i]);
    sh_->stats.rx_pfc_frames++;
    return true;
  }

  static void push(uint8_t *ring, uint64_t &prod, const rnic_frame &f, const uint8_t *data) {
    const uint64_t need = sizeof(rnic_frame) + ((f.len + 7u) & ~7u);
    uint64_t off = prod % RNIC_FRAME_RING_BYTES;
    const uint64_t tail = RNIC_FRAME_RING_BYTES - off;
    if (tail < need) {
      if (tail >= sizeof(rnic_frame)) {
        const uint32_t wrap = RNIC_WRAP;
        memcpy(ring + off, &wrap, sizeof wrap);
      }
      prod += tail;
      off = 0;
    }
    memcpy(ring + off, &f, sizeof f);
    memcpy(ring + off + sizeof f, data, f.len);
    prod += need;
  }

  // ---- inputs of the cycle that comes ---------------------------------------------------------------
  uint64_t driven_ = 0;  // cycle whose inputs have been chosen, plus one
  void drive() {
    Vrnic &t = *top_;
    const uint64_t now = now_ps();
    t.time_i = sh_->cycle;
    uint8_t pause = static_cast<uint8_t>(sh_->pfc_pause);
    for (unsigned i = 0; i < 8; i++)
      if (paused_ps_[i] > now) pause |= static_cast<uint8_t>(1u << i);
    if (t.pfc_pause_i != pause) {
      t.pfc_pause_i = pause;
      quiet_ = false;
      changed_ = true;
    }
    if (t.link_up_i != (sh_->link_down == 0)) {
      t.link_up_i = sh_->link_down == 0;
      quiet_ = false;
      changed_ = true;
    }
    if (driven_ == sh_->cycle + 1) {  // second call for one cycle: only what came from outside meanwhile
      drive_mmio(now);
      if (rx_len_ == 0 && !t.rx_valid_i) drive_rx(now);
      return;
    }
    driven_ = sh_->cycle + 1;
    axi_.drive(now, t.m_axi_arvalid_o, t.m_axi_awvalid_o, t.m_axi_wvalid_o);
    set(t.m_axi_arready_i, axi_.arready);
    set(t.m_axi_awready_i, axi_.awready);
    set(t.m_axi_wready_i, axi_.wready);
    set(t.m_axi_bvalid_i, axi_.bvalid);
    set(t.m_axi_bid_i, axi_.bid);
    set(t.m_axi_bresp_i, axi_.bresp);
    set(t.m_axi_rvalid_i, axi_.rvalid);
    if (axi_.rdata_changed) {
      axi_.rdata_changed = false;
      changed_ = true;
      set(t.m_axi_rid_i, axi_.rid);
      set(t.m_axi_rresp_i, axi_.rresp);
      set(t.m_axi_rlast_i, axi_.rlast);
      memcpy(bytes(t.m_axi_rdata_i), axi_.rdata, kBeat);
    }
    drive_mmio(now);
    drive_rx(now);
    set(t.tx_ready_i, (tx_in_ || cfg_.mac_mbps == 0 || link_free_ps_ <= now + kTxSlackCycles * clk_) &&
                          !(t.tx_valid_o && rng_.chance(cfg_.mac_tx_stall)));
  }

  void stamp_mmio() {
    for (; stamped_ != sh_->mmio_prod; stamped_++)
      due_[stamped_ % RNIC_MMIO_SLOTS] = now_ps() + cfg_.mmio_delay_ps;
  }

  void drive_mmio(uint64_t now) {
    Vrnic &t = *top_;
    if (aw_taken_) set(t.s_axil_awvalid_i, 0);
    if (w_taken_) set(t.s_axil_wvalid_i, 0);
    if (ar_taken_) set(t.s_axil_arvalid_i, 0);
    aw_taken_ = w_taken_ = ar_taken_ = false;
    if (mm_ == Mm::Write && !t.s_axil_awvalid_i && !t.s_axil_wvalid_i) mm_ = Mm::Idle;
    if (mm_ != Mm::Idle || issued_ == stamped_ || due_[issued_ % RNIC_MMIO_SLOTS] > now) return;
    const rnic_mmio &m = mmio_[issued_ % RNIC_MMIO_SLOTS];
    if (m.op == 0 ? mm_writes_ == kMmioWrites : mm_writes_ != 0) return;
    issued_++;
    changed_ = true;
    if (m.op == 0) {
      mm_writes_++;
      t.s_axil_awaddr_i = static_cast<uint32_t>(m.addr) & 0x1ffff;
      t.s_axil_wdata_i = m.data;
      t.s_axil_wstrb_i = static_cast<uint8_t>(m.strb);
      t.s_axil_awvalid_i = t.s_axil_wvalid_i = 1;
      mm_ = Mm::Write;
    } else {
      t.s_axil_araddr_i = static_cast<uint32_t>(m.addr) & 0x1ffff;
      t.s_axil_arvalid_i = 1;
      mm_ = Mm::Read;
    }
  }

  const rnic_frame *rx_head() {
    for (;;) {
      if (sh_->rx_cons == sh_->rx_prod) return nullptr;
      const uint64_t off = sh_->rx_cons % RNIC_FRAME_RING_BYTES, tail = RNIC_FRAME_RING_BYTES - off;
      const auto *f = reinterpret_cast<const rnic_frame *>(rx_ring_.get() + off);
      if (tail >= sizeof(rnic_frame) && f->len != RNIC_WRAP) return f;
      sh_->rx_cons += tail;
    }
  }
  void rx_pop() {
    sh_->rx_cons += sizeof(rnic_frame) + ((rx_len_ + 7u) & ~7u);
    rx_len_ = rx_off_ = 0;
  }

  void drive_rx(uint64_t now) {
    Vrnic &t = *top_;
    set(t.rx_valid_i, 0);
    if (rx_len_ == 0) {
      const rnic_frame *f = rx_head();
      while (f != nullptr && f->t0 <= now && take_pfc(*f, reinterpret_cast<const uint8_t *>(f + 1), now)) {
        rx_len_ = f->len;
        rx_pop();
        f = rx_head();
        quiet_ = false;  // its pause is seen in the next cycle
      }
      if (f == nullptr || f->t0 > now) return;
      if (f->len == 0 || f->len > RNIC_MAX_FRAME) {
        err_.fail("RX ring: frame of %u bytes", f->len);
        sh_->rx_cons = sh_->rx_prod;
        return;
      }
      rx_len_ = f->len;
      rx_flags_ = f->flags;
      rx_data_ = reinterpret_cast<const uint8_t *>(f + 1);
      rx_off_ = 0;
    }
    if (rng_.chance(cfg_.mac_rx_gap)) return;
    const uint32_t left = rx_len_ - rx_off_;
    uint8_t *d = bytes(t.rx_data_i);
    t.rx_valid_i = 1;
    changed_ = true;
    if (left > kBeat) {
      memcpy(d, rx_data_ + rx_off_, kBeat);
      t.rx_keep_i = static_cast<Keep>(kAllBytes);
      t.rx_last_i = 0;
      t.rx_user_i = 0;
      rx_off_ += kBeat;
      return;
    }
    // Bytes behind the end are noise: the core must not look at them.
    for (unsigned i = 0; i < kBeat; i += 8) {
      const uint64_t r = rng_.next();
      memcpy(d + i, &r, 8);
    }
    memcpy(d, rx_data_ + rx_off_, left);
    const uint64_t keep = left == 64 ? ~0ull : (1ull << left) - 1;
    t.rx_keep_i = static_cast<Keep>(keep);
    t.rx_last_i = 1;
    t.rx_user_i = (rx_flags_ & RNIC_FRAME_BAD) != 0;
    sh_->stats.rx_frames++;
    sh_->stats.rx_bytes += rx_len_;
    rx_pop();
  }
};

#define RNIC_STR2(x) #x
#define RNIC_STR(x) RNIC_STR2(x)

}  // namespace

RNIC_API const rnic_info *rnic_library_info(void) {
  static const rnic_info info = {RNIC_ABI_VERSION, RNIC_DATA_W, RNIC_TRACE, sizeof(rnic_config),
                                        sizeof(rnic_shared), sizeof(rnic_frame), sizeof(rnic_mmio),
                                        sizeof(rnic_verdict), RNIC_STR(RNIC_TOP)};
  return &info;
}

RNIC_API void *rnic_create(const rnic_config *cfg, char *err, uint32_t err_bytes) {
  const char *why = nullptr;
  if (cfg->abi != RNIC_ABI_VERSION) why = "configuration is of another ABI version";
  else if (cfg->clock_ps < 100 || cfg->clock_ps > 1000000) why = "clock_ps is not within 100 to 1000000";
  else if (cfg->axi_reorder > 2) why = "axi_reorder is not within 0 to 2";
  else if (cfg->mac_pfc_quanta > 65535) why = "mac_pfc_quanta is not within 0 to 65535";
  else if (cfg->axi_stall > 60000 || cfg->mac_tx_stall > 60000 || cfg->mac_rx_gap > 60000)
    why = "a stall probability is above 60000/65536";
  if (why != nullptr) {
    if (err_bytes != 0) snprintf(err, err_bytes, "%s", why);
    return nullptr;
  }
  return new Nic(*cfg, "nic");
}

RNIC_API void rnic_destroy(void *h) { delete static_cast<Nic *>(h); }
RNIC_API rnic_shared *rnic_shared_of(void *h) { return static_cast<Nic *>(h)->shared(); }
RNIC_API rnic_mmio *rnic_mmio_ring(void *h) { return static_cast<Nic *>(h)->mmio(); }
RNIC_API uint8_t *rnic_tx_ring(void *h) { return static_cast<Nic *>(h)->tx_ring(); }
RNIC_API uint8_t *rnic_rx_ring(void *h) { return static_cast<Nic *>(h)->rx_ring(); }
RNIC_API rnic_verdict *rnic_verdict_ring(void *h) { return static_cast<Nic *>(h)->verdicts(); }
RNIC_API int rnic_map(void *h, uint64_t iova, uint64_t len, void *mem) {
  return static_cast<Nic *>(h)->axi().mem.map(iova, len, mem);
}
RNIC_API int rnic_unmap(void *h, uint64_t iova) { return static_cast<Nic *>(h)->axi().mem.unmap(iova); }
RNIC_API uint32_t rnic_run(void *h, uint64_t until, uint32_t stop) {
  return static_cast<Nic *>(h)->run(until, stop);
}
RNIC_API void rnic_reset(void *h) { static_cast<Nic *>(h)->reset(); }
RNIC_API void rnic_error_range(void *h, uint64_t lo, uint64_t hi, uint32_t which) {
  auto &a = static_cast<Nic *>(h)->axi();
  a.err_lo = lo;
  a.err_hi = hi;
  a.err_which = which;
}
RNIC_API int rnic_trace(void *h, const char *file, uint32_t levels, uint64_t from, uint64_t to) {
  return static_cast<Nic *>(h)->trace(file, levels, from, to);
}
