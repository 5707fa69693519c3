// The combination of splits. What a kernel is made of:
//   - reads of the rows of one split, output and log-sum-exp, as many splits at a
//     time as registers hold, all of them before the first is used;
//   - values of rows and tiles of rows and columns, which the loop carries;
//   - elementwise arithmetic: nothing is reduced.
// RUN: flash-opt %s --flash-decompose --split-input-file --verify-diagnostics | FileCheck %s

// Three splits: one step, and no question whether a split exists.

// CHECK-DAG:   #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @three(
// CHECK-SAME:    %[[OUTS:.*]]: tensor<3x8x64xf32>, %[[LSES:.*]]: tensor<3x8xf32>
// CHECK:         %[[LEAST:.*]] = arith.constant 0xFF800000
// CHECK:         %[[STATE:.*]]:3 = scf.for %[[S:.*]] = %c0{{.*}} to %c3{{.*}} step %c3{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}) -> (tensor<8x64xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK-NOT:       arith.cmpi
// CHECK:           %[[Y0:.*]] = tensor.extract_slice %[[LSES]][%[[S]], 0] [1, 8]
// CHECK:           %[[O0:.*]] = tensor.extract_slice %[[OUTS]][%[[S]], 0, 0] [1, 8, 64]
// CHECK:           %[[S1:.*]] = arith.addi %[[S]], %c1
// CHECK:           %[[Y1:.*]] = tensor.extract_slice %[[LSES]][%[[S1]], 0]
// CHECK:           %[[O1:.*]] = tensor.extract_slice %[[OUTS]][%[[S1]], 0, 0]
// CHECK:           %[[Y2:.*]] = tensor.extract_slice %[[LSES]]
// CHECK:           %[[O2:.*]] = tensor.extract_slice %[[OUTS]]
// CHECK:           %[[T:.*]] = linalg.generic {{.*}} ins(%[[Y0]], %[[Y1]], %[[Y2]] :
// CHECK-COUNT-2:     arith.maxnumf
// CHECK:           %[[G:.*]]:2 = linalg.generic {{.*}} ins(%[[T]] : {{.*}}) outs(%[[M]],
// CHECK:           %[[Z:.*]] = linalg.generic {{.*}} ins(%[[G]]#0
// CHECK:           %[[L0:.*]] = linalg.generic {{.*}} ins(%[[G]]#1 : {{.*}}) outs(%[[L]]
// CHECK:           %[[A0:.*]] = linalg.generic {{.*}} ins(%[[G]]#1 : {{.*}}) outs(%[[A]]
// CHECK:           %[[W0:.*]] = linalg.generic {{.*}} ins(%[[Y0]], %[[Z]]
// CHECK:             arith.constant 1.44269502
// CHECK:             math.exp2
// CHECK:           %[[L1:.*]] = linalg.generic {{.*}} ins(%[[W0]] : {{.*}}) outs(%[[L0]]
// CHECK:           %[[A1:.*]] = linalg.generic {indexing_maps = [#[[TILE]], #[[ROWS]], #[[TILE]]], iterator_types = ["parallel", "parallel"]} ins(%[[O0]], %[[W0]] : {{.*}}) outs(%[[A0]]
// CHECK:             math.fma
// CHECK:           ins(%[[Y1]], %[[Z]]
// CHECK:           ins(%[[Y2]], %[[Z]]
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[STATE]]#2
// CHECK:           arith.divf
// CHECK:         %[[O:.*]] = linalg.generic {{.*}} ins(%[[STATE]]#0, %[[R]]
// CHECK:           arith.truncf
// CHECK:         %[[LSE:.*]] = linalg.generic {{.*}} ins(%[[STATE]]#1, %[[STATE]]#2
// CHECK:           math.log
// CHECK:         return %[[O]], %[[LSE]]
func.func @three(%outs: tensor<3x8x64xf32>, %lses: tensor<3x8xf32>) -> (tensor<8x64xf16>, tensor<8xf32>) {
  %o, %l = flash.combine %outs, %lses : (tensor<3x8x64xf32>, tensor<3x8xf32>) -> (tensor<8x64xf16>, tensor<8xf32>)
  return %o, %l : tensor<8x64xf16>, tensor<8xf32>
}

// -----

// Twelve splits are two steps of six, eleven are two of which the second lacks
// one: the last split is read again, as one without keys.

// CHECK-LABEL: func @twelve(
// CHECK:         scf.for {{.*}} to %c12{{.*}} step %c6
// CHECK-NOT:       arith.cmpi
// CHECK:         return
// CHECK-LABEL: func @eleven(
// CHECK:         scf.for %[[S:.*]] = {{.*}} to %c11{{.*}} step %c6
// CHECK:           %[[EXISTS:.*]] = arith.cmpi sle, %[[S]], %[[LAST:.*]] : index
// CHECK:           %[[PART:.*]] = arith.minsi %[[S]], %[[LAST]]
// CHECK:           %[[Y:.*]] = tensor.extract_slice %{{.*}}[%[[PART]], 0]
// CHECK:           %[[TERM:.*]] = arith.select %[[EXISTS]], %{{.*}}, %{{.*}} : f32
// CHECK:           linalg.generic {{.*}} ins(%[[Y]]
// CHECK:             arith.addf %in, %[[TERM]]
func.func @twelve(%outs: tensor<12x8x64xf32>, %lses: tensor<12x8xf32>) -> tensor<8x64xf32> {
  %o = flash.combine %outs, %lses : (tensor<12x8x64xf32>, tensor<12x8xf32>) -> tensor<8x64xf32>
  return %o : tensor<8x64xf32>
}
func.func @eleven(%outs: tensor<11x8x64xf32>, %lses: tensor<11x8xf32>) -> tensor<8x64xf32> {
  %o = flash.combine %outs, %lses : (tensor<11x8x64xf32>, tensor<11x8xf32>) -> tensor<8x64xf32>
  return %o : tensor<8x64xf32>
}

// -----

// Any number of splits, and rows of which the last block may have fewer: tiles
// are slices of the tensors that hold all splits, padded to a static shape.

// CHECK-LABEL: func @any(
// CHECK-SAME:    %[[OUTS:[^:]*]]: tensor<?x2x100x64xf32>, %[[LSES:[^:]*]]: tensor<?x2x100xf32>, %[[N:.*]]: index,
// CHECK:         scf.forall (%[[H:.*]], %[[I:.*]]) =
// CHECK:           %[[ROWCOUNT:.*]] = affine.min
// CHECK-NOT:       tensor.extract_slice
// CHECK:           scf.for {{.*}} to %[[N]] step %c8
// CHECK:             %[[Y:.*]] = tensor.extract_slice %[[LSES]][%{{.*}}, %[[H]], %[[I]]] [1, 1, %[[ROWCOUNT]]]
// CHECK:             tensor.pad %[[Y]] low[0]
// CHECK:             } : tensor<?xf32> to tensor<8xf32>
// CHECK:             %[[O:.*]] = tensor.extract_slice %[[OUTS]][%{{.*}}, %[[H]], %[[I]], 0] [1, 1, %[[ROWCOUNT]], 64]
// CHECK:             tensor.pad %[[O]] low[0, 0]
// CHECK:             } : tensor<?x64xf32> to tensor<8x64xf32>
// CHECK:           %[[EXISTING:.*]] = tensor.extract_slice %{{.*}}[0, 0] [%[[ROWCOUNT]], 64] [1, 1] : tensor<8x64xf16> to tensor<?x64xf16>
// CHECK:           tensor.parallel_insert_slice %[[EXISTING]]
func.func @any(%outs: tensor<?x2x100x64xf32>, %lses: tensor<?x2x100xf32>, %n: index, %e: tensor<2x100x64xf16>) -> tensor<2x100x64xf16> {
  %r = scf.forall (%h, %i) = (0, 0) to (2, 100) step (1, 8) shared_outs(%out = %e) -> (tensor<2x100x64xf16>) {
    %rows = affine.min affine_map<(d0) -> (-d0 + 100, 8)>(%i)
    %os = tensor.extract_slice %outs[0, %h, %i, 0] [%n, 1, %rows, 64] [1, 1, 1, 1] : tensor<?x2x100x64xf32> to tensor<?x?x64xf32>
    %ls = tensor.extract_slice %lses[0, %h, %i] [%n, 1, %rows] [1, 1, 1] : tensor<?x2x100xf32> to tensor<?x?xf32>
    %x = flash.combine %os, %ls : (tensor<?x?x64xf32>, tensor<?x?xf32>) -> tensor<?x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %out[%h, %i, 0] [1, %rows, 64] [1, 1, 1] : tensor<?x64xf16> into tensor<2x100x64xf16>
    }
  }
  return %r : tensor<2x100x64xf16>
}

// -----

func.func @unbounded(%outs: tensor<3x?x64xf32>, %lses: tensor<3x?xf32>) -> tensor<?x64xf16> {
  // expected-error @below {{has no known bound on its number of rows; cut it into blocks of rows first}}
  %o = flash.combine %outs, %lses : (tensor<3x?x64xf32>, tensor<3x?xf32>) -> tensor<?x64xf16>
  return %o : tensor<?x64xf16>
}

// -----

// Steps of a fixed number: of twelve splits the second lacks four, and of three there is one step of three, to which
// others would add nothing.

// CHECK-LABEL: func @steps(
// CHECK:         scf.for {{.*}} to %c12{{.*}} step %c8
// CHECK:           arith.cmpi sle
// CHECK:         scf.for {{.*}} to %c3{{.*}} step %c3
// CHECK-NOT:       arith.cmpi sle
// CHECK:         return
func.func @steps(%outs: tensor<12x8x64xf32>, %lses: tensor<12x8xf32>, %few: tensor<3x8x64xf32>, %lsesOfFew: tensor<3x8xf32>)
    -> (tensor<8x64xf16>, tensor<8x64xf16>) {
  %o = flash.combine %outs, %lses step(8) : (tensor<12x8x64xf32>, tensor<12x8xf32>) -> tensor<8x64xf16>
  %p = flash.combine %few, %lsesOfFew step(8) : (tensor<3x8x64xf32>, tensor<3x8xf32>) -> tensor<8x64xf16>
  return %o, %p : tensor<8x64xf16>, tensor<8x64xf16>
}
