// REQUIRES: ptxas
// RUN: flash-opt %s --flash-gpu="target=sm_80 schedule=query_tile=16,key_tile=16,warps=1" | flash-translate --ptxas | FileCheck %s

// Every math function in a score region.
// CHECK: every_function: {{.*}} spill stores 0
func.func @every_function(%q: tensor<1x1x100x16xf16>, %k: tensor<1x1x100x16xf16>, %v: tensor<1x1x100x16xf16>) -> tensor<1x1x100x16xf16> {
  %o = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %u0 = math.exp %s : f32
    %u1 = math.tanh %u0 : f32
    %u2 = math.expm1 %u1 : f32
    %u3 = math.log %u2 : f32
    %u4 = math.log2 %u3 : f32
    %u5 = math.log10 %u4 : f32
    %u6 = math.log1p %u5 : f32
    %u7 = math.cbrt %u6 : f32
    %u8 = math.sinh %u7 : f32
    %u9 = math.cosh %u8 : f32
    %u10 = math.asinh %u9 : f32
    %u11 = math.acosh %u10 : f32
    %u12 = math.atanh %u11 : f32
    %u13 = math.sin %u12 : f32
    %u14 = math.cos %u13 : f32
    %u15 = math.tan %u14 : f32
    %u16 = math.asin %u15 : f32
    %u17 = math.acos %u16 : f32
    %u18 = math.atan %u17 : f32
    %u19 = math.erf %u18 : f32
    %u20 = math.erfc %u19 : f32
    %u21 = math.exp2 %u20 : f32
    %u22 = math.sqrt %u21 : f32
    %u23 = math.rsqrt %u22 : f32
    %u24 = math.ceil %u23 : f32
    %u25 = math.floor %u24 : f32
    %u26 = math.round %u25 : f32
    %u27 = math.roundeven %u26 : f32
    %u28 = math.trunc %u27 : f32
    %u29 = math.absf %u28 : f32
    %t1 = math.powf %u29, %u29 : f32
    %t2 = math.atan2 %t1, %u29 : f32
    %n = arith.fptosi %t2 : f32 to i32
    %n1 = math.ipowi %n, %n : i32
    %n2 = math.ctlz %n1 : i32
    %n3 = math.cttz %n2 : i32
    %n4 = math.ctpop %n3 : i32
    %n5 = math.absi %n4 : i32
    %n6 = math.ipowi %j, %i : index
    %t3 = math.fpowi %t2, %n5 : f32, i32
    %t4 = math.fma %t3, %t3, %t2 : f32
    %t5 = math.copysign %t4, %t3 : f32
    %t5c = math.clampf %t5 to [%t3, %t4] : f32
    %p1 = math.isnan %t5c : f32
    %p2 = math.isinf %t5c : f32
    %p3 = math.isfinite %t5c : f32
    %p4 = math.isnormal %t5c : f32
    %p5 = arith.andi %p1, %p2 : i1
    %p6 = arith.andi %p3, %p4 : i1
    %p7 = arith.ori %p5, %p6 : i1
    %p8 = arith.cmpi sgt, %n6, %i : index
    %p9 = arith.xori %p7, %p8 : i1
    %t6 = arith.select %p9, %t5c, %t4 : f32
    %t7 = arith.addf %t6, %t6 : f32
    flash.yield %t7 : f32
  } : (tensor<1x1x100x16xf16>, tensor<1x1x100x16xf16>, tensor<1x1x100x16xf16>) -> tensor<1x1x100x16xf16>
  return %o : tensor<1x1x100x16xf16>
}
