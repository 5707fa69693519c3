// What the host checks of memory that kernels copy from, and what it knows of memory
// that they store to.
// RUN: flash-run %examples/causal.mlir --target=sm_80 --dump=l3 | FileCheck %s --check-prefix=PAIRS
// RUN: flash-run %examples/causal.mlir --target=sm_90a --schedule=query_tile=128,key_tile=128,warps=8,stages=2,features="specialize_warps|overlap|persistent|bulk_store" --dump=l3 | FileCheck %s --check-prefix=BULK

// Results are stored by twos.
// PAIRS:     cf.assert {{.*}}"the kernel 'attention' copies 16 bytes at a time: the strides of argument q must be multiples of 8 elements"
// PAIRS:     memref.assume_alignment %{{.*}}, 16
// PAIRS:     gpu.launch_func {{.*}} {tile.store_vector_widths = array<i64: {{[0, ]*}}2{{[0, 2]*}}>}

// By 16 bytes.
// BULK:      gpu.launch_func {{.*}} {tile.store_vector_widths = array<i64: {{[0, ]*}}8{{[0, ]*}}>}
