// Every function that a score region may call, on vectors of scores.
// RUN: flash-run --target=cpu %s --check | FileCheck %s
// CHECK: check: ok
func.func @attention(%q: tensor<1x2x33x16xf32>, %k: tensor<1x2x47x16xf32>) -> tensor<1x2x33x16xf32> {
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // In [0.1, 0.4] or so, where all of them are defined.
    %magnitude = math.absf %s : f32
    %factor = arith.constant 0.05 : f32
    %offset = arith.constant 0.1 : f32
    %scaled = arith.mulf %magnitude, %factor : f32
    %x = arith.addf %scaled, %offset : f32
    %f0 = math.sqrt %x : f32
    %a0 = arith.addf %x, %f0 : f32
    %f1 = math.rsqrt %x : f32
    %a1 = arith.addf %a0, %f1 : f32
    %f2 = math.erf %x : f32
    %a2 = arith.addf %a1, %f2 : f32
    %f3 = math.sin %x : f32
    %a3 = arith.addf %a2, %f3 : f32
    %f4 = math.cos %x : f32
    %a4 = arith.addf %a3, %f4 : f32
    %f5 = math.tan %x : f32
    %a5 = arith.addf %a4, %f5 : f32
    %f6 = math.tanh %x : f32
    %a6 = arith.addf %a5, %f6 : f32
    %f7 = math.atan %x : f32
    %a7 = arith.addf %a6, %f7 : f32
    %f8 = math.exp %x : f32
    %a8 = arith.addf %a7, %f8 : f32
    %f9 = math.expm1 %x : f32
    %a9 = arith.addf %a8, %f9 : f32
    %f10 = math.log %x : f32
    %a10 = arith.addf %a9, %f10 : f32
    %f11 = math.log2 %x : f32
    %a11 = arith.addf %a10, %f11 : f32
    %f12 = math.log10 %x : f32
    %a12 = arith.addf %a11, %f12 : f32
    %f13 = math.log1p %x : f32
    %a13 = arith.addf %a12, %f13 : f32
    %f14 = math.floor %x : f32
    %a14 = arith.addf %a13, %f14 : f32
    %f15 = math.ceil %x : f32
    %a15 = arith.addf %a14, %f15 : f32
    %f16 = math.round %x : f32
    %a16 = arith.addf %a15, %f16 : f32
    %f17 = math.roundeven %x : f32
    %a17 = arith.addf %a16, %f17 : f32
    %f18 = math.trunc %x : f32
    %a18 = arith.addf %a17, %f18 : f32
    %f19 = math.cbrt %x : f32
    %a19 = arith.addf %a18, %f19 : f32
    %f20 = math.exp2 %x : f32
    %a20 = arith.addf %a19, %f20 : f32
    %f21 = math.sinh %x : f32
    %a21 = arith.addf %a20, %f21 : f32
    %f22 = math.cosh %x : f32
    %a22 = arith.addf %a21, %f22 : f32
    %f23 = math.asin %x : f32
    %a23 = arith.addf %a22, %f23 : f32
    %f24 = math.erfc %x : f32
    %a24 = arith.addf %a23, %f24 : f32
    %three = arith.constant 3 : i32
    %power = math.powf %x, %offset : f32
    %integerPower = math.fpowi %x, %three : f32, i32
    %angle = math.atan2 %x, %offset : f32
    %signed = math.copysign %x, %s : f32
    %fused = math.fma %power, %integerPower, %angle : f32
    %rest = arith.remf %fused, %offset : f32
    %larger = arith.maximumf %rest, %signed : f32
    %between = math.clampf %larger to [%offset, %x] : f32
    %isInfinite = math.isinf %between : f32
    %isNormal = math.isnormal %between : f32
    %isSpecial = arith.xori %isInfinite, %isNormal : i1
    %usual = arith.select %isSpecial, %between, %s : f32
    %n = arith.index_cast %i : index to i32
    %cubed = math.ipowi %n, %three : i32
    %root = arith.sitofp %cubed : i32 to f32
    %small = arith.mulf %root, %factor : f32
    %changed = arith.addf %usual, %small : f32
    %sum = arith.addf %a24, %changed : f32
    flash.yield %sum : f32
  } : (tensor<1x2x33x16xf32>, tensor<1x2x47x16xf32>, tensor<1x2x47x16xf32>) -> tensor<1x2x33x16xf32>
  return %o : tensor<1x2x33x16xf32>
}
