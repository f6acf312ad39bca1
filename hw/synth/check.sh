#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elaborates rnic_core in Yosys with the slang front end, at both ends of the data width, and reports
# the cells. Fails on errors, inferred latches, several drivers and implicit nets.
# hw/synth/check.sh [WIDTH...]   default: 64 512
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/synth
mkdir -p "$out"
widths=${*:-64 512}

files() { grep '\.sv$' hw/rtl/rnic.f; }
libs() { sed -n 's/^-y //p' hw/rtl/rnic.f; }

script() { # WIDTH
  local y=""
  for d in $(libs); do y+=" -y $d"; done
  echo "read_slang --threads 1 --top rnic_core -G DataW=$1$y -Y .sv $(files | tr '\n' ' ') hw/rtl/rnic_core.sv"
  echo "hierarchy -check -top rnic_core"
  echo "proc"
  echo "opt_expr; opt_clean"
  echo "check"
  echo "stat"
}

hw/synth/yosys.sh

fail=0
for w in $widths; do
  script "$w" > "$out/w$w.ys"
  log=$out/w$w.log
  if ! hw/synth/yosys.sh "$out/w$w.ys" 2>&1 | sed 's/\x1b\[[0-9;]*m//g' > "$log"; then
    grep -iE 'error' "$log" | head -20 >&2 || tail -20 "$log" >&2
    echo "FAIL synth-check w$w (log: $log)"
    fail=1
    continue
  fi
  bad=$(grep -iE 'Latch inferred|multiple conflicting drivers|implicitly declared|has no driver|used but has no driver|found logic loop|logic loop in' "$log" || true)
  if [ -n "$bad" ]; then
    echo "$bad" | sort | uniq -c | head -20 >&2
    echo "FAIL synth-check w$w (log: $log)"
    fail=1
    continue
  fi
  echo "ok   synth-check w$w: $(awk '/Printing statistics/ { s = "" } / (memory bits|memories|cells)$/ { s = s " " $1 " " $2 ($3 == "" ? "" : " " $3) "," }
    END { sub(/^ /, "", s); sub(/,$/, "", s); print s }' "$log") (log: $log)"
done
exit $fail
