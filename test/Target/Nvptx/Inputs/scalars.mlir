// Every scalar operation, on x = size 0 - 1000 and y = size 1 - 1000 of the first
// argument; the kernel takes the results.
module attributes {gpu.container_module} {
  func.func @attention(
      %a: memref<?x?xi16, strided<[?, ?], offset: ?>>, %b: memref<?xi8>, %c: memref<i1>)
      -> (memref<?xi8>, memref<4xf64>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1000 = arith.constant 1000 : index
    %minus = arith.constant -9223372036854775808 : i64
    %real = arith.constant -2.0 : f64
    %true = arith.constant true
    %i = memref.dim %a, %c0 : memref<?x?xi16, strided<[?, ?], offset: ?>>
    %j = memref.dim %a, %c1 : memref<?x?xi16, strided<[?, ?], offset: ?>>
    %xi = arith.subi %i, %c1000 : index
    %yi = arith.subi %j, %c1000 : index
    %x = arith.index_cast %xi : index to i64
    %y = arith.index_cast %yi : index to i64
    %n = arith.index_cast %xi : index to i32
    %m = arith.trunci %y : i64 to i32
    %addi = arith.addi %x, %y : i64
    %subi = arith.subi %x, %y : i64
    %muli = arith.muli %x, %y : i64
    %divsi = arith.divsi %x, %y : i64
    %divui = arith.divui %x, %y : i64
    %ceildivsi = arith.ceildivsi %x, %y : i64
    %ceildivui = arith.ceildivui %x, %y : i64
    %floordivsi = arith.floordivsi %x, %y : i64
    %remsi = arith.remsi %x, %y : i64
    %remui = arith.remui %x, %y : i64
    %minsi = arith.minsi %x, %y : i64
    %minui = arith.minui %x, %y : i64
    %maxsi = arith.maxsi %x, %y : i64
    %maxui = arith.maxui %x, %y : i64
    %andi = arith.andi %x, %y : i64
    %ori = arith.ori %x, %y : i64
    %xori = arith.xori %x, %y : i64
    %narrow_addi = arith.addi %n, %m : i32
    %narrow_divsi = arith.divsi %n, %m : i32
    %narrow_maxui = arith.maxui %n, %m : i32
    %wide = arith.extsi %narrow_addi : i32 to i64
    %eq = arith.cmpi eq, %x, %y : i64
    %eq_bit = arith.extui %eq : i1 to i32
    %ne = arith.cmpi ne, %x, %y : i64
    %ne_bit = arith.extui %ne : i1 to i32
    %slt = arith.cmpi slt, %x, %y : i64
    %slt_bit = arith.extui %slt : i1 to i32
    %sle = arith.cmpi sle, %x, %y : i64
    %sle_bit = arith.extui %sle : i1 to i32
    %sgt = arith.cmpi sgt, %x, %y : i64
    %sgt_bit = arith.extui %sgt : i1 to i32
    %sge = arith.cmpi sge, %x, %y : i64
    %sge_bit = arith.extui %sge : i1 to i32
    %ult = arith.cmpi ult, %x, %y : i64
    %ult_bit = arith.extui %ult : i1 to i32
    %ule = arith.cmpi ule, %x, %y : i64
    %ule_bit = arith.extui %ule : i1 to i32
    %ugt = arith.cmpi ugt, %x, %y : i64
    %ugt_bit = arith.extui %ugt : i1 to i32
    %uge = arith.cmpi uge, %x, %y : i64
    %uge_bit = arith.extui %uge : i1 to i32
    %not = arith.xori %slt, %true : i1
    %both = arith.andi %not, %ule : i1
    %select = arith.select %both, %x, %minus : i64
    %index = arith.index_castui %both : i1 to index
    %affine = affine.apply affine_map<(d0)[s0] -> ((d0 * 2 + s0) mod 7 - d0 floordiv 3 + s0 ceildiv 5 + 1)>(%xi)[%yi]
    %max = affine.max affine_map<(d0, d1) -> (d0, d1 + 4, 0)>(%xi, %yi)
    %o = memref.alloc(%i) : memref<?xi8>
    %e = memref.alloc() : memref<4xf64>
    gpu.launch_func @kernels::@scalars blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(
        %addi : i64, %subi : i64, %muli : i64, %divsi : i64, %divui : i64, %ceildivsi : i64, %ceildivui : i64, %floordivsi : i64, %remsi : i64, %remui : i64, %minsi : i64, %minui : i64, %maxsi : i64, %maxui : i64, %andi : i64, %ori : i64, %xori : i64, %narrow_addi : i32, %narrow_divsi : i32, %narrow_maxui : i32, %wide : i64, %eq_bit : i32, %ne_bit : i32, %slt_bit : i32, %sle_bit : i32, %sgt_bit : i32, %sge_bit : i32, %ult_bit : i32, %ule_bit : i32, %ugt_bit : i32, %uge_bit : i32, %select : i64, %index : index, %affine : index, %max : index, %minus : i64, %real : f64)
    return %o, %e : memref<?xi8>, memref<4xf64>
  }
  gpu.module @kernels {
    gpu.func @scalars(%a0: i64, %a1: i64, %a2: i64, %a3: i64, %a4: i64, %a5: i64, %a6: i64, %a7: i64, %a8: i64, %a9: i64, %a10: i64, %a11: i64, %a12: i64, %a13: i64, %a14: i64, %a15: i64, %a16: i64, %a17: i32, %a18: i32, %a19: i32, %a20: i64, %a21: i32, %a22: i32, %a23: i32, %a24: i32, %a25: i32, %a26: i32, %a27: i32, %a28: i32, %a29: i32, %a30: i32, %a31: i64, %a32: index, %a33: index, %a34: index, %a35: i64, %a36: f64) kernel {
      gpu.return
    }
  }
}
