#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the output of `make demo` and the figures of build/bench.json's run into README.md, so that no number in it is
# typed in by hand: .ci/readme.sh. Runs both; commit the result.
set -euo pipefail
cd "$(dirname "$0")/.."
make --no-print-directory lib build/rnic
verilator/build.sh 512 slots1k
demo=$(build/rnic demo 2>/dev/null)
bench=$(build/rnic bench --json build/bench.json)
machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), one core, $(verilator --version | cut -d' ' -f1-2), $(g++ --version | head -1)"
# splice NAME: replaces the lines between <!-- NAME --> and <!-- end NAME --> by standard input
splice() {
  local text
  text=$(cat)
  awk -v name="$1" -v text="$text" '
    $0 == "<!-- " name " -->" { print; print text; skip = 1; next }
    $0 == "<!-- end " name " -->" { skip = 0 }
    !skip { print }' README.md > build/README.md
  cp build/README.md README.md
}
{ printf '```console\n$ make demo\n'; echo "$demo"; printf '```\n'; } | splice demo
{ printf 'Speed of the simulation measured on: %s.\n\n```\n' "$machine"; echo "$bench"; printf '```\n'; } | splice bench
