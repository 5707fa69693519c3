#!/usr/bin/env bash
# Copies the static tools of BIN into OUT and checks what was promised of them:
# stripped, no library but glibc's, and less than 100 MB together.
set -euo pipefail

bin=$1 out=$2
rm -rf "$out"
mkdir -p "$out"
for tool in flash-opt flash-run; do
  [[ -x $bin/$tool ]] || continue
  /usr/lib/llvm-22/bin/llvm-strip -o "$out/$tool" "$bin/$tool"
  foreign=$(objdump -p "$out/$tool" | awk '$1 == "NEEDED" { print $2 }' |
    grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-.*)\.so' || true)
  if [[ -n $foreign ]]; then
    echo "make-dist: $tool needs more than glibc: $foreign" >&2
    exit 1
  fi
  "$out/$tool" --version > /dev/null
done
cp LICENSE "$out/"
bytes=$(du -sb "$out" | cut -f1)
echo "make-dist: $out, $((bytes / 1000000)) MB"
if [[ $bytes -ge 100000000 ]]; then
  echo "make-dist: 100 MB or more" >&2
  exit 1
fi
