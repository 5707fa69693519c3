// RUN: host-program-opt --test-host-program %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'func.func' op has no body}}
func.func private @external(memref<4xf32>)

// -----

// expected-error@+1 {{'func.func' op branches, which runs on the CPU only}}
func.func @branches(%x: memref<4xf32>) {
  cf.br ^next
^next:
  return
}

// -----

// expected-error@+1 {{'func.func' op cannot take argument 1 of type 'f32': arguments are memrefs with strides, offset 0 or ?, and elements of whole bytes}}
func.func @scalar_argument(%x: memref<4xf32>, %scale: f32) {
  return
}

// -----

// expected-error@+1 {{cannot take argument 0 of type 'memref<*xf32>'}}
func.func @unranked(%x: memref<*xf32>) {
  return
}

// -----

// expected-error@+1 {{cannot take argument 0 of type 'memref<4xi4>'}}
func.func @half_bytes(%x: memref<4xi4>) {
  return
}

// -----

// expected-error@+1 {{cannot take argument 0 of type 'memref<4xindex>'}}
func.func @index_elements(%x: memref<4xindex>) {
  return
}

// -----

// expected-error@+1 {{cannot take argument 0 of type 'memref<4xf32, strided<[1], offset: 3>>'}}
func.func @offset(%x: memref<4xf32, strided<[1], offset: 3>>) {
  return
}

// -----

// expected-error@+1 {{cannot take argument 0 of type 'memref<4x4xf32, affine_map<(d0, d1) -> (d0 floordiv 2, d1)>>'}}
func.func @no_strides(%x: memref<4x4xf32, affine_map<(d0, d1) -> (d0 floordiv 2, d1)>>) {
  return
}

// -----

func.func @load(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'memref.load' op runs on the CPU only: the host side of a GPU program computes sizes, allocates and launches}}
  %0 = memref.load %x[%c0] : memref<4xf32>
  return
}

// -----

func.func @while(%x: memref<?xf32>) {
  %true = arith.constant true
  // expected-error@+1 {{'scf.while' op runs on the CPU only}}
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    scf.yield
  }
  return
}

// -----

func.func @unsigned_loop() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op counts without signs, which runs on the CPU only}}
  scf.for unsigned %i = %c0 to %c1 step %c1 {
  }
  return
}

// -----

func.func @choice_of_floats(%x: memref<?xf32>) {
  %true = arith.constant true
  %a = arith.constant 1.0 : f32
  // expected-error@+1 {{'scf.if' op cannot pass on value 0 of type 'f32': the host passes on memrefs with strides, index, i1, i32 and i64}}
  %r = scf.if %true -> f32 {
    scf.yield %a : f32
  } else {
    scf.yield %a : f32
  }
  return
}

// -----

func.func @choice_of_argument(%x: memref<4xf32>, %n: memref<?xf32>) -> memref<4xf32> {
  %c0 = arith.constant 0 : index
  %size = memref.dim %n, %c0 : memref<?xf32>
  %few = arith.cmpi slt, %size, %c0 : index
  // expected-error@+1 {{'scf.if' op chooses with result 0 between memory that the function returns and other memory: allocate it in both branches}}
  %r = scf.if %few -> memref<4xf32> {
    scf.yield %x : memref<4xf32>
  } else {
    %o = memref.alloc() : memref<4xf32>
    scf.yield %o : memref<4xf32>
  }
  return %r : memref<4xf32>
}

// -----

// Both might be needed at the same time.
func.func @choice_of_outer(%n: memref<?xf32>) -> memref<4xf32> {
  %c0 = arith.constant 0 : index
  %size = memref.dim %n, %c0 : memref<?xf32>
  %few = arith.cmpi slt, %size, %c0 : index
  %first = memref.alloc() : memref<4xf32>
  // expected-error@+1 {{'scf.if' op chooses with result 0 between memory that the function returns and other memory: allocate it in both branches}}
  %r = scf.if %few -> memref<4xf32> {
    scf.yield %first : memref<4xf32>
  } else {
    %o = memref.alloc() : memref<4xf32>
    scf.yield %o : memref<4xf32>
  }
  return %r : memref<4xf32>
}

// -----

func.func @carried_result() -> memref<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = memref.alloc() : memref<4xf32>
  %s = memref.alloc() : memref<4xf32>
  // expected-error@+1 {{'scf.for' op carries with value 0 memory that the function returns and other memory: copy it into a memref.alloc}}
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%m = %o) -> (memref<4xf32>) {
    scf.yield %s : memref<4xf32>
  }
  return %o : memref<4xf32>
}

// -----

func.func @result_of_loop() -> memref<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = memref.alloc() : memref<4xf32>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%m = %o) -> (memref<4xf32>) {
    scf.yield %m : memref<4xf32>
  }
  // expected-error@+1 {{'func.return' op cannot return result 0: it is memory of an argument, or carried by a loop; copy it into a memref.alloc}}
  return %r : memref<4xf32>
}

// -----

func.func @alloca() {
  // expected-error@+1 {{'memref.alloca' op runs on the CPU only}}
  %0 = memref.alloca() : memref<4xf32>
  return
}

// -----

func.func @rank_of_cast(%x: memref<4xf32>) {
  %u = memref.cast %x : memref<4xf32> to memref<*xf32>
  // expected-error@+1 {{'memref.cast' op runs on the CPU only}}
  %0 = memref.cast %u : memref<*xf32> to memref<4x?xf32>
  return
}

// -----

func.func @float_arithmetic() {
  %x = arith.constant 1.0 : f32
  // expected-error@+1 {{'arith.addf' op runs on the CPU only}}
  %0 = arith.addf %x, %x : f32
  return
}

// -----

func.func @half_constant() {
  // expected-error@+1 {{'arith.constant' op runs on the CPU only}}
  %x = arith.constant 1.0 : f16
  return
}

// -----

func.func @wide_constant() {
  // expected-error@+1 {{'arith.constant' op runs on the CPU only}}
  %x = arith.constant 1 : i128
  return
}

// -----

func.func @vector(%x: memref<4xf32>) {
  // expected-error@+1 {{'arith.constant' op runs on the CPU only}}
  %0 = arith.constant dense<0> : vector<4xi32>
  return
}

// -----

func.func @narrow() {
  %x = arith.constant 300 : index
  // expected-error@+1 {{'arith.index_cast' op runs on the CPU only}}
  %0 = arith.index_cast %x : index to i8
  return
}

// -----

// As a signed number, true is -1.
func.func @sign_of_true() {
  %x = arith.constant true
  // expected-error@+1 {{'arith.index_cast' op runs on the CPU only}}
  %0 = arith.index_cast %x : i1 to index
  return
}

// -----

func.func @unsigned_narrow() {
  %x = arith.constant 3 : i32
  // expected-error@+1 {{'arith.divui' op runs on the CPU only}}
  %0 = arith.divui %x, %x : i32
  return
}

// -----

func.func @add_bits() {
  %x = arith.constant true
  // expected-error@+1 {{'arith.addi' op runs on the CPU only}}
  %0 = arith.addi %x, %x : i1
  return
}

// -----

func.func @compare_bits() {
  %x = arith.constant true
  // expected-error@+1 {{'arith.cmpi' op runs on the CPU only}}
  %0 = arith.cmpi slt, %x, %x : i1
  return
}

// -----

func.func @select_memref(%x: memref<4xf32>, %y: memref<4xf32>) {
  %c = arith.constant true
  // expected-error@+1 {{'arith.select' op runs on the CPU only}}
  %0 = arith.select %c, %x, %y : memref<4xf32>
  return
}

// -----

func.func @dim_of_unknown(%x: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  // expected-error@+1 {{'memref.dim' op runs on the CPU only unless its dimension is a constant of the memref's rank}}
  %0 = memref.dim %x, %n : memref<?x?xf32>
  return
}

// -----

func.func @dim_out_of_range(%x: memref<?x?xf32>) {
  %c7 = arith.constant 7 : index
  // expected-error@+1 {{'memref.dim' op runs on the CPU only unless its dimension is a constant of the memref's rank}}
  %0 = memref.dim %x, %c7 : memref<?x?xf32>
  return
}

// -----

func.func @column_major() {
  // expected-error@+1 {{'memref.alloc' op must allocate whole bytes in row-major order, aligned to at most 256 bytes}}
  %0 = memref.alloc() : memref<4x4xf32, strided<[1, 4]>>
  return
}

// -----

func.func @alignment() {
  // expected-error@+1 {{'memref.alloc' op must allocate whole bytes in row-major order, aligned to at most 256 bytes}}
  %0 = memref.alloc() {alignment = 512 : i64} : memref<4x4xf32>
  return
}

// -----

func.func @scalar_result() -> index {
  %0 = arith.constant 0 : index
  // expected-error@+1 {{'func.return' op cannot return result 0 of type 'index': results are memrefs}}
  return %0 : index
}

// -----

func.func @argument_as_result(%x: memref<4xf32>, %y: memref<4xf32>) -> memref<4xf32> {
  // expected-error@+1 {{'func.return' op cannot return result 0: it is memory of argument 1; copy it into a memref.alloc}}
  return %y : memref<4xf32>
}

// -----

func.func @part_as_result() -> memref<2xf32, strided<[1], offset: 2>> {
  %0 = memref.alloc() : memref<4xf32>
  %1 = memref.subview %0[2] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
  // expected-error@+1 {{'func.return' op cannot return result 0: it does not start where its memref.alloc does}}
  return %1 : memref<2xf32, strided<[1], offset: 2>>
}

// -----

func.func @same_results() -> (memref<4xf32>, memref<4xf32>) {
  %0 = memref.alloc() : memref<4xf32>
  // expected-error@+1 {{'func.return' op cannot return result 1: it is memory of another result; copy it into a memref.alloc}}
  return %0, %0 : memref<4xf32>, memref<4xf32>
}

// -----

module attributes {gpu.container_module} {
  func.func @operand() {
    %c1 = arith.constant 1 : index
    %bit = arith.constant true
    // expected-error@+1 {{'gpu.launch_func' op cannot pass kernel operand 1 of type 'i1': kernels take strided memrefs, tensor maps, index, i32, i64, f32 and f64}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index, %bit : i1)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%n: index, %bit: i1) kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @clusters() {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{'gpu.launch_func' op cannot have clusters: set the kernel's nvvm.cluster_dim instead}}
    gpu.launch_func @kernels::@k clusters in (%c1, %c1, %c1) blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @async() {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{'gpu.launch_func' op cannot be asynchronous: the kernels of a call run one after another on the stream of the call}}
    %token = gpu.launch_func async @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}

// -----

func.func @alignment_of_buffer() {
  %0 = memref.alloc() : memref<4xf32>
  // expected-error@+1 {{'memref.assume_alignment' op must be at a multiple of its bytes from the start of an argument or a memref.alloc, of the latter and under a condition at most 256}}
  %1 = memref.assume_alignment %0, 512 : memref<4xf32>
  return
}

// -----

func.func @alignment_in_branch(%x: memref<4xf32>, %n: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %n, %c0 : memref<?xf32>
  %none = arith.cmpi eq, %m, %c0 : index
  scf.if %none {
    // expected-error@+1 {{'memref.assume_alignment' op must be at a multiple of its bytes from the start of an argument or a memref.alloc, of the latter and under a condition at most 256}}
    %0 = memref.assume_alignment %x, 512 : memref<4xf32>
  }
  return
}

// -----

func.func @alignment_of_part(%x: memref<4xf32>) {
  %0 = memref.subview %x[2] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
  // expected-error@+1 {{'memref.assume_alignment' op must be at a multiple of its bytes from the start of an argument or a memref.alloc, of the latter and under a condition at most 256}}
  %1 = memref.assume_alignment %0, 16 : memref<2xf32, strided<[1], offset: 2>>
  return
}

// -----

// A tensor map's box, one size for each dimension, and its elements.
!map = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
func.func @open_box(%x: memref<?x64xf16>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf16>
  %u = memref.cast %x : memref<?x64xf16> to memref<*xf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op needs a constant as size of its box in dimension 0}}
  %map = nvgpu.tma.create.descriptor %u box[%n, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
func.func @box_rank(%x: memref<?x?x64xf16>) {
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %u = memref.cast %x : memref<?x?x64xf16> to memref<*xf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op has a box of 2 dimensions for a memref of rank 3; give a size for each, outermost first}}
  %map = nvgpu.tma.create.descriptor %u box[%c128, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x1xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @rank_0(%x: memref<f16>) {
  %u = memref.cast %x : memref<f16> to memref<*xf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op cannot be encoded: it has 0 dimensions; 1 to 5 are possible}}
  %map = nvgpu.tma.create.descriptor %u box[] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
func.func @large_box(%x: memref<?x64xf16>) {
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %u = memref.cast %x : memref<?x64xf16> to memref<*xf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op cannot be encoded: the box has a size of 512 in dimension 0; 1 to 256 are possible}}
  %map = nvgpu.tma.create.descriptor %u box[%c512, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x128xf16, 3>, swizzle = none, l2promo = l2promo_256b, oob = zero, interleave = none>
func.func @elements_of_box(%x: memref<?x64xf16>) {
  %c64 = arith.constant 64 : index
  %u = memref.cast %x : memref<?x64xf16> to memref<*xf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op has a box of 4096 elements, but copies to 'memref<64x128xf16, 3>', which has 8192}}
  %map = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x128xf16, 3>, swizzle = none, l2promo = l2promo_256b, oob = zero, interleave = none>
func.func @element_type(%x: memref<?x64xbf16>) {
  %c64 = arith.constant 64 : index
  %u = memref.cast %x : memref<?x64xbf16> to memref<*xbf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op cannot copy elements of type 'bf16' to 'memref<64x128xf16, 3>'}}
  %map = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xbf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x128xi16, 3>, swizzle = none, l2promo = l2promo_256b, oob = zero, interleave = none>
func.func @no_element_type(%x: memref<?x64xi16>) {
  %c64 = arith.constant 64 : index
  %u = memref.cast %x : memref<?x64xi16> to memref<*xi16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op cannot be of elements of type 'i16': tensor maps have i8, i32, i64, f16, bf16, f32 and f64}}
  %map = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xi16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = none, l2promo = l2promo_256b, oob = nan, interleave = none>
func.func @nan(%x: memref<?x64xf16>) {
  %c64 = arith.constant 64 : index
  %u = memref.cast %x : memref<?x64xf16> to memref<*xf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op must read zeros beyond the tensor: oob = zero}}
  %map = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = none, l2promo = l2promo_256b, oob = zero, interleave = none>
func.func @innermost(%x: memref<?x64xf16, strided<[?, 2]>>) {
  %c64 = arith.constant 64 : index
  %u = memref.cast %x : memref<?x64xf16, strided<[?, 2]>> to memref<*xf16>
  // expected-error@+1 {{'nvgpu.tma.create.descriptor' op needs a memref whose innermost stride is 1}}
  %map = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xf16> -> !map
  return
}

// -----

module attributes {gpu.container_module} {
  func.func @unranked_operand(%x: memref<?x64xf16>) {
    %c1 = arith.constant 1 : index
    %u = memref.cast %x : memref<?x64xf16> to memref<*xf16>
    // expected-error@+1 {{cannot pass kernel operand 0 of type 'memref<*xf16>'}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%u : memref<*xf16>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%x: memref<*xf16>) kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @no_wait() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    // expected-error@+1 {{'gpu.launch_func' op is dependent, but @kernels::@k does not wait; give it a tile.await_dependencies}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) {tile.dependent}
    return
  }
  gpu.module @kernels {
    gpu.func @k() kernel {
      nvvm.griddepcontrol launch_dependents
      gpu.return
    }
  }
}
