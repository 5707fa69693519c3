// Loops that fetch tiles of one matrix, of another, of both, and of the first again:
// each set of tiles goes through rings of its own, whatever else is between, copied
// ahead or by warps of their own.
// DEFINE: %{name} = plain
// DEFINE: %{target} = emulate
// DEFINE: %{schedule} = stages = 1
// DEFINE: %{run} = sed 's/SCHEDULE/%{schedule}/' %s > %t-%{name}.mlir && flash-run %t-%{name}.mlir --target=%{target} --seed=3 --outputs=%t-%{name}.npy && %python %S/Inputs/close.py %t-cpu.npy %t-%{name}.npy
// RUN: sed 's/SCHEDULE/stages = 1/' %s > %t.mlir
// RUN: flash-run %t.mlir --target=cpu --seed=3 --outputs=%t-cpu.npy
// RUN: %{run}
// REDEFINE: %{name} = ahead
// REDEFINE: %{schedule} = stages = 3
// RUN: %{run}
// RUN: flash-run %t-ahead.mlir --target=sm_80 --dump=ptx | FileCheck %s
// REDEFINE: %{name} = roles
// REDEFINE: %{target} = emulate:sm_90a
// REDEFINE: %{schedule} = features = specialize_warps|overlap, stages = 2
// RUN: %{run}
// RUN: flash-run %t-roles.mlir --target=sm_90a --dump=ptx | FileCheck %s --check-prefix=ROLES

// Copies of the first loops' tiles are on their way before anything is waited for.

// CHECK-COUNT-4: cp.async.commit_group
// CHECK:     cp.async.wait_group
// ROLES:     cp.async.bulk.tensor
// ROLES:     wgmma.mma_async

#a = affine_map<(m, n, d) -> (m, d)>
#b = affine_map<(m, n, d) -> (n, d)>
#c = affine_map<(m, n, d) -> (m, n)>
!q = tensor<128x32xf16>
!k = tensor<192x32xf16>
!result = tensor<128x64xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !result {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : !result
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%out = %none) -> !result {
    %qt = tensor.extract_slice %q[%i, 0] [64, 32] [1, 1] : !q to tensor<64x32xf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %start = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %l0 = scf.for %j = %c0 to %c128 step %c64 iter_args(%acc = %start) -> tensor<64x64xf32> {
      %kt = tensor.extract_slice %k[%j, 0] [64, 32] [1, 1] : !k to tensor<64x32xf16>
      %0 = linalg.contract indexing_maps = [#a, #b, #c] ins(%qt, %kt : tensor<64x32xf16>, tensor<64x32xf16>) outs(%acc : tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %0 : tensor<64x64xf32>
    }
    %l1 = scf.for %j = %c0 to %c192 step %c64 iter_args(%acc = %l0) -> tensor<64x64xf32> {
      %vt = tensor.extract_slice %v[%j, 0] [64, 32] [1, 1] : !k to tensor<64x32xf16>
      %0 = linalg.contract indexing_maps = [#a, #b, #c] ins(%qt, %vt : tensor<64x32xf16>, tensor<64x32xf16>) outs(%acc : tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %0 : tensor<64x64xf32>
    }
    %l2 = scf.for %j = %c0 to %c128 step %c64 iter_args(%acc = %l1) -> tensor<64x64xf32> {
      %kt = tensor.extract_slice %k[%j, 0] [64, 32] [1, 1] : !k to tensor<64x32xf16>
      %vt = tensor.extract_slice %v[%j, 0] [64, 32] [1, 1] : !k to tensor<64x32xf16>
      %0 = linalg.contract indexing_maps = [#a, #b, #c] ins(%qt, %kt : tensor<64x32xf16>, tensor<64x32xf16>) outs(%acc : tensor<64x64xf32>) -> tensor<64x64xf32>
      %1 = linalg.contract indexing_maps = [#a, #b, #c] ins(%qt, %vt : tensor<64x32xf16>, tensor<64x32xf16>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %1 : tensor<64x64xf32>
    }
    %l3 = scf.for %j = %c128 to %c192 step %c64 iter_args(%acc = %l2) -> tensor<64x64xf32> {
      %kt = tensor.extract_slice %k[%j, 0] [64, 32] [1, 1] : !k to tensor<64x32xf16>
      %0 = linalg.contract indexing_maps = [#a, #b, #c] ins(%qt, %kt : tensor<64x32xf16>, tensor<64x32xf16>) outs(%acc : tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %0 : tensor<64x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %l3 into %out[%i, 0] [64, 64] [1, 1] : tensor<64x64xf32> into !result
    }
  } {flash.schedule = #flash.schedule<SCHEDULE, warps = 4>}
  return %r : !result
}
