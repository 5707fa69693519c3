// A program at level 1 that reads or writes rows which do not exist. Kernels that the compiler makes have no such checks.
// RUN: flash-run %s --target=cpu --function=copy --shape 0=1x1x32x8
// RUN: not flash-run %s --target=cpu --function=copy --shape 0=1x1x31x8 2>&1 | FileCheck %s --check-prefix=READ
// RUN: not flash-run %s --target=cpu --function=copy --shape 0=1x1x48x8 2>&1 | FileCheck %s --check-prefix=WRITE
// RUN: not flash-run %s --target=cpu --function=before 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: not flash-run %s --target=cpu --function=behind 2>&1 | FileCheck %s --check-prefix=BEHIND
// RUN: flash-run %s --target=cpu --function=packed --fill 1=16
// RUN: not flash-run %s --target=cpu --function=packed --fill 1=17 2>&1 | FileCheck %s --check-prefix=PACKED
// RUN: not flash-run %s --target=cpu --function=pages 2>&1 | FileCheck %s --check-prefix=PAGES
// RUN: flash-run %examples/causal.mlir --target=cpu --dump=linalg | FileCheck %s --check-prefix=OWN
// OWN-NOT: cf.assert

!x = tensor<1x1x?x8xf32>
!o = tensor<1x1x32x8xf32>
!t = tensor<16x8xf32>
func.func @copy(%x: !x) -> !o {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c2 : !x
  %o = tensor.empty() : !o
  %r = flash.kernel over(%c1, %c1, %n) by [1, 1, 16] outs(%o : !o) {
  ^bb0(%b: index, %h: index, %i: index, %out: !o):
    // READ: error: flash.load_rows at {{.*}}rows.mlir:[[# @LINE + 1]]:10: ends behind the end of dimension 2{{$}}
    %t = flash.load_rows %x[%b, %h, %i] : !x -> !t
    flash.store {
      // WRITE: error: flash.store_rows at {{.*}}rows.mlir:[[# @LINE + 1]]:7: ends behind the end of dimension 2, 32{{$}}
      flash.store_rows %t into %out[%b, %h, %i] : !t into !o
    }
  }
  return %r : !o
}

#before = affine_map<(b, h, i)[nq, nk] -> (-1)>
#end = affine_map<(b, h, i)[nq, nk] -> (2)>
!v = tensor<16xf32>
func.func @before(%x: !o, %t: !t, %v: !v) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %o = tensor.empty() : !o
  %r = flash.kernel over(%c1, %c1, %c32) by [1, 1, 16] outs(%o : !o) {
  ^bb0(%b: index, %h: index, %i: index, %out: !o):
    %q = flash.load_rows %x[%b, %h, %i] : !o -> !t
    %s:3 = flash.visit keys tile(16) from %c0 to %c32 by %c16 exist(%c32)
        tiles(<lo = [#flash.bound<#before>], hi = [#flash.bound<#end>]>) init(%t, %v, %v : !t, !v, !v) {
    ^bb0(%j: index, %rows: index, %acc: !t, %max: !v, %sum: !v):
      // BEFORE: error: flash.load_rows at {{.*}}rows.mlir:[[# @LINE + 1]]:12: begins before the start of dimension 2{{$}}
      %k = flash.load_rows %x[%b, %h, %j] : !o -> !t
      %a, %m, %l = flash.online_attention ins(%q, %k, %k : !t, !t, !t) outs(%acc, %max, %sum : !t, !v, !v)
          at[%b, %h, %i, %j] of[32, 32] scale(1.0) unit(1.0) mask(#flash.causal)
      flash.next %a, %m, %l : !t, !v, !v
    }
    flash.store {
      flash.store_rows %s#0 into %out[%b, %h, %i] : !t into !o
    }
  }
  return %r : !o
}

func.func @behind(%x: !o, %t: !t) -> !t {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  %o = tensor.empty() : !t
  %r = flash.kernel over(%c16) by [16] outs(%o : !t) {
  ^bb0(%i: index, %out: !t):
    %s = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c20) init(%t : !t) {
    ^bb0(%j: index, %rows: index, %sum: !t):
      // BEHIND: error: flash.load_rows at {{.*}}rows.mlir:[[# @LINE + 1]]:12: the number of rows is negative{{$}}
      %k = flash.load_rows %x[%c0, %c0, %j] rows(%rows) : !o -> !t
      flash.next %k : !t
    }
    flash.store {
      flash.store_rows %s into %out[%i] : !t into !t
    }
  }
  return %r : !t
}

// Of a view the rows are those of a sequence.
func.func @packed(%x: !o, %lengths: tensor<1xi32>) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %offsets = arith.constant dense<[0, 16, 32]> : tensor<3xi32>
  %l = tensor.extract %lengths[%c0] : tensor<1xi32>
  %n = arith.index_cast %l : i32 to index
  %xs, %ls = flash.unpack %x by %offsets : !o, tensor<3xi32> -> tensor<2x1x32x8xf32>, tensor<2xi32>
  %e = tensor.empty() : tensor<2x1x32x8xf32>
  %r = flash.kernel over(%c2, %c1, %c32) by [1, 1, 16] outs(%e : tensor<2x1x32x8xf32>) {
  ^bb0(%b: index, %h: index, %i: index, %out: tensor<2x1x32x8xf32>):
    // None of the rows behind the end may be read.
    %rest = arith.subi %n, %i : index
    %some = arith.maxsi %rest, %c0 : index
    // PACKED: error: flash.load_rows at {{.*}}rows.mlir:[[# @LINE + 1]]:10: ends behind the end of the rows of the batch{{$}}
    %t = flash.load_rows %xs[%b, %h, %i] rows(%some) : tensor<2x1x32x8xf32> -> !t
    flash.store {
      flash.store_rows %t into %out[%b, %h, %i] rows(%some) : !t into tensor<2x1x32x8xf32>
    }
  }
  %to = tensor.empty() : !o
  %packed = flash.pack %r by %offsets into %to : tensor<2x1x32x8xf32>, tensor<3xi32> into !o
  return %packed : !o
}

func.func @pages(%x: tensor<3x1x16x8xf32>) -> !o {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %table = arith.constant dense<[[2, 0]]> : tensor<1x2xi32>
  %lengths = arith.constant dense<20> : tensor<1xi32>
  %xs = flash.unpage %x by %table lengths(%lengths : tensor<1xi32>) : tensor<3x1x16x8xf32>, tensor<1x2xi32> -> !o
  %e = tensor.empty() : !o
  %r = flash.kernel over(%c1, %c1, %c32) by [1, 1, 16] outs(%e : !o) {
  ^bb0(%b: index, %h: index, %i: index, %out: !o):
    // PAGES: error: flash.load_rows at {{.*}}rows.mlir:[[# @LINE + 1]]:10: ends behind the end of the rows of the batch{{$}}
    %t = flash.load_rows %xs[%b, %h, %i] : !o -> !t
    flash.store {
      flash.store_rows %t into %out[%b, %h, %i] : !t into !o
    }
  }
  return %r : !o
}
