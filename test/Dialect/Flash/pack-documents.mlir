// Documents that lie behind each other are packed rows, and the device chooses.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-pack-documents --split-input-file | FileCheck %s
// On the CPU nothing is chosen, and neither are few elements.
// RUN: flash-opt %s --flash-attach-target=target=cpu --flash-pack-documents --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-pack-documents=sizes=2x8x4095x64 --split-input-file | FileCheck %s --check-prefix=ONE
// ONE-NOT: scf.if

// CHECK-LABEL: func @attention(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x8x?x64xf16>, %[[K:.*]]: tensor<?x2x?x64xf16>, %[[V:.*]]: tensor<?x2x?x32xf16>, %[[IDS:.*]]: tensor<?x?xi32>
// Where sizes do not fit, no element is read.
// CHECK:         %[[READ:.*]] = arith.select %{{.*}}, %[[B:.*]], %c0{{.*}} : index
// CHECK:         %[[OFFSETS:.*]], %[[COUNT:.*]] = flash.document_offsets %[[IDS]] of[%[[READ]], %{{.*}}] most(%{{.*}}) : tensor<?x?xi32>
// CHECK:         %[[E:.*]] = tensor.extract %[[COUNT]]
// CHECK:         %[[PACKED:.*]] = arith.cmpi ne, %[[E]], %c0{{.*}} : i32
// CHECK:         scf.if %[[PACKED]] -> (tensor<?x8x?x32xf16>, tensor<?x8x?xf32>) {
// CHECK:           %[[QS:.*]], %[[N:.*]] = flash.unpack %[[Q]] by %[[OFFSETS]] count(%[[COUNT]] : tensor<1xi32>) of[
// CHECK:           %[[KS:.*]], %{{.*}} = flash.unpack %[[K]] by %[[OFFSETS]]
// CHECK:           %[[VS:.*]], %{{.*}} = flash.unpack %[[V]] by %[[OFFSETS]]
// CHECK:           %[[O:.*]], %[[L:.*]] = flash.attention %[[QS]], %[[KS]], %[[VS]] mask(#flash.causal) query_lengths(%[[N]] : tensor<?xi32>) key_lengths(%[[N]] : tensor<?xi32>) sink(
// CHECK-NOT:       keep
// CHECK:           flash.pack %[[O]] by %[[OFFSETS]] into %{{.*}} count(%[[COUNT]] : tensor<1xi32>) of[
// CHECK:           flash.pack %[[L]] by %[[OFFSETS]]
// CHECK:         } else {
// CHECK:           flash.attention %[[Q]], %[[K]], %[[V]] mask(#flash.causal) sink(
// CHECK:             flash.yield %{{.*}} keep
func.func @attention(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x32xf16>, %ids: tensor<?x?xi32>, %sink: tensor<8xf32>)
    -> (tensor<?x8x?x32xf16>, tensor<?x8x?xf32>) {
  %o, %l = flash.attention %q, %k, %v mask(#flash.causal) sink(%sink : tensor<8xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // What depends on the distance is the same in a document.
    %d = arith.subi %i, %j : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %y = arith.subf %s, %f : f32
    %key = tensor.extract %ids[%b, %j] : tensor<?x?xi32>
    %query = tensor.extract %ids[%b, %i] : tensor<?x?xi32>
    %same = arith.cmpi eq, %key, %query : i32
    flash.yield %y keep %same : f32
  } : (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x32xf16>) -> (tensor<?x8x?x32xf16>, tensor<?x8x?xf32>)
  return %o, %l : tensor<?x8x?x32xf16>, tensor<?x8x?xf32>
}

// -----

!t = tensor<?x8x?x64xf16>
!k = tensor<?x2x?x64xf16>
// CHECK-LABEL: func @gradients(
// CHECK:         flash.document_offsets %arg6
// CHECK:         scf.if
// CHECK:           %[[OS:.*]], %{{.*}} = flash.unpack %arg3
// CHECK:           %[[LS:.*]], %{{.*}} = flash.unpack %arg4
// CHECK:           %[[DOS:.*]], %{{.*}} = flash.unpack %arg5
// CHECK:           %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = flash.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[OS]], %[[LS]], %[[DOS]]
// CHECK:           flash.pack %[[DQ]] {{.*}} into tensor<?x8x?x64xf16>
// CHECK:           flash.pack %[[DK]] {{.*}} into tensor<?x2x?x64xf16>
// CHECK:           flash.pack %[[DV]] {{.*}} into tensor<?x2x?x64xf16>
func.func @gradients(%q: !t, %k: !k, %v: !k, %o: !t, %l: tensor<?x8x?xf32>, %do: !t, %ids: tensor<?xi64>) -> (!t, !k, !k) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %l, %do score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi64>
    %y = tensor.extract %ids[%j] : tensor<?xi64>
    %query = arith.index_cast %x : i64 to index
    %key = arith.index_cast %y : i64 to index
    %same = arith.cmpi eq, %query, %key : index
    flash.yield %s keep %same : f32
  } : (!t, !k, !k, !t, tensor<?x8x?xf32>, !t) -> (!t, !k, !k)
  return %dq, %dk, %dv : !t, !k, !k
}

// -----

// What is another mask or score in a document than in the row, has a schedule, or reads other tensors, stays as it is.

!t = tensor<?x8x?x64xf16>
// CHECK-LABEL: func @others(
// CHECK-NOT:     scf.if
func.func @others(%q: !t, %ids: tensor<?xi32>, %of_keys: tensor<?xi32>, %n: tensor<?xi32>) -> (!t, !t, !t, !t, !t, !t, !t) {
  // A position does not fit in 8 bits, so that this is no distance.
  %narrow = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %i32 = arith.index_cast %i : index to i32
    %j32 = arith.index_cast %j : index to i32
    %i8 = arith.trunci %i32 : i32 to i8
    %j8 = arith.trunci %j32 : i32 to i8
    %m = arith.subi %i8, %j8 : i8
    %f = arith.sitofp %m : i8 to f32
    %z = arith.addf %s, %f : f32
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %z keep %same : f32
  } : (!t, !t, !t) -> !t
  %prefix = flash.attention %q, %q, %q mask(#flash.prefix<3>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t) -> !t
  %by_key = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %m = arith.index_cast %j : index to i32
    %f = arith.sitofp %m : i32 to f32
    %z = arith.addf %s, %f : f32
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %z keep %same : f32
  } : (!t, !t, !t) -> !t
  %other = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %of_keys[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t) -> !t
  %above = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi sge, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t) -> !t
  %lengths = flash.attention %q, %q, %q lengths(%n : tensor<?xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t) -> !t
  %scheduled = flash.attention %q, %q, %q schedule(<block_map = 1>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t) -> !t
  return %narrow, %prefix, %by_key, %other, %above, %lengths, %scheduled : !t, !t, !t, !t, !t, !t, !t
}

// -----

!t = tensor<?x8x?x64xf16>
// CHECK-LABEL: func @captured(
// CHECK-NOT:     scf.if
func.func @captured(%q: !t, %l: tensor<?x8x?xf32>, %ids: tensor<?xi32>, %bias: tensor<8xf32>) -> (!t, !t, !t, tensor<8xf32>) {
  %dq, %dk, %dv, %db = flash.attention_grad %q, %q, %q, %q, %l, %q wrt(%bias : tensor<8xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %f = tensor.extract %bias[%h] : tensor<8xf32>
    %z = arith.addf %s, %f : f32
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %z keep %same : f32
  } : (!t, !t, !t, !t, tensor<?x8x?xf32>, !t) -> (!t, !t, !t, tensor<8xf32>)
  return %dq, %dk, %dv, %db : !t, !t, !t, tensor<8xf32>
}
