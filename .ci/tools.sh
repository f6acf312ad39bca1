#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes sure that what the build needs is there: .ci/tools.sh [build|test|synth|formal]
# Installs missing Debian/Ubuntu packages (as root, or through sudo when it asks for no password); without
# permission it prints the exact line to run and stops. Does nothing, fast, when everything is there.
set -euo pipefail
level=${1:-build}
cd "$(dirname "$0")/.."

have() { command -v "$1" > /dev/null 2>&1; }
# version_ge A B: A >= B, compared as dotted numbers
version_ge() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

need=()
have g++ || need+=(g++)
have ccache || need+=(ccache)
have verilator || need+=(verilator)
[ -e /usr/include/zlib.h ] || need+=(zlib1g-dev)
[ -e /etc/ssl/certs/ca-certificates.crt ] || need+=(ca-certificates)
if [ "$level" = test ]; then
  have tshark || need+=(tshark)
fi
if [ "$level" = synth ] || [ "$level" = formal ]; then
  have node || need+=(nodejs)
  have npm || need+=(npm)
fi
if [ "$level" = formal ]; then
  have berkeley-abc || have yosys-abc || need+=(berkeley-abc)
fi

# Go: 1.21 and newer fetch the toolchain that go.mod names by themselves; older ones are replaced by the
# distribution's newest, from its backports where there are any.
go_bin=go
have go || { [ -x /usr/local/go/bin/go ] && go_bin=/usr/local/go/bin/go; }
go_version=$($go_bin env GOVERSION 2>/dev/null | sed 's/^go//') || go_version=
backports=
if [ -z "$go_version" ] || ! version_ge "$go_version" 1.21; then
  need+=(golang-go)
  . /etc/os-release
  [ "${VERSION_CODENAME:-}" = bookworm ] && backports=bookworm-backports
fi

if [ ${#need[@]} -gt 0 ]; then
  have apt-get || {
    echo "tools: missing: ${need[*]} (install them with this system's package manager)" >&2
    exit 1
  }
  target=()
  backports_list=/etc/apt/sources.list.d/openrnic-backports.list
  setup=
  if [ -n "$backports" ] && ! grep -rqs "$backports" /etc/apt/sources.list /etc/apt/sources.list.d; then
    # from the archive that this machine uses already
    mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' 2>/dev/null | head -1)
    [ -n "$mirror" ] || {
      echo "tools: Go ${go_version:-is missing and} must be 1.21 or newer: add the suite $backports to the apt sources, then try again" >&2
      exit 1
    }
    setup="echo 'deb $mirror $backports main' > $backports_list; "
  fi
  [ -n "$backports" ] && target=(-t "$backports")
  line="${setup}apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${need[*]/golang-go/}"
  [ -n "$backports" ] && line="$line && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${target[*]} golang-go"
  [ -z "$backports" ] && [[ " ${need[*]} " == *" golang-go "* ]] && line="$line golang-go"
  echo "tools: missing: ${need[*]}; installing with apt" >&2
  if [ "$(id -u)" = 0 ]; then
    run=(bash -c)
  elif have sudo && sudo -n true 2>/dev/null; then
    run=(sudo -n bash -c)
  else
    echo "tools: no permission to install. Run this as root, then try again:" >&2
    echo "  $line" >&2
    exit 1
  fi
  mkdir -p build
  "${run[@]}" "$line" > build/apt.log 2>&1 || {
    tail -5 build/apt.log >&2
    echo "tools: installation failed (whole log: build/apt.log). The line was:" >&2
    echo "  $line" >&2
    exit 1
  }
fi

version=$(verilator --version | awk '{print $2}')
version_ge "$version" 5.006 || {
  echo "tools: verilator $version is too old, 5.006 is needed; Debian 12 and Ubuntu 24.04 have it: apt-get install verilator" >&2
  exit 1
}
