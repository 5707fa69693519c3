// RUN: split-file %s %t
// RUN: not flash-translate %t/empty.mlir --chip=sm_81 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not flash-translate %t/empty.mlir --chip= 2>&1 | FileCheck %s --check-prefix=NOCHIP
// RUN: not flash-translate %t/empty.mlir --chip=sm_90a --ptx=78 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not flash-translate %t/empty.mlir --ptx=91 2>&1 | FileCheck %s --check-prefix=NEW
// RUN: not flash-translate %t/empty.mlir --ptx=89 2>&1 | FileCheck %s --check-prefix=GAP
// RUN: not flash-translate %t/empty.mlir --ptx=85 --chip=sm_100a 2>&1 | FileCheck %s --check-prefix=OLD100
// RUN: not flash-translate %t/cast.mlir 2>&1 | FileCheck %s --check-prefix=CAST
// RUN: not flash-translate %t/gpufunc.mlir 2>&1 | FileCheck %s --check-prefix=GPUFUNC
// RUN: not flash-translate %t/wgmma.mlir --chip=sm_100a 2>&1 | FileCheck %s --check-prefix=WGMMA
// RUN: not flash-translate %t/cluster.mlir 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: not flash-translate %t/select.mlir --chip=sm_90 2>&1 | FileCheck %s --check-prefix=SELECT
// RUN: not flash-translate %t/constraint.mlir 2>&1 | FileCheck %s --check-prefix=CONSTRAINT
// RUN: not flash-translate %t/wide.mlir 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not flash-translate %t/body.mlir 2>&1 | FileCheck %s --check-prefix=BODY
// RUN: not flash-translate %t/library.mlir 2>&1 | FileCheck %s --check-prefix=LIBRARY
// RUN: not flash-translate %t/node.mlir 2>&1 | FileCheck %s --check-prefix=NODE
// RUN: not flash-translate %t/two.mlir 2>&1 | FileCheck %s --check-prefix=TWO

// CHIP: error: unknown chip 'sm_81'; the chips are sm_75, sm_80, sm_86,
// NOCHIP: error: unknown chip ''; the chips are
// OLD: error: PTX 7.8 is not possible for sm_90a; the first version is 8.0
// NEW: error: PTX 9.1 is not possible for sm_80; the last version is 9.0
// GAP: error: PTX 8.9 is not possible for sm_80; the next version is 9.0
// OLD100: error: PTX 8.5 is not possible for sm_100a; the first version is 8.6

//--- empty.mlir
llvm.func @empty() attributes {nvvm.kernel} {
  llvm.return
}

// CAST: cast.mlir:2:8: error: LLVM Translation failed for operation: builtin.unrealized_conversion_cast
// CAST: error: the module has no translation to LLVM IR; it must be in the llvm and nvvm dialects
//--- cast.mlir
llvm.func @kernel(%x: f32) -> i32 {
  %0 = builtin.unrealized_conversion_cast %x : f32 to i32
  llvm.return %0 : i32
}

// GPUFUNC: error: unsupported GPU operation: gpu.func
// GPUFUNC: error: the module has no translation to LLVM IR
//--- gpufunc.mlir
gpu.module @kernels {
  gpu.func @kernel() kernel {
    gpu.return
  }
}

// WGMMA: error: 'nvvm.wgmma.fence.aligned' needs sm_90a, but the code is for sm_100a
//--- wgmma.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  nvvm.wgmma.fence.aligned
  llvm.return
}

// CLUSTER: error: 'nvvm.cluster.wait' needs sm_90 or later, but the code is for sm_80
//--- cluster.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  nvvm.cluster.wait
  llvm.return
}

// LLVM would end the process here.
// SELECT: error: LLVM cannot generate PTX 8.0 for sm_90: Cannot select: intrinsic %llvm.nvvm.setmaxnreg
//--- select.mlir
llvm.func @kernel() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>} {
  nvvm.setmaxregister decrease 24
  llvm.return
}

// CONSTRAINT: error: LLVM cannot generate PTX 8.0 for sm_80: {{.*}}constraint
//--- constraint.mlir
llvm.func @kernel(%x: f32) attributes {nvvm.kernel} {
  llvm.inline_asm has_side_effects "use $0;", "Y" %x : (f32) -> ()
  llvm.return
}

// WIDE: error: @kernel loads <32 x float>, which is 128 bytes at once; load at most 64 bytes
//--- wide.mlir
llvm.func @kernel(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %0 = llvm.load %p : !llvm.ptr<1> -> vector<32xf32>
  llvm.return
}

// BODY: error: @kernel calls @cosf, which has no body
//--- body.mlir
llvm.func @cosf(f32) -> f32
llvm.func @kernel(%x: f32) attributes {nvvm.kernel} {
  %0 = llvm.call @cosf(%x) : (f32) -> f32
  llvm.return
}

// LIBRARY: error: @kernel calls llvm.tanh.v4f32, for which there is no instruction; there are llvm.exp2 and, with the flag afn, llvm.sin, llvm.cos and llvm.tanh
//--- library.mlir
llvm.func @kernel(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %0 = llvm.load %p : !llvm.ptr<1> -> vector<4xf32>
  %1 = llvm.intr.tanh(%0) {fastmathFlags = #llvm.fastmath<afn>} : (vector<4xf32>) -> vector<4xf32>
  %2 = llvm.intr.tanh(%1) : (vector<4xf32>) -> vector<4xf32>
  llvm.store %2, %p : vector<4xf32>, !llvm.ptr<1>
  llvm.return
}

// Without the addresses of LLVM's own message, so that it is the same each time.
// NODE: error: LLVM cannot generate PTX 8.0 for sm_80: Cannot select: f64 = fsin afn{{$}}
//--- node.mlir
llvm.func @kernel(%p: !llvm.ptr<1>, %x: f64) attributes {nvvm.kernel} {
  %0 = llvm.intr.sin(%x) {fastmathFlags = #llvm.fastmath<afn>} : (f64) -> f64
  llvm.store %0, %p : f64, !llvm.ptr<1>
  llvm.return
}

// TWO: error: there are 2 gpu.modules; at most one can be translated
//--- two.mlir
gpu.module @a {
}
gpu.module @b {
}
