// RUN: flash-opt %s --host-expand-checked | FileCheck %s

// CHECK-LABEL: func.func @sum
// CHECK-SAME:    (%[[A:.*]]: i64, %[[B:.*]]: i64)
// CHECK-NEXT:    %[[SUM:.*]], %[[FITS:.*]] = host.overflow add %[[A]], %[[B]]
// CHECK-NEXT:    host.check %[[FITS]], "add of two values does not fit in 64 bits" : "add of {0} and {1} does not fit in 64 bits"(%[[A]], %[[B]])
// CHECK-NEXT:    return %[[SUM]]
func.func @sum(%a: i64, %b: i64) -> i64 {
  %r = host.checked add %a, %b
  return %r : i64
}

// CHECK-LABEL: func.func @unsigned
// CHECK-SAME:    (%[[A:.*]]: i64, %[[B:.*]]: i64)
// CHECK:         %[[OK:.*]] = arith.cmpi ne, %[[B]], %c0_i64
// CHECK-NEXT:    host.check %[[OK]], "a value is divided by 0" : "{0} is divided by 0"(%[[A]])
// CHECK-NEXT:    %[[R:.*]] = arith.divui %[[A]], %[[B]]
// CHECK-NEXT:    return %[[R]]
func.func @unsigned(%a: i64, %b: i64) -> i64 {
  %r = host.checked divu %a, %b
  return %r : i64
}

// By a constant, only the rest is left to do.
// CHECK-LABEL: func.func @constant
// CHECK-SAME:    (%[[A:.*]]: i64)
// CHECK-NOT:     host.check
// CHECK:         %[[Q:.*]] = arith.divsi %[[A]], %c128_i64
// CHECK:         %[[BACK:.*]] = arith.muli %[[Q]], %c128_i64
// CHECK:         %[[REST:.*]] = arith.subi %[[A]], %[[BACK]]
// CHECK:         %[[R:.*]] = arith.subi %[[Q]], %{{.*}}
// CHECK:         return %[[R]]
func.func @constant(%a: i64) -> i64 {
  %c128 = arith.constant 128 : i64
  %r = host.checked floordivs %a, %c128
  return %r : i64
}

// The only quotient of signed numbers that does not fit, and no rest at all.
// CHECK-LABEL: func.func @signed
// CHECK:         host.check %{{.*}}, "a value is divided by 0"
// CHECK:         host.check %{{.*}}, "divs of two values does not fit in 64 bits" : "divs of {0} and {1} does not fit in 64 bits"
// CHECK:         arith.divsi
// CHECK-LABEL: func.func @rest
// CHECK:         host.check %{{.*}}, "a value is divided by 0"
// CHECK-NOT:     host.check
// CHECK:         %[[BY:.*]] = arith.select %{{.*}}, %c1_i64, %arg1
// CHECK:         arith.remsi %arg0, %[[BY]]
func.func @signed(%a: i64, %b: i64) -> i64 {
  %r = host.checked divs %a, %b
  return %r : i64
}
func.func @rest(%a: i64, %b: i64) -> i64 {
  %r = host.checked rems %a, %b
  return %r : i64
}

// CHECK-LABEL: func.func @narrow
// CHECK:         host.check %{{.*}}, "a value does not fit in an i32" : "{0} does not fit in an i32"(%arg0)
// CHECK:         return %arg0
func.func @narrow(%a: i64) -> i64 {
  %r = host.narrow %a
  return %r : i64
}
