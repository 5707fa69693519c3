// RUN: flash-opt %s | flash-opt | FileCheck %s
// RUN: flash-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: func.func @all(%arg0: !host.call)
func.func @all(%call: !host.call) -> i32 {
  // CHECK: %[[N:.*]] = host.input %arg0[4]
  %n = host.input %call[4]
  // CHECK: host.checked ceildivs %[[N]], %[[N]]
  %q = host.checked ceildivs %n, %n
  // CHECK: host.narrow
  %i = host.narrow %q
  // CHECK: %[[SUM:.*]], %[[FITS:.*]] = host.overflow add %[[N]]
  %sum, %fits = host.overflow add %n, %i
  // CHECK: host.check %[[FITS]], "too many"{{$}}
  host.check %fits, "too many"
  // CHECK: host.check %[[FITS]], "too many" : "{0} and {1} are too many"(%[[N]], %{{.*}})
  host.check %fits, "too many" : "{0} and {1} are too many" (%n, %i)
  // CHECK: %[[USED:.*]] = host.mark %arg0
  %used = host.mark %call
  // CHECK: %[[MEMORY:.*]] = host.allocate %arg0, %[[SUM]]
  %memory = host.allocate %call, %sum
  // CHECK: host.launch %arg0, 3 "k"(
  host.launch %call, 3 "k" (%n, %n, %n, %n, %n, %n, %n, %memory, %n)
  // CHECK: host.launch %arg0, 4 "l"({{.*}}) dependent
  host.launch %call, 4 "l" (%n, %n, %n, %n, %n, %n, %n) dependent
  // CHECK: host.release %arg0, %[[USED]]
  host.release %call, %used
  // CHECK: host.output %arg0[0], %[[SUM]]
  host.output %call[0], %sum
  %done = arith.constant 0 : i32
  return %done : i32
}

// FOLD-LABEL: func.func @fold(
func.func @fold(%call: !host.call) -> i32 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c7 = arith.constant 7 : i64
  %true = arith.constant true
  %most = arith.constant 9223372036854775807 : i64
  %n = host.input %call[4]
  // What is known of one operand.
  // FOLD-DAG: %[[N:.*]] = host.input
  // FOLD-DAG: %[[C0:.*]] = arith.constant 0 : i64
  // FOLD-DAG: %[[C49:.*]] = arith.constant 49 : i64
  %a = host.checked add %c0, %n
  // FOLD: host.output %arg0[0], %[[N]]
  host.output %call[0], %a
  %b = host.checked sub %n, %c0
  // FOLD: host.output %arg0[1], %[[N]]
  host.output %call[1], %b
  %c = host.checked mul %n, %c0
  // FOLD: host.output %arg0[2], %[[C0]]
  host.output %call[2], %c
  %d = host.checked floordivs %n, %c1
  // FOLD: host.output %arg0[3], %[[N]]
  host.output %call[3], %d
  %e = host.checked mul %c7, %c7
  // FOLD: host.output %arg0[4], %[[C49]]
  host.output %call[4], %e
  // A rest is not the dividend.
  %f = host.checked remu %n, %c1
  // FOLD: %[[F:.*]] = host.checked remu %[[N]]
  // FOLD: host.output %arg0[5], %[[F]]
  host.output %call[5], %f
  // What fails is left to fail.
  %g = host.checked add %most, %c1
  // FOLD: %[[G:.*]] = host.checked add
  // FOLD: host.output %arg0[6], %[[G]]
  host.output %call[6], %g
  %h, %fits = host.overflow mul %n, %c1
  // FOLD-NOT: host.check
  host.check %fits, "does not fit"
  host.check %true, "is not true"
  %i = host.narrow %c7
  // FOLD: host.output %arg0[7], %[[N]]
  host.output %call[7], %h
  // FOLD: host.output %arg0[8], %{{.*}}
  host.output %call[8], %i
  // What nothing needs cannot fail.
  // FOLD-NOT: host.checked
  %j = host.checked divu %n, %c0
  %done = arith.constant 0 : i32
  return %done : i32
}
