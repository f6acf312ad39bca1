// SPDX-License-Identifier: Apache-2.0
//
// Host memory behind an AXI4 slave, at pin level, with a checker of what the master does.
// Latency, bandwidth, stalls and order are parameters. A write reaches memory when its B is due, so
// that a master which does not wait for B where it must is found out.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

#include "rnic_harness.h"

namespace rnic {

// xorshift64*: fast, seeded, the same everywhere.
class Rng {
 public:
  explicit Rng(uint64_t seed) : s_(seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull) {
    if (s_ == 0) s_ = 1;
  }
  uint64_t next() {
    s_ ^= s_ >> 12;
    s_ ^= s_ << 25;
    s_ ^= s_ >> 27;
    return s_ * 0x2545f4914f6cdd1dull;
  }
  // true with probability p/65536; no draw when p is 0
  bool chance(uint32_t p) { return p != 0 && (next() >> 48) < p; }
  uint32_t below(uint32_t n) { return n == 0 ? 0 : static_cast<uint32_t>((next() >> 32) % n); }

 private:
  uint64_t s_;
};

// First error of a NIC; later ones are only counted.
struct ErrorSink {
  rnic_shared *sh;
  bool raised = false;
  __attribute__((format(printf, 2, 3))) void fail(const char *fmt, ...) {
    sh->stats.protocol_errors++;
    raised = true;
    if (sh->err[0] != 0) return;
    int n = snprintf(sh->err, sizeof sh->err, "cycle %llu: ",
                     static_cast<unsigned long long>(sh->cycle));
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sh->err + n, sizeof sh->err - static_cast<size_t>(n), fmt, ap);
    va_end(ap);
  }
};

struct Region {
  uint64_t lo, hi;
  uint8_t *mem;
};

class HostMemory {
 public:
  int map(uint64_t iova, uint64_t len, void *mem) {
    if (len == 0 || mem == nullptr || ((iova | len) & 4095) != 0 || iova + len < iova) return -1;
    auto it = r_.begin();
    while (it != r_.end() && it->lo < iova) ++it;
    if (it != r_.end() && it->lo < iova + len) return -1;
    if (it != r_.begin() && (it - 1)->hi > iova) return -1;
    r_.insert(it, Region{iova, iova + len, static_cast<uint8_t *>(mem)});
    return 0;
  }
  int unmap(uint64_t iova) {
    for (auto it = r_.begin(); it != r_.end(); ++it) {
      if (it->lo != iova) continue;
      r_.erase(it);
      return 0;
    }
    return -1;
  }
  // Pages are mapped whole, so a beat lies in one region or in none.
  uint8_t *at(uint64_t addr, size_t &hint) const {
    if (hint < r_.size() && addr >= r_[hint].lo && addr < r_[hint].hi)
      return r_[hint].mem + (addr - r_[hint].lo);
    size_t lo = 0, hi = r_.size();
    while (lo < hi) {
      size_t mid = (lo + hi) / 2;
      if (r_[mid].hi <= addr) lo = mid + 1;
      else hi = mid;
    }
    if (lo == r_.size() || addr < r_[lo].lo) return nullptr;
    hint = lo;
    return r_[lo].mem + (addr - r_[lo].lo);
  }

 private:
  std::vector<Region> r_;
};

struct AddrBeat {
  uint64_t addr = 0;
  uint32_t len = 0, size = 0, burst = 0, id = 0;
  bool operator==(const AddrBeat &o) const {
    return addr == o.addr && len == o.len && size == o.size && burst == o.burst && id == o.id;
  }
};

constexpr uint32_t kOkay = 0, kSlverr = 2, kDecerr = 3;

template <unsigned BeatBytes>
class AxiMemory {
 public:
  HostMemory mem;
  uint64_t err_lo = 0, err_hi = 0;
  uint32_t err_which = 0;

  AxiMemory(const rnic_config &c, rnic_shared *sh, ErrorSink *es)
      : cfg_(c), sh_(sh), es_(es), rng_(c.seed ^ 0xa51ull) {
    max_rd_ = c.axi_read_outstanding ? c.axi_read_outstanding : 64;
    max_wr_ = c.axi_write_outstanding ? c.axi_write_outstanding : 64;
    r_beat_ps_ = c.axi_read_mbytes ? BeatBytes * 1000000ull / c.axi_read_mbytes : 0;
    w_beat_ps_ = c.axi_write_mbytes ? BeatBytes * 1000000ull / c.axi_write_mbytes : 0;
    drive(0, false, false, false);
  }

  // ---- pins that the harness copies into the model ------------------------------------------
  bool arready = false, awready = false, wready = false, rvalid = false, bvalid = false;
  uint32_t rid = 0, rresp = 0, bid = 0, bresp = 0;
  bool rlast = false;
  uint8_t rdata[BeatBytes] = {};
  bool rdata_changed = false;  // rdata is another beat than the one copied last

  bool empty() const {
    return rd_.empty() && aw_.empty() && wr_.empty() && full_.empty() && cur_ == nullptr && b_.empty() &&
           !rvalid && !bvalid;
  }

  // ---- one call each per cycle, with what the master shows ------------------------------------
  void sample_ar(bool valid, const AddrBeat &a, uint64_t now_ps) {
    hold(ar_held_, ar_last_, valid, a, "AR");
    if (!valid) return;
    if (!arready) {
      ar_held_ = true;
      ar_last_ = a;
      return;
    }
    ar_held_ = false;
    check(a, "AR");
    sh_->stats.axi_read_bursts++;
    rd_.push_back(Read{a, 0, now_ps + latency(cfg_.axi_read_latency_ps)});
    active_ = true;
  }

  void sample_aw(bool valid, const AddrBeat &a) {
    hold(aw_held_, aw_last_, valid, a, "AW");
    if (!valid) return;
    if (!awready) {
      aw_held_ = true;
      aw_last_ = a;
      return;
    }
    aw_held_ = false;
    check(a, "AW");
    sh_->stats.axi_write_bursts++;
    aw_.push_back(a);
    active_ = true;
  }

  void sample_w(bool valid, const void *data, uint64_t strb, bool last, uint64_t now_ps) {
    if (w_held_ && (!valid || strb != w_strb_ || last != w_last_ || memcmp(data, w_data_, BeatBytes) != 0))
      es_->fail("AXI W: valid taken back or payload changed before ready");
    w_held_ = false;
    if (!valid) return;
    if (!wready) {
      w_held_ = true;
      w_strb_ = strb;
      w_last_ = last;
      memcpy(w_data_, data, BeatBytes);
      return;
    }
    sh_->stats.axi_write_beats++;
    active_ = true;
    if (cur_ == nullptr) cur_ = take();
    if (cur_->beats == 256) {
      es_->fail("AXI W: more than 256 beats without wlast");
      cur_->beats = 0;
    }
    memcpy(cur_->data + cur_->beats * BeatBytes, data, BeatBytes);
    cur_->strb[cur_->beats++] = strb;
    if (w_beat_ps_) w_free_ps_ = (w_free_ps_ > now_ps ? w_free_ps_ : now_ps) + w_beat_ps_;
    if (last) {
      full_.push_back(cur_);
      cur_ = nullptr;
    }
  }

  void sample_r(bool ready) {
    if (!rvalid || !ready) return;
    rvalid = false;
    sh_->stats.axi_read_beats++;
  }
  void sample_b(bool ready) {
    if (bvalid && ready) bvalid = false;
  }

  // Next values of the pins, for the cycle that begins at now_ps. The arguments say which requests the
  // master shows already: random stalls are drawn only then, so that idle cycles draw nothing.
  void drive(uint64_t now_ps, bool ar, bool aw, bool w) {
    arready = rd_.size() < max_rd_ && !(ar && rng_.chance(cfg_.axi_stall));
    awready = aw_.size() + wr_.size() < max_wr_ && !(aw && rng_.chance(cfg_.axi_stall));
    wready = full_.size() < 4 && (w_beat_ps_ == 0 || w_free_ps_ < now_ps + cfg_.clock_ps) &&
             !(w && rng_.chance(cfg_.axi_stall));
    if (!active_) return;
    match(now_ps);
    if (!wr_.empty()) commit(now_ps);
    if (!bvalid && !b_.empty() && !rng_.chance(cfg_.axi_stall)) {
      bid = b_.front().id;
      bresp = b_.front().resp;
      bvalid = true;
      b_.pop_front();
    }
    if (!rvalid && !rd_.empty() && r_free_ps_ < now_ps + cfg_.clock_ps && !rng_.chance(cfg_.axi_stall))
      next_read(now_ps);
    active_ = !empty();
  }

  void reset() {
    rd_.clear();
    aw_.clear();
    for (auto &w : wr_) free_.push_back(w.data);
    for (auto *w : full_) free_.push_back(w);
    if (cur_ != nullptr) free_.push_back(cur_);
    cur_ = nullptr;
    wr_.clear();
    full_.clear();
    b_.clear();
    rvalid = bvalid = false;
    ar_held_ = aw_held_ = w_held_ = false;
    cur_rd_id_ = -1;
    active_ = false;
  }

  ~AxiMemory() {
    reset();
    for (auto *w : free_) delete w;
  }
  AxiMemory(const AxiMemory &) = delete;
  AxiMemory &operator=(const AxiMemory &) = delete;

 private:
  struct Read {
    AddrBeat a;
    uint32_t beat;
    uint64_t ready_ps;
  };
  struct WData {
    uint32_t beats = 0;
    uint64_t strb[256];
    uint8_t data[256 * BeatBytes];
  };
  struct Write {
    AddrBeat a;
    WData *data;
    uint64_t ready_ps;
  };
  struct Resp {
    uint32_t id, resp;
  };

  const rnic_config cfg_;
  rnic_shared *sh_;
  ErrorSink *es_;
  Rng rng_;
  uint32_t max_rd_, max_wr_;
  uint64_t r_beat_ps_, w_beat_ps_, r_free_ps_ = 0, w_free_ps_ = 0;
  std::deque<Read> rd_;
  std::deque<AddrBeat> aw_;
  std::deque<WData *> full_;
  std::deque<Write> wr_;
  std::deque<Resp> b_;
  std::vector<WData *> free_;
  WData *cur_ = nullptr;
  bool active_ = false;
  int cur_rd_id_ = -1;
  bool ar_held_ = false, aw_held_ = false, w_held_ = false, w_last_ = false;
  AddrBeat ar_last_, aw_last_;
  uint64_t w_strb_ = 0;
  uint8_t w_data_[BeatBytes] = {};
  size_t rd_hint_ = 0, wr_hint_ = 0;

  WData *take() {
    if (free_.empty()) return new WData;
    WData *w = free_.back();
    free_.pop_back();
    w->beats = 0;
    return w;
  }

  uint64_t latency(uint32_t base) {
    return base + (cfg_.axi_jitter_ps ? rng_.below(cfg_.axi_jitter_ps) : 0);
  }

  void hold(bool &held, const AddrBeat &last, bool valid, const AddrBeat &a, const char *ch) {
    if (!held) return;
    if (!valid) es_->fail("AXI %s: valid taken back before ready", ch);
    else if (!(a == last)) es_->fail("AXI %s: payload changed before ready", ch);
    held = false;
  }

  void check(const AddrBeat &a, const char *ch) {
    constexpr uint32_t size = BeatBytes == 64 ? 6 : BeatBytes == 32 ? 5 : BeatBytes == 16 ? 4 : 3;
    unsigned long long addr = a.addr;
    if (a.burst != 1) es_->fail("AXI %s: burst type %u at 0x%llx, only INCR is used", ch, a.burst, addr);
    if (a.size != size) es_->fail("AXI %s: size %u at 0x%llx, want %u", ch, a.size, addr, size);
    if (a.addr % BeatBytes != 0) es_->fail("AXI %s: address 0x%llx is not aligned to a beat", ch, addr);
    if ((a.addr & 4095) + (a.len + 1ull) * BeatBytes > 4096)
      es_->fail("AXI %s: %u beats at 0x%llx cross 4 KiB", ch, a.len + 1, addr);
  }

  uint32_t fault(uint64_t addr, uint32_t kind) {
    if ((err_which & kind) != 0 && addr + BeatBytes > err_lo && addr < err_hi) {
      sh_->stats.axi_slverr++;
      sh_->stats.axi_fault_addr = addr;
      return kSlverr;
    }
    return kOkay;
  }

  void match(uint64_t now_ps) {
    while (!full_.empty() && !aw_.empty()) {
      WData *d = full_.front();
      AddrBeat a = aw_.front();
      full_.pop_front();
      aw_.pop_front();
      if (d->beats != a.len + 1)
        es_->fail("AXI W: burst at 0x%llx has %u beats, AW said %u",
                  static_cast<unsigned long long>(a.addr), d->beats, a.len + 1);
      wr_.push_back(Write{a, d, now_ps + latency(cfg_.axi_write_latency_ps)});
    }
  }

  void commit(uint64_t now_ps) {
    size_t i = 0;
    if (cfg_.axi_reorder == 0) {
      if (wr_[0].ready_ps > now_ps) return;
    } else {
      i = choose(wr_, now_ps, -1);
      if (i == wr_.size()) return;
    }
    Write w = wr_[i];
    wr_.erase(wr_.begin() + static_cast<long>(i));
    uint32_t resp = kOkay;
    for (uint32_t b = 0; b < w.data->beats; b++) {
      uint64_t strb = w.data->strb[b];
      if (strb == 0) continue;
      uint64_t addr = w.a.addr + static_cast<uint64_t>(b) * BeatBytes;
      uint32_t e = fault(addr, 2);
      uint8_t *to = mem.at(addr, wr_hint_);
      if (e == kOkay && to == nullptr) {
        sh_->stats.axi_decerr++;
        sh_->stats.axi_fault_addr = addr;
        e = kDecerr;
      }
      if (e != kOkay) {
        resp = e;
        continue;
      }
      const uint8_t *from = w.data->data + static_cast<size_t>(b) * BeatBytes;
      constexpr uint64_t all = BeatBytes == 64 ? ~0ull : (1ull << (BeatBytes % 64)) - 1;
      if (strb == all) {
        memcpy(to, from, BeatBytes);
      } else {
        for (unsigned k = 0; k < BeatBytes; k++)
          if ((strb >> k) & 1) to[k] = from[k];
      }
    }
    b_.push_back(Resp{w.a.id, resp});
    free_.push_back(w.data);
  }

  // A random one of those that are due and oldest of their ID; size() if none. only: this ID or -1.
  template <class Q>
  size_t choose(const Q &q, uint64_t now_ps, int only) {
    uint32_t seen = 0;
    size_t cand[16];
    uint32_t n = 0;
    for (size_t i = 0; i < q.size(); i++) {
      uint32_t id = q[i].a.id & 15;
      if ((seen >> id) & 1) continue;
      seen |= 1u << id;
      if (only >= 0 && static_cast<uint32_t>(only) != id) continue;
      if (q[i].ready_ps <= now_ps) cand[n++] = i;
    }
    return n == 0 ? q.size() : cand[n == 1 ? 0 : rng_.below(n)];
  }

  void next_read(uint64_t now_ps) {
    size_t i = 0;
    if (cfg_.axi_reorder == 0) {
      if (rd_[0].ready_ps > now_ps) return;
    } else {
      i = choose(rd_, now_ps, cfg_.axi_reorder == 1 ? cur_rd_id_ : -1);
      if (i == rd_.size()) return;
    }
    Read &r = rd_[i];
    uint64_t addr = r.a.addr + static_cast<uint64_t>(r.beat) * BeatBytes;
    rresp = fault(addr, 1);
    const uint8_t *from = mem.at(addr, rd_hint_);
    if (rresp == kOkay && from == nullptr) {
      sh_->stats.axi_decerr++;
      sh_->stats.axi_fault_addr = addr;
      rresp = kDecerr;
    }
    if (rresp == kOkay) memcpy(rdata, from, BeatBytes);
    else memset(rdata, 0xee, BeatBytes);
    rdata_changed = true;
    rid = r.a.id;
    rlast = r.beat == r.a.len;
    rvalid = true;
    if (r_beat_ps_) r_free_ps_ = (r_free_ps_ > now_ps ? r_free_ps_ : now_ps) + r_beat_ps_;
    r.beat++;
    cur_rd_id_ = rlast ? -1 : static_cast<int>(rid & 15);
    if (rlast) rd_.erase(rd_.begin() + static_cast<long>(i));
  }
};

}  // namespace rnic
