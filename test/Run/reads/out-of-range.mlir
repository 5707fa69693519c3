// An element that takes part reads out of range: an error with the op and the
// line, before the program may fault, or read what is not there.
// DEFINE: %{run} = not flash-run %s --shape=2=101
// RUN: %{run} --function=late --target=cpu --check 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: %{run} --function=late --target=emulate 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: %{run} --function=late --target=emulate --check 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: %{run} --function=late --target=emulate:sm_90a 2>&1 | FileCheck %s --check-prefix=BLOCK
// LATE:  flash-run: error: tensor.extract at {{.*}}out-of-range.mlir:33:10: the index of dimension 0 is not below the size of the dimension
// BLOCK: flash-run: error: memref.load at {{.*}}out-of-range.mlir:33:10: the index of dimension 0 is not below the size of the dimension

// RUN: %{run} --function=early --target=cpu --check 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: %{run} --function=early --target=emulate 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: %{run} --function=early --target=emulate:sm_90a 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: flash-run: error: {{tensor.extract|memref.load}} at {{.*}}out-of-range.mlir:48:10: the index of dimension 0 is negative

// Arrays that are read by the position have an element for each.
// RUN: %{run} --function=position --target=cpu 2>&1 | FileCheck %s --check-prefix=POSITION
// RUN: %{run} --function=position --target=emulate 2>&1 | FileCheck %s --check-prefix=POSITION
// RUN: %{run} --function=position --target=emulate:sm_90a --check 2>&1 | FileCheck %s --check-prefix=POSITION
// POSITION: flash-run: error: flash.attention at {{.*}}out-of-range.mlir:57:8: tensor.extract at {{.*}}out-of-range.mlir:59:10 reads dimension 0 of %{{.*}} at the index of the key, beyond its end

// RUN: not flash-run %s --function=position --shape=2=0 --target=cpu 2>&1 | FileCheck %s --check-prefix=POSITION
// RUN: not flash-run %s --function=late --shape=2=0 --target=emulate 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: flash-run: error: flash.attention at {{.*}} tensor.extract at {{.*}}out-of-range.mlir:33:10 reads dimension 0 of %{{.*}}, which is empty
!t = tensor<1x2x200x32xf32>

// The last key that the mask keeps reads one behind the end.
func.func @late(%q: !t, %k: !t, %table: tensor<?xf32>) -> !t {
  %o = flash.attention %q, %k, %k mask(#flash.prefix<102>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %n = arith.maxsi %j, %c0 : index
    %x = tensor.extract %table[%n] : tensor<?xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// The last query reads before the start.
func.func @early(%q: !t, %k: !t, %table: tensor<?xf32>) -> !t {
  %o = flash.attention %q, %k, %k mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c198 = arith.constant 198 : index
    %n = arith.subi %c198, %i : index
    %c100 = arith.constant 100 : index
    %m = arith.minsi %n, %c100 : index
    %x = tensor.extract %table[%m] : tensor<?xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @position(%q: !t, %k: !t, %table: tensor<?xf32>) -> !t {
  // One hundred and one for two hundred.
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %table[%j] : tensor<?xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// A table of pages that is too short, which sizes alone say.
// RUN: not flash-run %s --function=pages --target=cpu --shape=2=12 2>&1 | FileCheck %s --check-prefix=PAGES
// RUN: not flash-run %s --function=pages --target=emulate:sm_90a --shape=2=12 2>&1 | FileCheck %s --check-prefix=PAGES
// RUN: flash-run %s --function=pages --target=cpu --check --shape=2=13 | FileCheck %s --check-prefix=ENOUGH
// PAGES: flash-run: error: flash.attention at {{.*}}: tensor.extract at {{.*}} reads dimension 0 of %pages beyond its end
// ENOUGH: check: ok
func.func @pages(%q: !t, %k: !t, %pages: tensor<?xf32>) -> !t {
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c16 = arith.constant 16 : index
    %page = arith.floordivsi %j, %c16 : index
    %x = tensor.extract %pages[%page] : tensor<?xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}
