// Two warpgroups alternate between tiles of 64 keys that are the values, too: even and odd numbers of tiles, a last one of some keys, and splits.
// DEFINE: %{features} = features=specialize_warps|divide_columns|ping_pong
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --shape 0=2x16x1x576 --shape 2=2 --check
// RUN: %{run} --shape 1=2x1x1x576 --schedule="%{features}|persistent|bulk_store" | FileCheck %s
// RUN: %{run} --shape 1=2x1x128x576 --schedule="%{features}|persistent|bulk_store" | FileCheck %s
// RUN: %{run} --shape 1=2x1x460x576 --schedule="%{features}|persistent|bulk_store" | FileCheck %s
// RUN: %{run} --shape 1=2x1x460x576 --schedule="num_splits=2,%{features}|bulk_store" | FileCheck %s
// CHECK: check: ok
!keys = tensor<?x1x?x576xbf16>
func.func @decode(%q: tensor<?x16x1x576xbf16>, %k: !keys, %lengths: tensor<?xi32>) -> tensor<?x16x1x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : !keys
  %n = tensor.dim %k, %c2 : !keys
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : !keys to tensor<?x1x?x512xbf16>
  %o = flash.attention %q, %k, %v lengths(%lengths : tensor<?xi32>) : (tensor<?x16x1x576xbf16>, !keys, tensor<?x1x?x512xbf16>) -> tensor<?x16x1x512xbf16>
  return %o : tensor<?x16x1x512xbf16>
}
