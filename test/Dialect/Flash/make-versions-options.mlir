// Calls that are none, that contradict types or themselves, and that do not say enough, or too much.
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x-1x64" 2>&1 | FileCheck %s --check-prefix=CALL-0
// CALL-0: '-1' is no size; write the sizes of an argument as 2x8x1..4096x64, each from 1 to 2147483647, with ? for a size that another argument gives or that does not matter, and semicolons between calls
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x0x64" 2>&1 | FileCheck %s --check-prefix=CALL-1
// CALL-1: '0' is no size
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x7..3x64" 2>&1 | FileCheck %s --check-prefix=CALL-2
// CALL-2: '7..3' is no size
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1..x64" 2>&1 | FileCheck %s --check-prefix=CALL-3
// CALL-3: '1..' is no size
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x3000000000x64" 2>&1 | FileCheck %s --check-prefix=CALL-4
// CALL-4: '3000000000' is no size
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64;" 2>&1 | FileCheck %s --check-prefix=CALL-5
// CALL-5: '' is no size
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=1x1,1x1,1x1,1x1" 2>&1 | FileCheck %s --check-prefix=CALL-6
// CALL-6: it has sizes of 4 arguments, the function takes 3
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x1x64" 2>&1 | FileCheck %s --check-prefix=CALL-7
// CALL-7: argument 0 has type 'tensor<?x?x?x64xf16>'
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x32" 2>&1 | FileCheck %s --check-prefix=CALL-8
// CALL-8: argument 0 has type 'tensor<?x?x?x64xf16>'
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64" 2>&1 | FileCheck %s --check-prefix=CALL-9
// CALL-9: it does not say the number of key heads (size 1 of argument 1)
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x?x64,2x2x100x64" 2>&1 | FileCheck %s --check-prefix=CALL-10
// CALL-10: it does not say the number of queries (size 2 of argument 0)
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64,3x2x100x64" 2>&1 | FileCheck %s --check-prefix=CALL-11
// CALL-11: it says 2 and 3 of the batch size
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64,1..2x2x100x64" 2>&1 | FileCheck %s --check-prefix=CALL-12
// CALL-12: it says 2 and 1..2 of the batch size
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64,2x3x100x64" 2>&1 | FileCheck %s --check-prefix=CALL-13
// CALL-13: no attention has 8 query heads on 3 key heads
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64,2x1..8x100x64" 2>&1 | FileCheck %s --check-prefix=CALL-14
// CALL-14: no attention has 8 query heads on 3 key heads
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64,2x2x100x64,5" 2>&1 | FileCheck %s --check-prefix=CALL-15
// CALL-15: no schedule depends on size 0 of argument 2; write ?
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=1..64x8x1..4096x64,?x8x1..4096x64" 2>&1 | FileCheck %s --check-prefix=CALL-16
// CALL-16: there are more than 65536 classes of sizes; name smaller ranges
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x1..2147483647x1x64,2x1x1x64" 2>&1 | FileCheck %s --check-prefix=CALL-17
// CALL-17: there are more than 65536 classes of sizes

func.func @f(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %bias: tensor<?xf32>) -> tensor<?x?x?x64xf16> {
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%j] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
