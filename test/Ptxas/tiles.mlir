// What programs on tiles have and attention has not: values for columns, tiles that
// are transposed, arithmetic on 16 bits, some columns.
// REQUIRES: ptxas
// RUN: flash-opt %s --flash-gpu=target=sm_80 | flash-translate --ptxas | FileCheck %s
// RUN: flash-opt %s --flash-gpu=target=sm_90a | flash-translate --ptxas --chip=sm_90a | FileCheck %s

// CHECK-DAG: of_columns: {{.*}} spill stores 0
// CHECK-DAG: transposed: {{.*}} spill stores 0
// CHECK-DAG: sixteen_bits: {{.*}} spill stores 0
#m = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @of_columns(%x: tensor<128x40xf32>) -> (tensor<40xf32>, tensor<40xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<40xf32>
  %r:2 = scf.forall (%i) = (0) to (128) step (128) shared_outs(%o = %e, %p = %e) -> (tensor<40xf32>, tensor<40xf32>) {
    %init = linalg.fill ins(%one : f32) outs(%e : tensor<40xf32>) -> tensor<40xf32>
    %c:2 = linalg.generic {indexing_maps = [#m, #column, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : tensor<128x40xf32>) outs(%init, %init : tensor<40xf32>, tensor<40xf32>) {
    ^bb0(%a: f32, %b: f32, %d: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.minimumf %a, %d : f32
      linalg.yield %0, %1 : f32, f32
    } -> (tensor<40xf32>, tensor<40xf32>)
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c#0 into %o[0] [40] [1] : tensor<40xf32> into tensor<40xf32>
      tensor.parallel_insert_slice %c#1 into %p[0] [40] [1] : tensor<40xf32> into tensor<40xf32>
    }
  }
  return %r#0, %r#1 : tensor<40xf32>, tensor<40xf32>
}

func.func @transposed(%x: tensor<64x64xf16>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %r:2 = scf.forall (%i) = (0) to (64) step (64) shared_outs(%o = %e, %p = %e) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = arith.addf %x, %x : tensor<64x64xf16>
    %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%s, %x : tensor<64x64xf16>, tensor<64x64xf16>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = arith.mulf %y, %0 : tensor<64x64xf32>
    %2 = linalg.generic {indexing_maps = [#t, #m, #m], iterator_types = ["parallel", "parallel"]}
        ins(%1, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %3 = arith.addf %a, %b : f32
      linalg.yield %3 : f32
    } -> tensor<64x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<64x64xf32>
      tensor.parallel_insert_slice %2 into %p[0, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<64x64xf32>
    }
  }
  return %r#0, %r#1 : tensor<64x64xf32>, tensor<64x64xf32>
}

func.func @sixteen_bits(%x: tensor<64x24xbf16>, %v: tensor<64xbf16>) -> (tensor<64x19xbf16>, tensor<64xbf16>) {
  %half = arith.constant 0.5 : bf16
  %e = tensor.empty() : tensor<64x19xbf16>
  %f = tensor.empty() : tensor<64xbf16>
  %r:2 = scf.forall (%i) = (0) to (64) step (64) shared_outs(%o = %e, %p = %f) -> (tensor<64x19xbf16>, tensor<64xbf16>) {
    %0 = tensor.empty() : tensor<64x24xbf16>
    %1 = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
        ins(%x, %v : tensor<64x24xbf16>, tensor<64xbf16>) outs(%0 : tensor<64x24xbf16>) {
    ^bb0(%a: bf16, %b: bf16, %c: bf16):
      %2 = arith.mulf %b, %half : bf16
      %3 = arith.cmpf ogt, %a, %2 : bf16
      %4 = arith.maxnumf %a, %b : bf16
      %5 = arith.select %3, %4, %2 : bf16
      linalg.yield %5 : bf16
    } -> tensor<64x24xbf16>
    %some = tensor.extract_slice %1[0, 0] [64, 19] [1, 1] : tensor<64x24xbf16> to tensor<64x19xbf16>
    %6 = arith.addf %v, %v : tensor<64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %o[0, 0] [64, 19] [1, 1] : tensor<64x19xbf16> into tensor<64x19xbf16>
      tensor.parallel_insert_slice %6 into %p[0] [64] [1] : tensor<64xbf16> into tensor<64xbf16>
    }
  }
  return %r#0, %r#1 : tensor<64x19xbf16>, tensor<64xbf16>
}
