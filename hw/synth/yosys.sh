#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a Yosys script that may use read_slang: hw/synth/yosys.sh SCRIPT [FILE...]
# Paths in the script are relative to the top of the repository; it may read hw/ and FILEs and write below build/, into
# folders of SCRIPT or FILEs. Without arguments it only makes sure that there is a Yosys.
# A native yosys with slang (0.67 or newer) is taken if there is one, else the WebAssembly build from npm
# (package.json; installed below build/synth, with the Node it needs).
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/synth
npm=$out/npm

native_yosys() {
  local v
  command -v yosys > /dev/null || return 1
  v=$(yosys -V | sed -n 's/^Yosys 0\.\([0-9]*\).*/\1/p')
  [ -n "$v" ] && [ "$v" -ge 67 ] && yosys -Q -T -p 'help read_slang' 2> /dev/null | grep -q 'read_slang'
}

if native_yosys; then
  [ $# = 0 ] || exec yosys -Q -T -s "$1"
  exit 0
fi
if ! cmp -s hw/synth/package.json "$npm/package.json" || [ ! -x "$npm/node_modules/node/bin/node" ]; then
  command -v npm > /dev/null || {
    echo "yosys.sh: needs yosys 0.67 or newer, or npm (apt-get install npm)" >&2
    exit 1
  }
  echo "installing Yosys (WebAssembly) from npm below $npm" >&2
  mkdir -p "$npm"
  (cp hw/synth/package.json "$npm/package.json" && cd "$npm" &&
    npm install --no-audit --no-fund --loglevel=error > ../npm.log 2>&1 &&
    { [ -x node_modules/node/bin/node ] || node node_modules/node/installArchSpecificPackage.js >> ../npm.log 2>&1; }) || {
    cat "$out/npm.log" >&2
    rm -f "$npm/package.json"
    exit 1
  }
fi
[ $# = 0 ] || exec "$npm/node_modules/node/bin/node" hw/synth/yosys.mjs "$npm" "$@"
