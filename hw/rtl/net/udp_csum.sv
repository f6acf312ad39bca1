// SPDX-License-Identifier: Apache-2.0
//
// UDP checksum (RFC 768, RFC 8200 8.1) over a frame that streams by: one's complement sum of
// everything from the source IP address to the end of the IP packet, of the protocol number and of
// the UDP length (the length of the IP payload: that both are equal is checked elsewhere). A zero
// checksum field is not treated here.
//
// One beat per cycle, frames without a gap, no back-pressure; ok_o belongs to the last beat of 5
// cycles ago. Attributes of the beats as delivered by rx_predecode. The sum is formed in words of
// 32 bits in the byte order of the lanes and folded to 16 bits once at the end: the one's
// complement sum does not depend on byte order (RFC 1071).

module udp_csum #(
  parameter int unsigned DataW = 512,
  localparam int unsigned Bytes = DataW / 8,
  localparam int unsigned CntW = $clog2(Bytes) + 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  input  logic             first_i,
  input  logic             skip_i,
  input  logic             end_i,
  input  logic [CntW-1:0]  cov_cnt_i,
  input  logic [3:0]       beat_i,
  input  logic [1:0]       l3_i,
  input  logic             ip6_i,
  input  logic [15:0]      l4_len_i,
  input  logic [DataW-1:0] data_i,
  output logic             ok_o
);

  // The sum begins at the source address: byte 12 of IPv4, 8 of IPv6, at the latest byte 34.
  localparam int unsigned HdrBeats = (34 + Bytes - 1) / Bytes;
  localparam int unsigned IdxW = HdrBeats > 1 ? $clog2(HdrBeats) : 1;
  localparam int unsigned HdrW = (1 << IdxW) * DataW;
  localparam int unsigned Words = DataW / 32;
  localparam int unsigned Parts = Words / 4 == 0 ? 1 : Words / 4;
  localparam int unsigned PerPart = Words / Parts;

  localparam logic [HdrW-1:0] Ones = '1;
  typedef logic [(1<<IdxW)-1:0][DataW-1:0] hdr_t;
  localparam hdr_t [7:0] FromTab = {
    Ones, Ones << (8 * 30), Ones << (8 * 26), Ones << (8 * 22),
    Ones, Ones << (8 * 34), Ones << (8 * 30), Ones << (8 * 26)
  };

  // Written without functions: Verilator clears the wide locals of a function in every cycle.
  localparam logic [DataW-1:0] BeatOnes = '1;
  logic [9:0] drop_bits;   // bits of the beat behind the end
  assign drop_bits = 10'((Bytes - 32'(cov_cnt_i)) * 8);

  // ---- mask ---------------------------------------------------------------------------------
  logic [IdxW-1:0] idx;
  logic header, m_valid_q, m_first_q;
  logic [Words-1:0][31:0] m_data_q;
  logic [16:0] m_pseudo_q;
  assign idx = HdrBeats > 1 ? beat_i[IdxW-1:0] : '0;
  assign header = 32'(beat_i) < HdrBeats;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) m_valid_q <= 1'b0;
    else m_valid_q <= valid_i && !skip_i;
    if (valid_i && !skip_i) begin
      m_first_q <= first_i;
      m_pseudo_q <= end_i ? 17'({l4_len_i[7:0], l4_len_i[15:8]}) + 17'h1100 : '0;
      if (header && end_i)
        m_data_q <= data_i & FromTab[{ip6_i, l3_i}][idx] & (BeatOnes >> drop_bits);
      else if (header) m_data_q <= data_i & FromTab[{ip6_i, l3_i}][idx];
      else if (end_i) m_data_q <= data_i & (BeatOnes >> drop_bits);
      else m_data_q <= data_i;
    end
  end

  // ---- sums of up to four words, then of these, then of the frame ----------------------------
  logic p_valid_q, p_first_q, t_valid_q, t_first_q;
  logic [Parts-1:0][33:0] p_q;
  logic [16:0] p_pseudo_q;
  logic [35:0] t_q;
  logic [46:0] acc_q;
  logic [18:0] fold;

  for (genvar i = 0; i < Parts; i++) begin : gen_part
    if (PerPart == 4) begin : gen_four
      always_ff @(posedge clk_i) begin
        if (m_valid_q) begin
          p_q[i] <= 34'(m_data_q[4*i]) + 34'(m_data_q[4*i+1]) + 34'(m_data_q[4*i+2]) +
                    34'(m_data_q[4*i+3]);
        end
      end
    end else begin : gen_two
      always_ff @(posedge clk_i) begin
        if (m_valid_q) p_q[i] <= 34'(m_data_q[2*i]) + 34'(m_data_q[2*i+1]);
      end
    end
  end

  logic [35:0] total;
  always_comb begin
    total = '0;
    for (int unsigned i = 0; i < Parts; i++) total += 36'(p_q[i]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      p_valid_q <= 1'b0;
      t_valid_q <= 1'b0;
    end else begin
      p_valid_q <= m_valid_q;
      t_valid_q <= p_valid_q;
    end
    if (m_valid_q) begin
      p_first_q <= m_first_q;
      p_pseudo_q <= m_pseudo_q;
    end
    if (p_valid_q) begin
      t_first_q <= p_first_q;
      t_q <= total + 36'(p_pseudo_q);
    end
    if (t_valid_q) acc_q <= (t_first_q ? '0 : acc_q) + 47'(t_q);
  end

  // Zero modulo 65535, but not zero itself (the addresses are in the sum).
  assign fold = 19'(acc_q[15:0]) + 19'(acc_q[31:16]) + 19'(acc_q[46:32]);
  always_ff @(posedge clk_i) ok_o <= fold == 19'h0ffff || fold == 19'h1fffe;

endmodule
