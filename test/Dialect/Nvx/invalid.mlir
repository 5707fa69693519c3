// Every rule of the verifiers, with its message.
// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @f(%d: i64) {
  // expected-error @below {{'nvx.warpgroup_mma' op multiplies f16, bf16 or f8E4M3FN, not 'f32'}}
  %s = nvx.warpgroup_mma f32 %d at [0] : i64, %d at [0] -> vector<64xf32>
  return
}

// -----

func.func @f(%d: i64) {
  // expected-error @below {{'nvx.warpgroup_mma' op needs an offset of b for each step}}
  %s = nvx.warpgroup_mma f16 %d at [0] : i64, %d at [] -> vector<64xf32>
  return
}

// -----

func.func @f(%d: i64, %a: vector<4xi32>) {
  // expected-error @below {{'nvx.warpgroup_mma' op has its first operand in registers, so it takes no offsets of a}}
  %s = nvx.warpgroup_mma f16 %a at [0] : vector<4xi32>, %d at [0] -> vector<64xf32>
  return
}

// -----

func.func @f(%d: i64, %a: vector<4xi32>) {
  // expected-error @below {{'nvx.warpgroup_mma' op has its first operand in registers, which are not transposed}}
  %s = nvx.warpgroup_mma f16 %a : vector<4xi32>, %d at [0] transpose_a -> vector<64xf32>
  return
}

// -----

func.func @f(%d: i64, %a: vector<4xi32>) {
  // expected-error @below {{'nvx.warpgroup_mma' op needs 8 registers of a, four for each step, got 'vector<4xi32>'}}
  %s = nvx.warpgroup_mma f16 %a : vector<4xi32>, %d at [0, 2] -> vector<64xf32>
  return
}

// -----

func.func @f(%d: i64) {
  // expected-error @below {{'nvx.warpgroup_mma' op needs as many offsets of a as of b, 2}}
  %s = nvx.warpgroup_mma f16 %d at [0] : i64, %d at [0, 2] -> vector<64xf32>
  return
}

// -----

func.func @f(%d: i64) {
  // expected-error @below {{'nvx.warpgroup_mma' op has 8 to 256 columns in steps of 8, two to a register; got 6 registers}}
  %s = nvx.warpgroup_mma f16 %d at [0] : i64, %d at [0] -> vector<6xf32>
  return
}

// -----

func.func @f(%d: i64) {
  // expected-error @below {{'nvx.warpgroup_mma' op has 8 to 256 columns in steps of 8, two to a register; got 132 registers}}
  %s = nvx.warpgroup_mma f16 %d at [0] : i64, %d at [0] -> vector<132xf32>
  return
}

// -----

func.func @f(%d: i64, %c: vector<32xf32>) {
  // expected-error @below {{'nvx.warpgroup_mma' op adds to registers of another type than its result: 'vector<32xf32>'}}
  %s = nvx.warpgroup_mma f16 %d at [0] : i64, %d at [0] add %c : vector<32xf32> -> vector<64xf32>
  return
}

// -----

func.func @f(%s: vector<64xf32>) {
  // expected-error @below {{'nvx.warpgroup_wait' op gives its operands again, of the same types}}
  %t = nvx.warpgroup_wait 0 %s : (vector<64xf32>) -> vector<32xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'nvx.warpgroup_wait' op attribute 'pending' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 7}}
  nvx.warpgroup_wait 8 : () -> ()
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @below {{'nvx.log2' op has no attribute 'fastmath'; it has none at all}}
  %y = nvx.log2 %x {fastmath = #arith.fastmath<fast>} : f32
  return
}

// -----

func.func @f(%d: i64) {
  // expected-error @below {{'nvx.warpgroup_mma' op has no attribute 'transpose_c'; the nearest is 'transpose_a'}}
  %s = nvx.warpgroup_mma f16 %d at [0] : i64, %d at [0] {transpose_c} -> vector<64xf32>
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'nvx.cluster' that dialect 'nvx' does not declare; it declares none}}
func.func @f() attributes {nvx.cluster = 2} {
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'nvx.shared' of argument 0; dialect 'nvx' declares none for arguments}}
func.func @f(%d: i64 {nvx.shared}) {
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'nvx.shared' of result 0; dialect 'nvx' declares none for results}}
func.func private @f() -> (i64 {nvx.shared})

// -----

func.func @f(%d: i64) {
  // expected-error @below {{'nvx.warpgroup_mma' op transposes operands of 16 bits alone, not of 'f8E4M3FN'}}
  %s = nvx.warpgroup_mma f8E4M3FN %d at [0] : i64, %d at [0] transpose_b -> vector<64xf32>
  return
}
