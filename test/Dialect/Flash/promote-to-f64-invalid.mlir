// RUN: flash-opt %s --flash-promote-to-f64 --split-input-file --verify-diagnostics

func.func @flash(%q: tensor<1x4x16x16xf32>) -> tensor<1x4x16x16xf32> {
  // expected-error @below {{'flash.attention' op cannot be promoted to f64: the flash dialect is not among those that compute alike on any floating-point type; run flash-decompose-naive first}}
  %o = flash.attention %q, %q, %q : (tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>) -> tensor<1x4x16x16xf32>
  return %o : tensor<1x4x16x16xf32>
}

// -----

func.func @level_1(%acc: tensor<16x16xf32>, %row: tensor<16xf32>, %o: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // expected-error @below {{--check has no reference of a program at level 1, but of the one that it was made of}}
  %r = flash.finalize ins(%acc, %row, %row : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}

// -----

func.func @bits(%x: f32) -> i32 {
  // expected-error @below {{'arith.bitcast' op cannot be promoted to f64: it depends on how a narrower type is stored}}
  %i = arith.bitcast %x : f32 to i32
  return %i : i32
}

// -----

func.func @bytes(%bytes: memref<64xi8>, %c: index) -> memref<16xf32> {
  // expected-error @below {{it depends on how a narrower type is stored}}
  %v = memref.view %bytes[%c][] : memref<64xi8> to memref<16xf32>
  return %v : memref<16xf32>
}

// -----

// expected-error @below {{'func.func' op cannot be promoted to f64: it is defined outside this module}}
func.func private @print(memref<*xf32>)

// -----

func.func @blob() -> tensor<2xf32> {
  // expected-error @below {{'value' is not a list of values in the program}}
  %x = arith.constant dense_resource<blob> : tensor<2xf32>
  return %x : tensor<2xf32>
}

{-#
  dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } }
#-}

// -----

func.func @other(%x: f32) -> f32 {
  // expected-error @below {{the llvm dialect is not among those that compute alike}}
  %y = llvm.fneg %x : f32
  return %y : f32
}
