#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs one unit test bench: hw/tb/run.sh NAME WIDTH   (hw/tb/NAME.sv, parameter DataW=WIDTH)
# AXI and stream ports of the design have their protocol checkers (hw/tb/checks.sv).
# A bench with a Go program hw/tb/vec/NAME gets that program's output as +vec=FILE.
# With COVERAGE=1 the bench counts lines and branches and leaves build/coverage/NAME.wWIDTH/coverage.dat; COVERAGE=toggle
# counts toggles of signals as well.
# The bench prints a line that begins with PASS and ends by $finish; anything else is a failure.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=${1:?usage: run.sh NAME WIDTH} width=${2:?usage: run.sh NAME WIDTH}
src=hw/tb/$name.sv
[ -f "$src" ] || { echo "run.sh: no such test bench: $src" >&2; exit 2; }
out=build/tb/$name.w$width
how=(--binary)
exe=V$name
if [ -n "${COVERAGE:-}" ]; then
  out=build/coverage/$name.w$width
  exe=Vtb
  how=(--cc --exe --build --prefix Vtb --coverage-line --coverage-user "$PWD/hw/tb/coverage.cpp" -MAKEFLAGS OPT_FAST=-O0) # compiling costs more than running
  [ "$COVERAGE" != toggle ] || how+=(--coverage-toggle)
fi
# Verilator's run-time library is the same for every bench
if [ -z "${OBJCACHE:-}" ] && command -v ccache > /dev/null; then export OBJCACHE=ccache; fi
mkdir -p "$out"
stamp=$(cat "$src" $(find hw/rtl hw/tb -name '*.sv' -o -name '*.svh' -o -name '*.f' | sort) | sha256sum | cut -d' ' -f1)
if [ ! -x "$out/$exe" ] || [ "$(cat "$out/stamp" 2>/dev/null)" != "$stamp" ]; then
  grep -v '^//' hw/rtl/rnic.f > "$out/rnic.f"
  verilator "${how[@]}" --timing --assert -Wall -Wno-fatal -Wno-DECLFILENAME -Wno-UNUSED -Wno-BLKSEQ -Wno-WIDTH -Wno-SYNCASYNCNET \
    --unroll-count 1024 -j 1 --x-assign unique --x-initial unique -CFLAGS -O1 \
    -GDataW="$width" --top-module "$name" --Mdir "$out" -y hw/tb -Ihw/tb -f "$out/rnic.f" hw/tb/checks.sv "$src" \
    > "$out/build.log" 2>&1 || { grep -E '%Error|error' "$out/build.log" | head -20 >&2; echo "FAIL build $name w$width (log: $out/build.log)"; exit 1; }
  echo "$stamp" > "$out/stamp"
fi
log=$out/run.log
args=()
if [ -d "hw/tb/vec/$name" ]; then
  go run "./hw/tb/vec/$name" > "$out/vectors.txt"
  args=("+vec=$out/vectors.txt")
fi
[ -z "${COVERAGE:-}" ] || args+=("+coverage=$out/coverage.dat")
if timeout "${TB_TIMEOUT:-600}" "$out/$exe" "${args[@]}" +verilator+rand+reset+2 +verilator+seed+"${SEED:-1}" > "$log" 2>&1 && grep -q '^PASS' "$log"; then
  echo "ok   $name w$width: $(grep '^PASS' "$log" | tail -1)"
else
  tail -20 "$log" >&2
  echo "FAIL $name w$width (log: $log)"
  exit 1
fi
