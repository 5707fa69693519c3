// Choices and loops of the host: launches and memory in them, memory that is chosen,
// and a result that is allocated in both branches.
!x = memref<?x64xf32, strided<[?, 1], offset: ?>>
module attributes {gpu.container_module} {
  func.func @attention(%x: !x, %y: memref<?xf32>, %z: memref<?xf32, strided<[?], offset: ?>>) -> (memref<?x64xf32>, memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c100 = arith.constant 100 : index
    %n = memref.dim %x, %c0 : !x
    %m = memref.dim %y, %c0 : memref<?xf32>
    %step = memref.dim %z, %c0 : memref<?xf32, strided<[?], offset: ?>>
    %few = arith.cmpi slt, %n, %c100 : index

    // A version for few rows, which counts on what it is chosen for.
    %factor, %rows, %o = scf.if %few -> (i32, !x, memref<?x64xf32>) {
      %one = arith.constant 1 : i32
      %even = arith.remui %n, %c2 : index
      %is_even = arith.cmpi eq, %even, %c0 : index
      cf.assert %is_even, "few rows are even"
      %aligned = memref.assume_alignment %x, 64 : !x
      %o = memref.alloc(%n) {alignment = 32 : i64} : memref<?x64xf32>
      scf.yield %one, %aligned, %o : i32, !x, memref<?x64xf32>
    } else {
      %three = arith.constant 3 : i32
      %half = arith.divui %n, %c2 : index
      %part = memref.subview %x[%half, 0] [%half, 64] [1, 1] : !x to !x
      %scratch = memref.alloc(%half) : memref<?x64xf32>
      gpu.launch_func @kernels::@many blocks in (%half, %c1, %c1) threads in (%c1, %c1, %c1)
          args(%part : !x, %scratch : memref<?x64xf32>)
      %any = memref.cast %scratch : memref<?x64xf32> to !x
      %o = memref.alloc(%n) : memref<?x64xf32>
      scf.yield %three, %any, %o : i32, !x, memref<?x64xf32>
    }
    %wide = arith.index_cast %factor : i32 to index

    // Each iteration has memory of its own, which the next one has again.
    %total = scf.for %i = %c0 to %m step %step iter_args(%sum = %c0) -> (index) {
      %size = arith.addi %i, %wide : index
      %tile = memref.alloc(%size) : memref<?xf32>
      %last = arith.cmpi sge, %i, %c2 : index
      scf.if %last {
        gpu.launch_func @kernels::@tile blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) dynamic_shared_memory_size %factor
            args(%tile : memref<?xf32>, %i : index)
      }
      %next = arith.addi %sum, %size : index
      scf.yield %next : index
    }

    // Memory that a loop carries.
    %a = memref.alloc(%m) : memref<?xf32>
    %b = memref.alloc(%m) : memref<?xf32>
    %c, %d = scf.for %i = %c0 to %wide step %c1 iter_args(%from = %a, %to = %b) -> (memref<?xf32>, memref<?xf32>) {
      gpu.launch_func @kernels::@swap blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
          args(%from : memref<?xf32>, %to : memref<?xf32>)
      scf.yield %to, %from : memref<?xf32>, memref<?xf32>
    }
    %sums = memref.alloc(%total) : memref<?xf32>
    // It may be an argument's.
    %chosen = memref.assume_alignment %rows, 128 : !x
    %strided = memref.cast %o : memref<?x64xf32> to !x
    gpu.launch_func @kernels::@last blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%chosen : !x, %strided : !x, %c : memref<?xf32>, %sums : memref<?xf32>)
    return %o, %sums : memref<?x64xf32>, memref<?xf32>
  }
  gpu.module @kernels {
    gpu.func @many(%x: !x, %s: memref<?x64xf32>) kernel {
      gpu.return
    }
    gpu.func @tile(%t: memref<?xf32>, %i: index) kernel {
      gpu.return
    }
    gpu.func @swap(%a: memref<?xf32>, %b: memref<?xf32>) kernel {
      gpu.return
    }
    gpu.func @last(%x: !x, %o: !x, %c: memref<?xf32>, %s: memref<?xf32>) kernel {
      gpu.return
    }
  }
}
