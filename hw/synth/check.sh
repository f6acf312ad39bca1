#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elaborates rnic_core in Yosys with the slang front end, at both ends of the data width, and reports
# the cells. Fails on errors, inferred latches, several drivers and implicit nets.
# A native yosys with slang (0.67 or newer) is taken if there is one, else the WebAssembly build from npm
# (package.json; installed below build/synth, with the Node it needs).
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

native_yosys() {
  local v
  command -v yosys > /dev/null || return 1
  v=$(yosys -V | sed -n 's/^Yosys 0\.\([0-9]*\).*/\1/p')
  [ -n "$v" ] && [ "$v" -ge 67 ] && yosys -Q -T -p 'help read_slang' 2> /dev/null | grep -q 'read_slang'
}

if native_yosys; then
  run() { yosys -Q -T "$1"; }
else
  npm=$out/npm
  if ! cmp -s hw/synth/package.json "$npm/package.json" || [ ! -x "$npm/node_modules/node/bin/node" ]; then
    command -v npm > /dev/null || {
      echo "synth-check: needs yosys 0.67 or newer, or npm (apt-get install npm)" >&2
      exit 1
    }
    echo "synth-check: installing Yosys (WebAssembly) from npm below $npm"
    mkdir -p "$npm"
    (cp hw/synth/package.json "$npm/package.json" && cd "$npm" &&
      npm install --no-audit --no-fund --loglevel=error > ../npm.log 2>&1 &&
      { [ -x node_modules/node/bin/node ] || node node_modules/node/installArchSpecificPackage.js >> ../npm.log 2>&1; }) || {
      cat "$out/npm.log" >&2
      rm -f "$npm/package.json"
      exit 1
    }
  fi
  run() { "$npm/node_modules/node/bin/node" hw/synth/check.mjs "$npm" "$1"; }
fi

fail=0
for w in $widths; do
  script "$w" > "$out/w$w.ys"
  log=$out/w$w.log
  if ! run "$out/w$w.ys" 2>&1 | sed 's/\x1b\[[0-9;]*m//g' > "$log"; then
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
