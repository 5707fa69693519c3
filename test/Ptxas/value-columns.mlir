// Decoding whose values are the first columns of the keys, in a batch and in pages, of sizes that are open: the tile of keys is in shared memory once.
// REQUIRES: ptxas
// RUN: flash-opt %s --flash-gpu=target=sm_80 | flash-translate --ptxas --chip=sm_80 | FileCheck %s
// RUN: flash-opt %s --flash-gpu=target=sm_90a | flash-translate --ptxas --chip=sm_90a | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=features=specialize_warps|divide_columns|ping_pong|persistent|bulk_store' | flash-opt --flash-gpu=target=sm_90a | flash-translate --ptxas --chip=sm_90a | FileCheck %s
// CHECK-DAG: few: {{.*}} spill stores 0
// CHECK-DAG: many: {{.*}} spill stores 0
// CHECK-DAG: pages: {{.*}} spill stores 0
// RUN: flash-opt %s --flash-gpu=target=sm_90a --mlir-print-ir-after=tile-make-rings -o /dev/null 2>&1 | FileCheck %s --check-prefix=RINGS
// RINGS-LABEL: gpu.func @few(
// RINGS-COUNT-2: = tile.ring{{( copies = [0-9]+)?}} : {{.*}}x576xbf16
// RINGS-NOT:     = tile.ring{{( copies = [0-9]+)?}} :
// RINGS:         gpu.return
// RINGS-LABEL: gpu.func @pages(
// RINGS-COUNT-2: = tile.ring{{( copies = [0-9]+)?}} : {{.*}}x576xbf16
// RINGS-NOT:     = tile.ring{{( copies = [0-9]+)?}} :
// RINGS:         gpu.return
!few = tensor<?x16x1x576xbf16>
!many = tensor<?x128x1x576xbf16>
!rows = tensor<?x1x?x576xbf16>
!columns = tensor<?x1x?x512xbf16>
func.func @few(%q: !few, %k: !rows) -> tensor<?x16x1x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : !rows
  %n = tensor.dim %k, %c2 : !rows
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : !rows to !columns
  %o = flash.attention %q, %k, %v : (!few, !rows, !columns) -> tensor<?x16x1x512xbf16>
  return %o : tensor<?x16x1x512xbf16>
}
func.func @many(%q: !many, %k: !rows, %lengths: tensor<?xi32>) -> tensor<?x128x1x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : !rows
  %n = tensor.dim %k, %c2 : !rows
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : !rows to !columns
  %o = flash.attention %q, %k, %v lengths(%lengths : tensor<?xi32>) : (!many, !rows, !columns) -> tensor<?x128x1x512xbf16>
  return %o : tensor<?x128x1x512xbf16>
}
func.func @pages(%q: !many, %memory: tensor<?x1x64x576xbf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x128x1x512xbf16> {
  %k = flash.unpage %memory by %table lengths(%lengths : tensor<?xi32>) : tensor<?x1x64x576xbf16>, tensor<?x?xi32> -> !rows
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : !rows
  %n = tensor.dim %k, %c2 : !rows
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : !rows to !columns
  %o = flash.attention %q, %k, %v key_lengths(%lengths : tensor<?xi32>) : (!many, !rows, !columns) -> tensor<?x128x1x512xbf16>
  return %o : tensor<?x128x1x512xbf16>
}
