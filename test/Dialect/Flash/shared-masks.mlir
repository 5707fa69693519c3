// Masks may share parts: none is printed or computed once for each path to it.
// RUN: flash-opt %s | FileCheck %s --implicit-check-not="#mask15"
// RUN: flash-opt %s --flash-decompose-naive | FileCheck %s --check-prefix=PREDICATE --implicit-check-not=arith.cmpi
// RUN: flash-run %s --target=cpu --dump=l0 | flash-run - --target=cpu --check | FileCheck %s --check-prefix=OK
// RUN: flash-run %s --target=emulate --check | FileCheck %s --check-prefix=OK
// RUN: flash-run %s --target=emulate:sm_90a --check | FileCheck %s --check-prefix=OK

// CHECK: #mask2 = #flash.any_of<[#mask, #mask1]>
// CHECK: #mask14 = #flash.any_of<[#mask12, #mask13]>
// CHECK: mask(#mask14)

// PREDICATE-LABEL: func @shared
// The mask is in two bodies: of the maximum and of the sum.
// PREDICATE-COUNT-26: arith.cmpi
// OK: check: ok
#s0 = affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0)>
#t0 = affine_set<(b, h, i, j)[nq, nk] : (j - 8 >= 0)>
#u0 = affine_set<(b, h, i, j)[nq, nk] : (i - 8 >= 0)>
#m0 = #flash.any_of<[#flash.all_of<[#flash.affine<#s0>, #flash.affine<#t0>]>, #flash.all_of<[#flash.affine<#s0>, #flash.affine<#u0>]>]>
#t1 = affine_set<(b, h, i, j)[nq, nk] : (j - 9 >= 0)>
#u1 = affine_set<(b, h, i, j)[nq, nk] : (i - 9 >= 0)>
#m1 = #flash.any_of<[#flash.all_of<[#m0, #flash.affine<#t1>]>, #flash.all_of<[#m0, #flash.affine<#u1>]>]>
#t2 = affine_set<(b, h, i, j)[nq, nk] : (j - 10 >= 0)>
#u2 = affine_set<(b, h, i, j)[nq, nk] : (i - 10 >= 0)>
#m2 = #flash.any_of<[#flash.all_of<[#m1, #flash.affine<#t2>]>, #flash.all_of<[#m1, #flash.affine<#u2>]>]>
#t3 = affine_set<(b, h, i, j)[nq, nk] : (j - 11 >= 0)>
#u3 = affine_set<(b, h, i, j)[nq, nk] : (i - 11 >= 0)>
#m3 = #flash.any_of<[#flash.all_of<[#m2, #flash.affine<#t3>]>, #flash.all_of<[#m2, #flash.affine<#u3>]>]>
#t4 = affine_set<(b, h, i, j)[nq, nk] : (j - 12 >= 0)>
#u4 = affine_set<(b, h, i, j)[nq, nk] : (i - 12 >= 0)>
#m4 = #flash.any_of<[#flash.all_of<[#m3, #flash.affine<#t4>]>, #flash.all_of<[#m3, #flash.affine<#u4>]>]>
#t5 = affine_set<(b, h, i, j)[nq, nk] : (j - 13 >= 0)>
#u5 = affine_set<(b, h, i, j)[nq, nk] : (i - 13 >= 0)>
#m5 = #flash.any_of<[#flash.all_of<[#m4, #flash.affine<#t5>]>, #flash.all_of<[#m4, #flash.affine<#u5>]>]>
func.func @shared(%q: tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32> {
  %o = flash.attention %q, %q, %q mask(#m5) : (tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32>
  return %o : tensor<1x1x64x16xf32>
}
