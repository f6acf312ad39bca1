-- SPDX-License-Identifier: Apache-2.0
--
-- Post-dissector for what Wireshark's table of InfiniBand opcodes lacks or hides in RoCEv2: congestion notification packets
-- (CNP, opcode 0x81, IBTA annex A17.9.3) and the FECN and BECN bits of the BTH.
--
--   tshark -X lua_script:openrnic.lua -r lab.pcapng -Y openrnic.cnp
--
-- Fields to filter by and to print with -e:
--   openrnic.cnp           a CNP, by its opcode alone
--   openrnic.cnp.malformed a CNP that is not of the form of the annex
--   openrnic.fecn          FECN is set
--   openrnic.becn          BECN is set
--   openrnic.ce            the IP header has CE
--   openrnic.opcode        of the BTH
--   openrnic.destqp        of the BTH

local roce_port = 4791
local bth_len, reserved_len, icrc_len = 12, 16, 4

local p = Proto("openrnic", "openrnic RoCEv2 congestion")
local f = {
	opcode = ProtoField.uint8("openrnic.opcode", "Opcode", base.HEX),
	destqp = ProtoField.uint24("openrnic.destqp", "Destination QP", base.HEX),
	cnp = ProtoField.bool("openrnic.cnp", "CNP"),
	malformed = ProtoField.string("openrnic.cnp.malformed", "Malformed CNP"),
	fecn = ProtoField.bool("openrnic.fecn", "FECN"),
	becn = ProtoField.bool("openrnic.becn", "BECN"),
	ce = ProtoField.bool("openrnic.ce", "CE"),
}
p.fields = { f.opcode, f.destqp, f.cnp, f.malformed, f.fecn, f.becn, f.ce }

local udp_port = Field.new("udp.dstport")
local udp_len = Field.new("udp.length")
local ecn4, ecn6 = Field.new("ip.dsfield.ecn"), Field.new("ipv6.tclass.ecn")

-- form says what is wrong with a CNP; nil: nothing.
local function form(bth, len)
	if len ~= bth_len + reserved_len + icrc_len then
		return len .. " bytes behind UDP, want 32"
	end
	if bit.band(bth(4, 1):uint(), 0xc0) ~= 0x40 then
		return "want BECN without FECN"
	end
	if bth(9, 3):uint() ~= 0 or bth(8, 1):uint() ~= 0 then
		return "want PSN 0 and no AckReq"
	end
	for i = 0, reserved_len - 1 do
		if bth(bth_len + i, 1):uint() ~= 0 then
			return "reserved bytes are not 0"
		end
	end
	return nil
end

function p.dissector(tvb, pinfo, tree)
	local port, len = udp_port(), udp_len()
	if port == nil or len == nil or port.value ~= roce_port then
		return
	end
	local at = port.offset + 6 -- behind the UDP header, whose destination port is at 2
	len = len.value - 8
	if len < bth_len or tvb:len() < at + len then
		return
	end
	local bth = tvb(at, len)
	local t = tree:add(p, bth)
	local opcode, flags = bth(0, 1):uint(), bth(4, 1):uint()
	t:add(f.opcode, bth(0, 1))
	t:add(f.destqp, bth(5, 3))
	if bit.band(flags, 0x80) ~= 0 then
		t:add(f.fecn, bth(4, 1), true)
	end
	if bit.band(flags, 0x40) ~= 0 then
		t:add(f.becn, bth(4, 1), true)
	end
	local ecn = ecn4() or ecn6()
	if ecn ~= nil and ecn.value == 3 then
		t:add(f.ce, true)
	end
	if opcode == 0x81 then
		t:add(f.cnp, bth(0, 1), true)
		local bad = form(bth, len)
		if bad ~= nil then
			t:add(f.malformed, bth, bad)
		end
		pinfo.cols.info = string.format("CNP QP=0x%06x", bth(5, 3):uint()) .. (bad and " malformed: " .. bad or "")
	end
end

register_postdissector(p)
