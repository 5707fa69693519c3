// Gradients for which no tiles fit: what would fit is said of the element type, or of the head dimensions.
// RUN: not flash-opt %s --flash-attach-target=target=sm_75 --flash-select-schedule 2>&1 | FileCheck %s
// RUN: not flash-opt %s --flash-attach-target='target=sm_86 keys=shared_bytes_per_block=51200' --flash-select-schedule 2>&1 | FileCheck %s --check-prefix=LESS
// CHECK: 'flash.attention_grad' op cannot be scheduled: tiles and steps of gradients need 73728 bytes of shared memory, and a block may have 65536; choose head dimensions of at most 1024 together, or cpu
// LESS: need 73728 bytes of shared memory, and a block may have 51200; choose head dimensions of at most 800 together, or cpu
!q = tensor<1x2x64x576xf16>
!l = tensor<1x2x64xf32>
func.func @wide(%q: !q, %o: !q, %l: !l) -> (!q, !q, !q) {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %o, %l, %o : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}
