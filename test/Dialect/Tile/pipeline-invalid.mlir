// What no pipeline can run, and attributes that say nothing.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-pipeline)))'

gpu.module @m {
  gpu.func @later_stage(%x: f32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 {
      // expected-note @below {{which is of stage 1}}
      %b = arith.addf %a, %x {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : f32
      // expected-error @below {{is of stage 0 and needs what stage 1 of its iteration computes}}
      %c = arith.mulf %b, %x {tile.pipeline = #tile.pipeline<stage = 0, cluster = 1>} : f32
      scf.yield %c : f32
    }
    gpu.return
  }
}

// -----

// expected-error @below {{'builtin.module' op needs a #tile.pipeline as attribute 'tile.pipeline', got 1 : i64}}
module attributes {tile.pipeline = 1} {
}

// -----

// expected-error @below {{a pipeline has the stages 0 and 1, got 2}}
module attributes {tile.pipeline = #tile.pipeline<stage = 2, cluster = 0>} {
}

// -----

// expected-error @below {{clusters are numbered from 0 on, got -1}}
module attributes {tile.pipeline = #tile.pipeline<stage = 1, cluster = -1>} {
}
