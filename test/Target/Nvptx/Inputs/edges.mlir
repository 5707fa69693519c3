// One operation, chosen by the size of %op, on numbers at the ends of 64 bits: an even
// number around 0 from a size, and its last bit from another.
!x = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
module attributes {gpu.container_module} {
  func.func @attention(%x: !x, %op: memref<?xf32>, %z: memref<f32>) -> (memref<?xf32>, memref<?xi64>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %middle = arith.constant 4611686018427387904 : index
    %d0 = memref.dim %x, %c0 : !x
    %d1 = memref.dim %x, %c1 : !x
    %bits = memref.dim %x, %c2 : !x
    %low = arith.remui %bits, %c2 : index
    %high = arith.divui %bits, %c2 : index
    %m0 = arith.subi %d0, %middle : index
    %e0 = arith.muli %m0, %c2 : index
    %a = arith.addi %e0, %low : index
    %m1 = arith.subi %d1, %middle : index
    %e1 = arith.muli %m1, %c2 : index
    %b = arith.addi %e1, %high : index
    %which = memref.dim %op, %c0 : memref<?xf32>
    %c_addi = arith.constant 0 : index
    %is_addi = arith.cmpi eq, %which, %c_addi : index
    %r0 = scf.if %is_addi -> (index) {
      %addi = arith.addi %a, %b : index
      scf.yield %addi : index
    } else {
      %c_subi = arith.constant 1 : index
      %is_subi = arith.cmpi eq, %which, %c_subi : index
      %r1 = scf.if %is_subi -> (index) {
        %subi = arith.subi %a, %b : index
        scf.yield %subi : index
      } else {
        %c_muli = arith.constant 2 : index
        %is_muli = arith.cmpi eq, %which, %c_muli : index
        %r2 = scf.if %is_muli -> (index) {
          %muli = arith.muli %a, %b : index
          scf.yield %muli : index
        } else {
          %c_divsi = arith.constant 3 : index
          %is_divsi = arith.cmpi eq, %which, %c_divsi : index
          %r3 = scf.if %is_divsi -> (index) {
            %divsi = arith.divsi %a, %b : index
            scf.yield %divsi : index
          } else {
            %c_ceildivsi = arith.constant 4 : index
            %is_ceildivsi = arith.cmpi eq, %which, %c_ceildivsi : index
            %r4 = scf.if %is_ceildivsi -> (index) {
              %ceildivsi = arith.ceildivsi %a, %b : index
              scf.yield %ceildivsi : index
            } else {
              %c_floordivsi = arith.constant 5 : index
              %is_floordivsi = arith.cmpi eq, %which, %c_floordivsi : index
              %r5 = scf.if %is_floordivsi -> (index) {
                %floordivsi = arith.floordivsi %a, %b : index
                scf.yield %floordivsi : index
              } else {
                %c_remsi = arith.constant 6 : index
                %is_remsi = arith.cmpi eq, %which, %c_remsi : index
                %r6 = scf.if %is_remsi -> (index) {
                  %remsi = arith.remsi %a, %b : index
                  scf.yield %remsi : index
                } else {
                  %c_divui = arith.constant 7 : index
                  %is_divui = arith.cmpi eq, %which, %c_divui : index
                  %r7 = scf.if %is_divui -> (index) {
                    %divui = arith.divui %a, %b : index
                    scf.yield %divui : index
                  } else {
                    %c_ceildivui = arith.constant 8 : index
                    %is_ceildivui = arith.cmpi eq, %which, %c_ceildivui : index
                    %r8 = scf.if %is_ceildivui -> (index) {
                      %ceildivui = arith.ceildivui %a, %b : index
                      scf.yield %ceildivui : index
                    } else {
                      %remui = arith.remui %a, %b : index
                      scf.yield %remui : index
                    }
                    scf.yield %r8 : index
                  }
                  scf.yield %r7 : index
                }
                scf.yield %r6 : index
              }
              scf.yield %r5 : index
            }
            scf.yield %r4 : index
          }
          scf.yield %r3 : index
        }
        scf.yield %r2 : index
      }
      scf.yield %r1 : index
    }
    %r = arith.index_cast %r0 : index to i64
    %o = memref.alloc(%which) : memref<?xf32>
    %p = memref.alloc() : memref<3xi64>
    %q = memref.cast %p : memref<3xi64> to memref<?xi64>
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%r : i64)
    return %o, %q : memref<?xf32>, memref<?xi64>
  }
  gpu.module @kernels {
    gpu.func @k(%r: i64) kernel {
      gpu.return
    }
  }
}
