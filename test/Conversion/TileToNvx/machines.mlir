// The same program for machines with other instructions: what multiplies 16 elements in one instruction, copies
// asynchronously and rounds two numbers at once does so in two, through registers and one by one before sm_80.
// RUN: flash-opt %s --flash-gpu="target=sm_80 schedule=query_tile=16,key_tile=16,warps=1" --mlir-print-ir-after=convert-tile-to-nvx -o /dev/null 2>&1 | FileCheck %s --check-prefix=AMPERE --implicit-check-not=m16n8k8
// RUN: flash-opt %s --flash-gpu="target=sm_75 schedule=query_tile=16,key_tile=16,warps=1" --mlir-print-ir-after=convert-tile-to-nvx -o /dev/null 2>&1 | FileCheck %s --check-prefix=TURING --implicit-check-not=cp.async --implicit-check-not='k = 16'
// RUN: not flash-opt %s --flash-attach-target="target=sm_80 keys=products=none" --flash-gpu="target=sm_80 schedule=query_tile=16,key_tile=16" 2>&1 | FileCheck %s --check-prefix=NONE

// AMPERE: nvvm.cp.async.shared.global
// AMPERE: nvvm.cp.async.wait.group
// AMPERE: nvvm.mma.sync A[%[[A:.*]], %{{.*}}, %{{.*}}, %{{.*}}] B[%{{.*}}, %{{.*}}] {{.*}} k = 16
// AMPERE: nvvm.convert.f32x2.to.f16x2

// TURING: %[[CHUNK:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr{{.*}} -> vector<4xi32>
// TURING: llvm.store %[[CHUNK]], %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// TURING: %[[HALF:.*]] = nvvm.mma.sync A[%{{.*}}, %{{.*}}] B[%{{.*}}] {{.*}} k = 8
// TURING: %[[C:.*]] = llvm.extractvalue %[[HALF]][0]
// TURING: nvvm.mma.sync A[%{{.*}}, %{{.*}}] B[%{{.*}}] C[%[[C]], {{.*}} k = 8
// TURING: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xf16>

// NONE: error: 'flash.attention' op cannot be scheduled: the target sm_80 has no products of matrices; use cpu
func.func @attention(%q: tensor<1x1x16x16xf16>) -> tensor<1x1x16x16xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x16x16xf16>, tensor<1x1x16x16xf16>, tensor<1x1x16x16xf16>) -> tensor<1x1x16x16xf16>
  return %o : tensor<1x1x16x16xf16>
}
