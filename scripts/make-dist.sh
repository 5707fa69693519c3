#!/usr/bin/env bash
# Copies the static tools and the library of BUILD into OUT and checks what was
# promised of them: stripped, no library but glibc's, and less than 100 MB of
# tools and of library.
set -euo pipefail

build=$1 out=$2
rm -rf "$out"
mkdir -p "$out"

# Usage: copy FILE NAME
copy() {
  /usr/lib/llvm-22/bin/llvm-strip -o "$out/$2" "$1"
  foreign=$(objdump -p "$out/$2" | awk '$1 == "NEEDED" { print $2 }' |
    grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-.*)\.so' || true)
  if [[ -n $foreign ]]; then
    echo "make-dist: $2 needs more than glibc: $foreign" >&2
    exit 1
  fi
}

# Usage: check_size WHAT FILE...
check_size() {
  bytes=$(du -cb "${@:2}" | tail -1 | cut -f1)
  echo "make-dist: $out, $1: $((bytes / 1000000)) MB"
  if [[ $bytes -ge 100000000 ]]; then
    echo "make-dist: 100 MB or more" >&2
    exit 1
  fi
}

copy "$build/bin/flash-tools-static" flash-run
ln -s flash-run "$out/flash-opt"
# Each by what the other cannot do.
"$out/flash-opt" --show-dialects > /dev/null
"$out/flash-run" --targets > /dev/null
# The loader looks for the soname, the linker for the other.
soname=$(objdump -p "$build/lib/static/libflash.so" | awk '$1 == "SONAME" { print $2 }')
copy "$build/lib/static/libflash.so" "$soname"
ln -s "$soname" "$out/libflash.so"
cp LICENSE include/flash-c/Flash.h "$out/"
check_size tools "$out/flash-run"
check_size library "$out/$soname"
