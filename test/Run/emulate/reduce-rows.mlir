// Sums over the rows of a tile, between warps and, where these have roles, between
// warpgroups that alternate: as on the CPU. What they exchange goes through
// shared memory, at a barrier of the warps that hold the tile.
// DEFINE: %{features} = specialize_warps|overlap|ping_pong
// RUN: sed 's/FEATURES/features = %{features}, stages = 2, /' %s > %t-roles.mlir
// RUN: sed 's/FEATURES//' %s > %t-plain.mlir
// RUN: flash-run %t-plain.mlir --target=cpu --seed=3 --outputs=%t-cpu-0.npy,%t-cpu-1.npy
// RUN: flash-run %t-plain.mlir --target=emulate --seed=3 --outputs=%t-plain-0.npy,%t-plain-1.npy
// RUN: flash-run %t-roles.mlir --target=emulate:sm_90a --seed=3 --outputs=%t-roles-0.npy,%t-roles-1.npy
// RUN: %python %S/Inputs/close.py %t-cpu-0.npy %t-plain-0.npy
// RUN: %python %S/Inputs/close.py %t-cpu-1.npy %t-plain-1.npy
// RUN: %python %S/Inputs/close.py %t-cpu-0.npy %t-roles-0.npy
// RUN: %python %S/Inputs/close.py %t-cpu-1.npy %t-roles-1.npy
// RUN: flash-run %t-plain.mlir --target=sm_80 --dump=ptx | FileCheck %s
// RUN: flash-run %t-roles.mlir --target=sm_90a --dump=ptx | FileCheck %s

// CHECK-DAG: shfl.sync.bfly
// CHECK-DAG: bar.sync 15, 256
// CHECK-DAG: st.shared.v2
// CHECK-DAG: ld.shared.v2

#a = affine_map<(m, n, d) -> (m, d)>
#b = affine_map<(m, n, d) -> (n, d)>
#c = affine_map<(m, n, d) -> (m, n)>
#matrix = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
!q = tensor<2x256x32xf16>
!k = tensor<2x192x32xf16>
!sums = tensor<2x2x64xf32>
!result = tensor<2x256x32xf32>
func.func @main(%q: !q, %k: !k) -> (!sums, !result) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %none = tensor.empty() : !sums
  %empty = tensor.empty() : !result
  %r:2 = scf.forall (%b, %i) = (0, 0) to (2, 256) step (1, 128) shared_outs(%sums = %none, %out = %empty) -> (!sums, !result) {
    %n = affine.apply affine_map<(i) -> (i floordiv 128)>(%i)
    %qt = tensor.extract_slice %q[%b, %i, 0] [1, 128, 32] [1, 1, 1] : !q to tensor<128x32xf16>
    %e1 = tensor.empty() : tensor<128x32xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128x32xf32>) -> tensor<128x32xf32>
    %e2 = tensor.empty() : tensor<64xf32>
    %start = linalg.fill ins(%one : f32) outs(%e2 : tensor<64xf32>) -> tensor<64xf32>
    %l:2 = scf.for %j = %c0 to %c192 step %c64 iter_args(%o = %acc, %largest = %start) -> (tensor<128x32xf32>, tensor<64xf32>) {
      %kt = tensor.extract_slice %k[%b, %j, 0] [1, 64, 32] [1, 1, 1] : !k to tensor<64x32xf16>
      %e3 = tensor.empty() : tensor<128x64xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e3 : tensor<128x64xf32>) -> tensor<128x64xf32>
      %s = linalg.contract indexing_maps = [#a, #b, #c] ins(%qt, %kt : tensor<128x32xf16>, tensor<64x32xf16>) outs(%z : tensor<128x64xf32>) -> tensor<128x64xf32>
      // The sum and the largest of each column, of which the latter is carried on.
      %e4 = tensor.empty() : tensor<64xf32>
      %z1 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<64xf32>) -> tensor<64xf32>
      %total:2 = linalg.generic {indexing_maps = [#matrix, #column, #column], iterator_types = ["reduction", "parallel"]}
          ins(%s : tensor<128x64xf32>) outs(%z1, %largest : tensor<64xf32>, tensor<64xf32>) {
      ^bb0(%x: f32, %so_far: f32, %most: f32):
        %0 = arith.addf %so_far, %x : f32
        %1 = arith.maximumf %most, %x : f32
        linalg.yield %0, %1 : f32, f32
      } -> (tensor<64xf32>, tensor<64xf32>)
      %e5 = tensor.empty() : tensor<128x64xf16>
      %p = linalg.generic {indexing_maps = [#matrix, #column, #column, #matrix], iterator_types = ["parallel", "parallel"]}
          ins(%s, %total#0, %total#1 : tensor<128x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e5 : tensor<128x64xf16>) {
      ^bb0(%x: f32, %t: f32, %m: f32, %unused: f16):
        %0 = arith.subf %x, %m : f32
        %1 = math.exp2 %0 : f32
        %2 = arith.mulf %1, %t : f32
        %3 = arith.truncf %2 : f32 to f16
        linalg.yield %3 : f16
      } -> tensor<128x64xf16>
      %next = linalg.contract indexing_maps = [#a, affine_map<(m, n, d) -> (d, n)>, #c] ins(%p, %kt : tensor<128x64xf16>, tensor<64x32xf16>) outs(%o : tensor<128x32xf32>) -> tensor<128x32xf32>
      scf.yield %next, %total#1 : tensor<128x32xf32>, tensor<64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %l#0 into %out[%b, %i, 0] [1, 128, 32] [1, 1, 1] : tensor<128x32xf32> into !result
      tensor.parallel_insert_slice %l#1 into %sums[%b, %n, 0] [1, 1, 64] [1, 1, 1] : tensor<64xf32> into !sums
    }
  } {flash.schedule = #flash.schedule<FEATURESwarps = 8>}
  return %r#0, %r#1 : !sums, !result
}
