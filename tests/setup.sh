# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What tests/run and the scripts in pipelines/ share: packages, nvcc, build directories. Sourced by bash, not run.
set -euo pipefail

program=${0##*/}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)
python=/usr/bin/python3 # the one that Debian's python3-* packages are for

# nvcc's installer does not put it in PATH.
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  PATH=$PATH:/usr/local/cuda/bin
fi

build_packages=(gcc libc6-dev meson ninja-build pkg-config python3 libglib2.0-dev libgstreamer1.0-dev
  libgstreamer-plugins-base1.0-dev)

fail () {
  printf '%s: %s\n' "$program" "$*" >&2
  exit 1
}

# need_packages NAME...: installs those of Debian's packages that are not there.
need_packages () {
  local name missing=() as_root=() log=$root/build/apt.log
  if ! command -v dpkg-query >/dev/null; then
    echo "No dpkg on this system: taking it that what these Debian packages hold is there: $*"
    return
  fi
  for name; do
    # shellcheck disable=SC2016 # the format is dpkg's
    dpkg-query -W -f='${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "root or sudo is needed to install: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  mkdir -p "$root/build"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=2
    -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0)
  if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    fail "apt-get could not install ${missing[*]}; check the network and the package sources, its output is in $log"
  fi
}

# configure DIR OPTION...: makes DIR a build directory with these options; does nothing if it is one already.
configure () {
  local dir=$1 wanted="CC=${CC:-cc} ${*:2}" how=()
  shift
  if [ -f "$dir/build.ninja" ]; then
    [ "$(cat "$dir/options" 2>/dev/null)" != "$wanted" ] || return 0
    how=(--wipe)
  fi
  meson setup "${how[@]}" "$dir" "$root" "$@" && echo "$wanted" >"$dir/options"
}

# The compute capabilities of this machine's GPUs as meson's cuda-archs; the oldest that nvcc 13 knows if there is no
# GPU to ask: its PTX runs on every later one.
cuda_archs_here () {
  local archs
  archs=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' | sort -nu | paste -sd,) || :
  [[ $archs =~ ^[0-9,]+$ ]] || archs=75
  echo "$archs"
}

# build_release: the optimised build that the scripts in pipelines/ run, in build/release.
build_release () {
  local dir=$root/build/release archs log
  log=$dir.log
  archs=$(cuda_archs_here)
  mkdir -p "$root/build"
  if command -v nvcc >/dev/null; then
    echo "Building in $dir, with CUDA kernels for compute capability $archs only"
  else
    echo "Building in $dir, without CUDA: there is no nvcc in PATH or /usr/local/cuda/bin, the CPU device remains"
  fi
  if ! { configure "$dir" -Dbuildtype=release -Dtests=disabled -Dcuda-archs="$archs" && ninja -C "$dir" -j "$jobs"; } \
      >"$log" 2>&1; then
    tail -n 20 "$log" | cut -c -200 >&2
    fail "the build failed; the whole output is in $log"
  fi
  export GST_PLUGIN_PATH=$dir/gst/elements${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}
  export GST_PRESET_PATH=$root/gst/elements/presets${GST_PRESET_PATH:+:$GST_PRESET_PATH}
  export GST_REGISTRY=$dir/registry.bin
}
