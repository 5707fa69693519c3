// RUN: flash-opt %s --convert-host-to-emitc=prefix=scale | FileCheck %s

// CHECK-LABEL: emitc.func @scale_program(%arg0: !emitc.ptr<!emitc.opaque<"scale_call">>) -> !emitc.opaque<"CUresult">
// CHECK-SAME:    specifiers = ["static", "inline"]
// CHECK:         %[[N:.*]] = call_opaque "scale_input"(%arg0) {args = [0 : index, 5 : i32]}
// CHECK:         %[[FITS:.*]] = call_opaque "scale_mul"(%[[N]], %[[N]], %{{.*}}) : (i64, i64, !emitc.ptr<i64>) -> i1
// CHECK:         verbatim "if (!{})\0A  return scale_fail({}->message, \22odd \\? {{[{][{]}}\22,\0A      CUDA_ERROR_INVALID_VALUE);" args %[[FITS]], %arg0
// CHECK:         call_opaque "scale_mark"(%arg0)
// CHECK:         call_opaque "scale_allocate"(%arg0, %{{.*}})
// CHECK:         for %{{.*}} = %{{.*}} to %[[N]] step
// CHECK:           verbatim "{{.*}}CUresult result = scale_launch_1({}, values);
// CHECK:         call_opaque "scale_release"(%arg0, %{{.*}})
// CHECK:         verbatim "{}->outputs[2] = {};" args %arg0,
// CHECK:         return %{{.*}} : !emitc.opaque<"CUresult">
func.func @f(%call: !host.call) -> i32 {
  %done = arith.constant 0 : i32
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %n = host.input %call[5]
  %m, %fits = host.overflow mul %n, %n
  host.check %fits, "odd ? {"
  %used = host.mark %call
  %memory = host.allocate %call, %m
  scf.for %i = %c0 to %n step %c1 : i64 {
    host.launch %call, 1 "k" (%n, %n, %n, %n, %n, %n, %n, %memory)
  }
  host.release %call, %used
  host.output %call[2], %m
  return %done : i32
}
