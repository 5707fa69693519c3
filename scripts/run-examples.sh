#!/usr/bin/env bash
# Runs every example with check and timing; exits 1 when one of them fails.
set -uo pipefail

build=${1:-build}
failed=0
for file in examples/*.mlir; do
  options=(--check --bench)
  case $file in
    */softcap_alibi.mlir) # its sizes are dynamic
      options+=(--shape 0=1x4x500x128 --shape 1=1x4x500x128
                --shape 2=1x4x500x128 --shape 3=4) ;;
  esac
  echo "== $file"
  "$build/bin/flash-run" "$file" "${options[@]}" || failed=1
done
exit $failed
