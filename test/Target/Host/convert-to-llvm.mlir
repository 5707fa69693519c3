// RUN: flash-opt %s --convert-host-to-llvm --split-input-file --verify-diagnostics | FileCheck %s

// CHECK:       llvm.mlir.global internal constant @f_message_0("{0} is \22odd\22\00")
// CHECK-LABEL: llvm.func @f(
// CHECK-SAME:    %arg0: !llvm.ptr) -> i32
// One buffer for the values of all launches, as large as the most.
// CHECK:         %[[EIGHT:.*]] = llvm.mlir.constant(8 : i64)
// CHECK-NEXT:    %[[FRAME:.*]] = llvm.alloca %[[EIGHT]] x i64
// Inputs are behind the first pointer of the call, outputs behind the second.
// CHECK:         %[[AT:.*]] = llvm.getelementptr %arg0[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK-NEXT:    %[[INPUTS:.*]] = llvm.load %[[AT]]
// CHECK-NEXT:    %[[WORD:.*]] = llvm.getelementptr %[[INPUTS]][5] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT:    %[[N:.*]] = llvm.load %[[WORD]] : !llvm.ptr -> i64
// CHECK:         %[[BOTH:.*]] = "llvm.intr.smul.with.overflow"(%[[N]], %[[N]])
// CHECK:         %[[OVERFLOWS:.*]] = llvm.extractvalue %[[BOTH]][1]
// CHECK:         llvm.cond_br %[[OVERFLOWS]], ^[[FAIL:.*]], ^[[GO:bb[0-9]+]]{{$}}
// CHECK-NEXT:  ^[[GO]]:
// CHECK:         %[[MEMORY:.*]] = llvm.call @flash_host_allocate(%arg0, %{{.*}}) : (!llvm.ptr, i64) -> i64
// CHECK:         llvm.store %[[MEMORY]], %{{.*}}
// CHECK:         %[[STATUS:.*]] = llvm.call @flash_host_launch(%arg0, %{{.*}}, %[[FRAME]]) : (!llvm.ptr, i64, !llvm.ptr) -> i32
// CHECK:         llvm.icmp "eq" %[[STATUS]]
// CHECK:         llvm.getelementptr %arg0[1]
// CHECK:       ^[[FAIL]]:
// CHECK:         %[[TEXT:.*]] = llvm.mlir.addressof @f_message_0
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK:         %[[NONE:.*]] = llvm.mlir.constant(0 : i64)
// CHECK:         llvm.call @flash_host_fail(%arg0, %[[TEXT]], %[[ONE]], %[[N]], %[[NONE]])
// CHECK:         llvm.return %{{.*}} : i32
func.func @f(%call: !host.call) -> i32 {
  %done = arith.constant 0 : i32
  %n = host.input %call[5]
  %m, %fits = host.overflow mul %n, %n
  host.check %fits, "odd" : "{0} is \"odd\"" (%n)
  %used = host.mark %call
  %memory = host.allocate %call, %m
  host.launch %call, 1 "k" (%n, %n, %n, %n, %n, %n, %n, %memory)
  host.release %call, %used
  host.output %call[2], %m
  return %done : i32
}

// -----

func.func @unexpanded(%call: !host.call) -> i32 {
  %done = arith.constant 0 : i32
  %n = host.input %call[5]
  // expected-error@+1 {{'host.checked' op is left: --host-expand-checked comes first}}
  %m = host.checked mul %n, %n
  host.output %call[2], %m
  return %done : i32
}
