// Numbers of a mask that may not fit in the 32 bits of a GPU's indices.
// RUN: flash-opt %s --flash-decompose-naive --split-input-file | FileCheck %s
// RUN: flash-run %s --target=sm_80 --function=wide --dump=ptx 2>/dev/null | FileCheck %s --check-prefix=PTX
// RUN: flash-run %s --target=cpu --function=wide --check 2>/dev/null | FileCheck %s --check-prefix=OK
// RUN: flash-run %s --target=emulate --function=wide --check 2>/dev/null | FileCheck %s --check-prefix=OK
// RUN: flash-run %s --target=cpu --function=endless --check | FileCheck %s --check-prefix=OK
// OK: check: ok

#wide = affine_set<(b, h, i, j)[nq, nk] : ((1000003 * i) floordiv 3 - 333333 * j >= 0)>
#narrow = affine_set<(b, h, i, j)[nq, nk] : (100 * i - 101 * j >= 0)>
!t = tensor<1x1x200x16xf16>

// CHECK-LABEL: func @wide
// CHECK: arith.index_cast %{{.*}} : index to i64
// CHECK: arith.muli {{.*}} : i64
// CHECK: arith.cmpi sge, %{{.*}} : i64
// PTX: mul.wide.s32 {{.*}}, 1000003;
func.func @wide(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#wide>) : (!t, !t, !t) -> !t
  return %o : !t
}

// CHECK-LABEL: func @narrow
// CHECK-NOT: i64
func.func @narrow(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#narrow>) : (!t, !t, !t) -> !t
  return %o : !t
}

// CHECK-LABEL: func @endless
// CHECK-NOT: arith.cmpi
func.func @endless(%q: tensor<1x1x100x16xf16>) -> tensor<1x1x100x16xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.all_of<[#flash.window<left = 2147483647, right = 1073741824>, #flash.prefix<2147483647>]>)
      : (tensor<1x1x100x16xf16>, tensor<1x1x100x16xf16>, tensor<1x1x100x16xf16>) -> tensor<1x1x100x16xf16>
  return %o : tensor<1x1x100x16xf16>
}
