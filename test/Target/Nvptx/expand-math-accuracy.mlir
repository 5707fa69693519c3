// Accuracy: the expansions compiled for the CPU, against the C library in double
// precision, over floats of all magnitudes.
// RUN: flash-opt %s --flash-gpu-expand-math --convert-to-llvm -o %t.mlir
// RUN: mlir-translate %t.mlir --mlir-to-llvmir -o %t.ll
// RUN: %cc -Wno-override-module -O2 -ffp-contract=off %t.ll %S/Inputs/math.c -lm -o %t
// RUN: %t

func.func @flash_exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

func.func @flash_tanh(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  return %y : f32
}

func.func @flash_expm1(%x: f32) -> f32 {
  %y = math.expm1 %x : f32
  return %y : f32
}

func.func @flash_log(%x: f32) -> f32 {
  %y = math.log %x : f32
  return %y : f32
}

func.func @flash_log2(%x: f32) -> f32 {
  %y = math.log2 %x : f32
  return %y : f32
}

func.func @flash_log10(%x: f32) -> f32 {
  %y = math.log10 %x : f32
  return %y : f32
}

func.func @flash_log1p(%x: f32) -> f32 {
  %y = math.log1p %x : f32
  return %y : f32
}

func.func @flash_cbrt(%x: f32) -> f32 {
  %y = math.cbrt %x : f32
  return %y : f32
}

func.func @flash_sinh(%x: f32) -> f32 {
  %y = math.sinh %x : f32
  return %y : f32
}

func.func @flash_cosh(%x: f32) -> f32 {
  %y = math.cosh %x : f32
  return %y : f32
}

func.func @flash_asinh(%x: f32) -> f32 {
  %y = math.asinh %x : f32
  return %y : f32
}

func.func @flash_acosh(%x: f32) -> f32 {
  %y = math.acosh %x : f32
  return %y : f32
}

func.func @flash_atanh(%x: f32) -> f32 {
  %y = math.atanh %x : f32
  return %y : f32
}

func.func @flash_sin(%x: f32) -> f32 {
  %y = math.sin %x : f32
  return %y : f32
}

func.func @flash_cos(%x: f32) -> f32 {
  %y = math.cos %x : f32
  return %y : f32
}

func.func @flash_tan(%x: f32) -> f32 {
  %y = math.tan %x : f32
  return %y : f32
}

func.func @flash_asin(%x: f32) -> f32 {
  %y = math.asin %x : f32
  return %y : f32
}

func.func @flash_acos(%x: f32) -> f32 {
  %y = math.acos %x : f32
  return %y : f32
}

func.func @flash_atan(%x: f32) -> f32 {
  %y = math.atan %x : f32
  return %y : f32
}

func.func @flash_erf(%x: f32) -> f32 {
  %y = math.erf %x : f32
  return %y : f32
}

func.func @flash_erfc(%x: f32) -> f32 {
  %y = math.erfc %x : f32
  return %y : f32
}

func.func @flash_pow(%x: f32, %y: f32) -> f32 {
  %z = math.powf %x, %y : f32
  return %z : f32
}

func.func @flash_atan2(%x: f32, %y: f32) -> f32 {
  %z = math.atan2 %x, %y : f32
  return %z : f32
}

func.func @flash_remf(%x: f32, %y: f32) -> f32 {
  %r = arith.remf %x, %y : f32
  return %r : f32
}

func.func @flash_powi(%x: f32, %n: i32) -> f32 {
  %y = math.fpowi %x, %n : f32, i32
  return %y : f32
}

func.func @flash_ipowi(%x: i32, %n: i32) -> i32 {
  %y = math.ipowi %x, %n : i32
  return %y : i32
}

func.func @flash_isfinite(%x: f32) -> i1 {
  %y = math.isfinite %x : f32
  return %y : i1
}

func.func @flash_isinf(%x: f32) -> i1 {
  %y = math.isinf %x : f32
  return %y : i1
}

func.func @flash_isnan(%x: f32) -> i1 {
  %y = math.isnan %x : f32
  return %y : i1
}

func.func @flash_isnormal(%x: f32) -> i1 {
  %y = math.isnormal %x : f32
  return %y : i1
}
