// Where one program for all gradients pays, beside causal masks (select-schedule-grad.mlir): by what the score
// region does, and by what masks leave.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s

!q = tensor<8x16x2048x64xbf16>
!l = tensor<8x16x2048xf32>
!w = tensor<8x16x2048x128xbf16>
!narrow = tensor<8x4x2048x64xbf16>
!shared = tensor<8x4x2048x128xbf16>
!two = tensor<8x8x2048x64xbf16>

// A bias leaves the derivative as it is; tanh needs the scores again, for which there are registers at D = 128.

// CHECK-LABEL: func @scores(
// CHECK:         products = 5
// CHECK:         query_step = 64, key_step = 128, stages = 2
// CHECK:         products = 5
func.func @scores(%q: !q, %w: !w, %lse: !l, %slopes: tensor<16xf32>) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %e = tensor.extract %slopes[%h] : tensor<16xf32>
    %x = arith.mulf %e, %f : f32
    %r = arith.subf %s, %x : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %1:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %r = math.tanh %s : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %2:3 = flash.attention_grad %w, %w, %w, %w, %lse, %w score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %r = math.tanh %s : f32
    flash.yield %r : f32
  } : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  return
}

// What is linear in the score where it is chosen by the distance, and what is not: a square, and a choice by the score.

// CHECK-LABEL: func @linear(
// CHECK:         products = 5
// CHECK:         query_step = 64, key_step = 128, stages = 2
// CHECK:         query_step = 64, key_step = 128, stages = 2
func.func @linear(%q: !q, %lse: !l, %gain: f32) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %far = arith.cmpi sgt, %i, %j : index
    %x = arith.divf %s, %gain : f32
    %r = arith.select %far, %x, %s : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %1:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %r = arith.mulf %s, %s : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %2:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %less = arith.cmpf olt, %s, %gain : f32
    %r = arith.select %less, %s, %gain : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// An element for each query and key; one of a bucket of the distance is none.

// CHECK-LABEL: func @pairs(
// CHECK:         query_step = 64, key_step = 128, stages = 2
// CHECK:         products = 5
func.func @pairs(%q: !q, %lse: !l, %bias: tensor<2048x2048xbf16>, %table: tensor<32xf32>) {
  %c0 = arith.constant 0 : index
  %c31 = arith.constant 31 : index
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%i, %j] : tensor<2048x2048xbf16>
    %x = arith.extf %e : bf16 to f32
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %1:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %low = arith.maxsi %d, %c0 : index
    %at = arith.minsi %low, %c31 : index
    %e = tensor.extract %table[%at] : tensor<32xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// Windows, but no narrow ones with a score function or at D = 128.

!s = tensor<8x16x1024x64xbf16>
!sl = tensor<8x16x1024xf32>

// CHECK-LABEL: func @windows(
// CHECK:         products = 5
// CHECK:         products = 5
// CHECK:         query_step = 64, key_step = 128, stages = 2
// CHECK:         products = 5
// CHECK:         query_step = 64, key_step = 64, stages = 2
func.func @windows(%q: !s, %w: !w, %lse: !sl, %lw: !l, %t: tensor<16xf32>) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.window<left = 127, right = 0>) : (!s, !s, !s, !s, !sl, !s) -> (!s, !s, !s)
  %1:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.window<left = 511, right = 0>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : tensor<16xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!s, !s, !s, !s, !sl, !s) -> (!s, !s, !s)
  %2:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.window<left = 255, right = 0>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : tensor<16xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!s, !s, !s, !s, !sl, !s) -> (!s, !s, !s)
  %3:3 = flash.attention_grad %w, %w, %w, %w, %lw, %w mask(#flash.window<left = 511, right = 0>) : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  %4:3 = flash.attention_grad %w, %w, %w, %w, %lw, %w mask(#flash.window<left = 255, right = 0>) : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  return
}

// Masks that leave no ranges have lists: where no tile of keys takes much longer than the others, as those of the first keys
// would that all queries see. At D = 128 lists must not be short.

#pixels = affine_set<(b, h, i, j)[nq, nk] : (i mod 512 - j mod 512 + 63 >= 0, j mod 512 - i mod 512 + 63 >= 0)>
#wide = affine_set<(b, h, i, j)[nq, nk] : (i mod 512 - j mod 512 + 127 >= 0, j mod 512 - i mod 512 + 127 >= 0)>
#first = affine_set<(b, h, i, j)[nq, nk] : (-j + 3 >= 0)>

// CHECK-LABEL: func @lists(
// CHECK:         products = 5
// CHECK:         products = 5, stages = 2, features = specialize_warps|bulk_store|defer_products>
// CHECK:         query_step = 64, key_step = 64, stages = 2
// CHECK:         query_step = 64, key_step = 64, stages = 2
func.func @lists(%q: !q, %w: !w, %lse: !l) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.affine<#pixels>) : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %1:3 = flash.attention_grad %w, %w, %w, %w, %lse, %w mask(#flash.affine<#wide>) : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  %2:3 = flash.attention_grad %w, %w, %w, %w, %lse, %w mask(#flash.affine<#pixels>) : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  %3:3 = flash.attention_grad %w, %w, %w, %w, %lse, %w mask(#flash.any_of<[#flash.window<left = 7, right = 0>, #flash.affine<#first>]>) : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  return
}

// Of what a region masks only the data tell. Tiles are claimed. It does not pay where more than two heads share keys under another
// mask, and where the mask is read for each pair of a query and a key.

// CHECK-LABEL: func @regions(
// CHECK:         products = 5
// CHECK:         products = 5, stages = 2, features = specialize_warps|persistent|bulk_store|defer_products|claim_tiles
// CHECK:         products = 5, stages = 2, features = specialize_warps|persistent|bulk_store|defer_products|claim_tiles
// CHECK:         products = 5
// CHECK:         query_step = 64, key_step = 64, stages = 2
// CHECK:         query_step = 64, key_step = 128, stages = 2
// CHECK:         query_step = 64, key_step = 64, stages = 2
// CHECK:         products = 5
// CHECK:         products = 5
func.func @regions(%q: !q, %w: !w, %shared: !shared, %narrow: !narrow, %two: !two, %lse: !l, %ids: tensor<2048xi32>, %slopes: tensor<16xf32>, %pairs: tensor<2048x2048xi8>) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %1:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  %2:3 = flash.attention_grad %w, %w, %w, %w, %lse, %w mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  %3:3 = flash.attention_grad %w, %w, %w, %w, %lse, %w mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    %e = tensor.extract %slopes[%h] : tensor<16xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r keep %same : f32
  } : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  %4:3 = flash.attention_grad %w, %shared, %shared, %w, %lse, %w mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!w, !shared, !shared, !w, !l, !w) -> (!w, !shared, !shared)
  %5:3 = flash.attention_grad %q, %narrow, %narrow, %q, %lse, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!q, !narrow, !narrow, !q, !l, !q) -> (!q, !narrow, !narrow)
  %6:3 = flash.attention_grad %w, %w, %w, %w, %lse, %w score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %pairs[%i, %j] : tensor<2048x2048xi8>
    %c0 = arith.constant 0 : i8
    %is = arith.cmpi ne, %x, %c0 : i8
    flash.yield %s keep %is : f32
  } : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  %7:3 = flash.attention_grad %q, %two, %two, %q, %lse, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!q, !two, !two, !q, !l, !q) -> (!q, !two, !two)
  %8:3 = flash.attention_grad %q, %narrow, %narrow, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<2048xi32>
    %y = tensor.extract %ids[%j] : tensor<2048xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!q, !narrow, !narrow, !q, !l, !q) -> (!q, !narrow, !narrow)
  return
}

// Wide keys and values: multiples of 16, with up to 320 columns together, from 1024 masked rows on, in windows of 1000 keys.
// A score function that needs the scores again has separate programs, and so has a mask that leaves lists.

!q192 = tensor<2x16x1024x192xbf16>
!v128 = tensor<2x16x1024x128xbf16>
!v144 = tensor<2x16x1024x144xbf16>
!short = tensor<8x32x896x160xbf16>
!l1024 = tensor<2x16x1024xf32>
!l896 = tensor<8x32x896xf32>

// CHECK-LABEL: func @wide(
// CHECK:         query_step = 64, key_step = 128, products = 5, stages = 2, features = specialize_warps|bulk_store>
// CHECK:         key_programs = 2
// CHECK:         products = 5
// CHECK:         key_programs = 2
// CHECK:         key_programs = 2
func.func @wide(%q: !q192, %v: !v128, %w: !v144, %lse: !l1024, %s: !short, %ls: !l896) {
  %0:3 = flash.attention_grad %q, %q, %v, %v, %lse, %v mask(#flash.causal) : (!q192, !q192, !v128, !v128, !l1024, !v128) -> (!q192, !q192, !v128)
  %1:3 = flash.attention_grad %q, %q, %w, %w, %lse, %w mask(#flash.causal) : (!q192, !q192, !v144, !v144, !l1024, !v144) -> (!q192, !q192, !v144)
  %2:3 = flash.attention_grad %s, %s, %s, %s, %ls, %s : (!short, !short, !short, !short, !l896, !short) -> (!short, !short, !short)
  %3:3 = flash.attention_grad %s, %s, %s, %s, %ls, %s mask(#flash.causal) : (!short, !short, !short, !short, !l896, !short) -> (!short, !short, !short)
  %4:3 = flash.attention_grad %q, %q, %v, %v, %lse, %v score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %r = math.tanh %x : f32
    flash.yield %r : f32
  } : (!q192, !q192, !v128, !v128, !l1024, !v128) -> (!q192, !q192, !v128)
  return
}
