#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the library of one verilated NIC:  verilator/build.sh WIDTH [trace] [asan] [check] [thrash] [slots1k] [probe]
#   WIDTH  64, 128, 256, 512       -> build/lib/librnic_w<WIDTH>.so
#   trace  with FST waves          -> build/lib/librnic_w<WIDTH>_trace.so
#   asan   AddressSanitizer and UBSan in the harness -> build/lib/librnic_w<WIDTH>_asan.so (preload libasan)
#   check  evaluates all of the RTL in every cycle and stops if activity.pl would have left out a change
#          -> build/lib/librnic_w<WIDTH>_check.so
#   thrash two sets of QPs on chip: contexts come and go with nearly every packet -> build/lib/librnic_w<WIDTH>_thrash.so
#   slots1k 1024 slots for QPs instead of 256 -> build/lib/librnic_w<WIDTH>_slots1k.so
#   probe  the harness' own test fixture instead of rnic_core -> build/lib/librnic_probe_w<WIDTH>.so
# Does nothing when RTL, harness and options are those of the library that is there. JOBS=n compilers at a time
# (default 2). A terminal sees one progress line; on an error the tail of the log is shown.
set -euo pipefail
cd "$(dirname "$0")/.."

width=${1:?usage: verilator/build.sh WIDTH [trace] [asan] [check] [thrash] [slots1k] [probe]}
shift
case $width in 64|128|256|512) ;; *) echo "build.sh: width $width is not 64, 128, 256 or 512" >&2; exit 2 ;; esac
trace=0 san='' check='' core=() top=rnic_core name=rnic_w$width
for opt in "$@"; do [ "$opt" != probe ] || { top=harness_probe name=rnic_probe_w$width; }; done
for opt in "$@"; do
  case $opt in
    trace) trace=1 name=${name}_trace ;;
    asan) san='-fsanitize=address,undefined -fno-sanitize-recover=undefined -g1' name=${name}_asan ;;
    check) check=-DRNIC_ACTIVITY_CHECK name=${name}_check ;;
    thrash) core=(-GQpLogSets=1) name=${name}_thrash ;;
    slots1k) core=(-DRNIC_NUM_QP=1024) name=${name}_slots1k ;;
    probe) ;;
    *) echo "build.sh: unknown option $opt" >&2; exit 2 ;;
  esac
done

dir=build/verilated/$name lib=build/lib/lib$name.so log=build/verilated/$name.log
mkdir -p "$dir" build/lib
exec 9>"$dir.lock"
flock 9

vflags=(--cc --top-module "$top" --prefix Vrnic -GDataW="$width" "${core[@]}" --Mdir "$dir" -O3 --x-assign fast --x-initial fast
        --noassert --unroll-count 1024 --output-split 20000 -Wno-fatal -Wno-lint -Wno-style)
# With waves every signal has to be there in every cycle; without, activity.pl follows what changes, in small statements.
if [ $trace = 1 ]; then vflags+=(--trace-fst --trace-structs); else vflags+=(-fno-merge-cond); fi
[ "$top" = rnic_core ] || vflags+=(-y verilator/test)
cflags="-O2 -fPIC -fvisibility=hidden -fno-gnu-unique${check:+ $check}"

stamp=$( { echo "$top $width $trace $san $cflags ${vflags[*]}"; verilator --version; "${CXX:-g++}" --version
           sha256sum $(find hw/rtl verilator cosim/model \( -name '*.sv' -o -name '*.svh' -o -name '*.f' -o -name '*.cpp' \
             -o -name '*.h' -o -name '*.map' -o -name build.sh -o -name '*.pl' \) -not -path '*/gen/*.h' | LC_ALL=C sort); } | sha256sum)
if [ -f "$lib" ] && [ "$(cat "$dir/stamp" 2>/dev/null)" = "$stamp" ]; then exit 0; fi

begin=$SECONDS
tty=0
if [ -t 2 ] && [ -z "${NO_PROGRESS:-}" ]; then tty=1; fi
progress() {  # percent, text
  if [ $tty = 1 ]; then printf '\r\033[K%s: %3d%%  %s  (%ds)' "$name" "$1" "$2" $((SECONDS - begin)) >&2; fi
}
fail() {
  [ $tty = 0 ] || printf '\n' >&2
  echo "build of $lib failed: $1; the end of $log:" >&2
  { grep -E '%Error|error:|undefined' "$log" || tail -25 "$log"; } | head -40 >&2
  exit 1
}

: > "$log"
progress 0 "verilating $top"
grep -v '^//' hw/rtl/rnic.f > "$dir/rnic.f"
find "$dir" -name 'Vrnic*.cpp' -delete
verilator "${vflags[@]}" -f "$dir/rnic.f" "$top" >> "$log" 2>&1 || fail "verilator found an error"
if [ $trace = 0 ]; then
  perl verilator/activity.pl "$dir" >> "$log" 2>&1 || fail "activity.pl found an error"
  if grep -q '^activity: not applied' "$log"; then
    echo "$name: simulates slowly: $(grep -m1 '^activity: not applied' "$log")" >&2
  fi
fi
perl verilator/trim_locals.pl "$dir"/Vrnic*DepSet*.cpp >> "$log" 2>&1 || fail "trim_locals.pl found an error"

total=$(find "$dir" -name 'Vrnic*.cpp' | wc -l)
total=$((total + 4))
done_=0
cache=''
if command -v ccache > /dev/null; then cache=ccache; fi
make -C "$dir" -f Vrnic.mk -j "${JOBS:-2}" OPT_FAST=-O2 OPT_SLOW= OBJCACHE="$cache" \
     USER_CPPFLAGS="$cflags" VM_PARALLEL_BUILDS=1 Vrnic__ALL.a verilated.o verilated_threads.o \
     $([ $trace = 0 ] || echo verilated_fst_c.o) 2>&1 |
  while IFS= read -r line; do
    printf '%s\n' "$line" >> "$log"
    case $line in *' -c '*) done_=$((done_ + 1)); progress $((done_ * 94 / total < 94 ? 3 + done_ * 94 / total : 97)) 'compiling C++' ;; esac
  done || fail "the C++ compiler found an error"

inc=$(verilator --getenv VERILATOR_ROOT)/include
progress 97 'linking'
{ $cache "${CXX:-g++}" -std=gnu++17 $cflags $san -Wall -Wextra -Werror -c verilator/rnic_harness.cpp -o "$dir/rnic_harness.o" \
    -DRNIC_DATA_W="$width" -DRNIC_TRACE=$trace -DRNIC_TOP="$top" -I"$dir" -Icosim/model -Iverilator \
    -isystem "$inc" -isystem "$inc/vltstd" &&
  "${CXX:-g++}" -shared $san -o "$lib.new" "$dir/rnic_harness.o" "$dir/Vrnic__ALL.a" "$dir/verilated.o" \
    "$dir/verilated_threads.o" $([ $trace = 0 ] || echo "$dir/verilated_fst_c.o") \
    -Wl,-Bsymbolic -Wl,--version-script=verilator/exports.map -Wl,--no-undefined -pthread -lz; } >> "$log" 2>&1 ||
  fail "the harness does not compile or link"
mv -f "$lib.new" "$lib"
echo "$stamp" > "$dir/stamp"
progress 100 "$lib"
[ $tty = 0 ] || printf '\n' >&2
