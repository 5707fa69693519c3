// What a mask, a length or the end of a tile leaves out may have any index: the
// table is read by the distance, which is far below zero behind the diagonal, and
// by a number that is computed from the key's id, which is garbage in the padding;
// the remainder has a divisor that is zero on the diagonal's other side.
// RUN: flash-run %s --function=distance --target=cpu --check | FileCheck %s
// RUN: flash-run %s --function=distance --target=emulate --check --baseline --bench --bench-seconds=0 | FileCheck %s --check-prefixes=CHECK,BASE
// RUN: flash-run %s --function=distance --target=emulate:sm_90a --check | FileCheck %s
// RUN: flash-run %s --function=padding --target=cpu --check --fill=3=70 --shape=5=1 --fill=4=0 --fill=4=9223372036854775@-1 | FileCheck %s
// RUN: flash-run %s --function=padding --target=emulate --check --fill=3=70 --shape=5=1 --fill=4=0 --fill=4=9223372036854775@-1 --baseline --bench --bench-seconds=0 | FileCheck %s --check-prefixes=CHECK,BASE
// RUN: flash-run %s --function=padding --target=emulate:sm_90a --check --fill=3=70 --shape=5=1 --fill=4=0 --fill=4=9223372036854775@-1 | FileCheck %s
// RUN: flash-run %s --function=one_query --target=emulate --check | FileCheck %s
// CHECK: check: ok
// BASE: baseline check: ok
!q = tensor<1x2x67x64xf16>
!k = tensor<1x2x83x64xf16>

func.func @distance(%q: !q, %k: !k, %v: !k, %table: tensor<83xf32>) -> !q {
  %o = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c16 = arith.constant 16 : index
    %c63 = arith.constant 63 : index
    %far = arith.constant 1099511627776 : index
    %last = arith.addi %i, %c16 : index
    %d = arith.subi %last, %j : index
    %sign = arith.shrsi %d, %c63 : index
    %below = arith.muli %sign, %far : index
    %n = arith.addi %d, %below : index
    %x = tensor.extract %table[%n] : tensor<83xf32>
    %one = arith.addi %sign, %c16 : index
    %other = arith.subi %one, %c16 : index
    %c1 = arith.constant 1 : index
    %divisor = arith.addi %other, %c1 : index
    %zero = arith.remsi %i, %divisor : index
    %z = arith.index_cast %zero : index to i32
    %zf = arith.sitofp %z : i32 to f32
    %y = arith.addf %s, %x : f32
    %r = arith.addf %y, %zf : f32
    flash.yield %r : f32
  } : (!q, !k, !k) -> !q
  return %o : !q
}

func.func @padding(%q: !q, %k: !k, %v: !k, %n: tensor<1xi32>, %ids: tensor<83xi64>, %table: tensor<?xf32>) -> !q {
  %o = flash.attention %q, %k, %v lengths(%n : tensor<1xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %id = tensor.extract %ids[%j] : tensor<83xi64>
    %at = arith.index_cast %id : i64 to index
    %x = tensor.extract %table[%at] : tensor<?xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!q, !k, !k) -> !q
  return %o : !q
}

// Heads that are rows of one tile read by their head, of which it has four.
func.func @one_query(%q: tensor<1x4x1x64xf16>, %k: !k, %v: !k, %slopes: tensor<4xf32>) -> tensor<1x4x1x64xf16> {
  %o = flash.attention %q, %k, %v mask(#flash.prefix<70>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %slopes[%h] : tensor<4xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (tensor<1x4x1x64xf16>, !k, !k) -> tensor<1x4x1x64xf16>
  return %o : tensor<1x4x1x64xf16>
}
