// A kernel of one block is a function of its own, too: one function of many
// kernels would take more than linear time and memory to compile.
// RUN: flash-run %s --target=emulate --dump=llvm | FileCheck %s
// CHECK-DAG: define internal void @f_parallel_0
// CHECK-DAG: define internal void @f_parallel_1
!t = tensor<1x1x64x16xf32>
func.func @f(%q: !t) -> !t {
  %0 = flash.attention %q, %q, %q mask(#flash.prefix<1>) : (!t, !t, !t) -> !t
  %1 = flash.attention %0, %q, %q mask(#flash.prefix<2>) : (!t, !t, !t) -> !t
  return %1 : !t
}
