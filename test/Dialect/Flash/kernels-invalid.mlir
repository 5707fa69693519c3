// RUN: flash-opt %s --split-input-file --verify-diagnostics

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  // expected-error @below {{has 1 ends and 2 distances between its positions}}
  flash.kernel over(%a) by [2, 2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    flash.store {}
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  // expected-error @below {{positions are at least 1 apart, got 0}}
  flash.kernel over(%a) by [0] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    flash.store {}
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  // expected-error @below {{the region takes the position, 1 indices, and then the outs}}
  flash.kernel over(%a) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %j: index, %t: tensor<4x8xf32>):
    flash.store {}
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  flash.kernel over(%a) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    flash.store {
      // expected-error @below {{stores nothing; flash.store has flash.store_rows, tensor.parallel_insert_slice and flash.parallel_add alone}}
      %c = arith.constant 1 : index
    }
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  flash.kernel over(%a) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    flash.store {
      // expected-error @below {{stores into what is no destination of the kernel, an argument of its region}}
      flash.store_rows %x into %o[%i] : tensor<2x8xf32> into tensor<4x8xf32>
    }
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  flash.kernel over(%a) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    flash.store {
      // expected-error @below {{a tile has a number of rows, and the columns and the elements of 'tensor<4x8xf32>', or fewer columns from column(...) on, got 'tensor<2x4xf32>'}}
      flash.store_rows %y into %t[%i] : tensor<2x4xf32> into tensor<4x8xf32>
    }
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  flash.kernel over(%a) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    flash.store {
      // expected-error @below {{the position of rows has 1 indices, one for each dimension but the columns, got 2}}
      flash.store_rows %x into %t[%i, %i] : tensor<2x8xf32> into tensor<4x8xf32>
    }
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %z: tensor<2x2xf32>) {
  flash.kernel over(%a) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    flash.store {
      // expected-error @below {{packs two heads or more of [..., H, N, D], got 2 of 'tensor<4x8xf32>'}}
      flash.store_rows %x into %t[%i] packed(2) : tensor<2x8xf32> into tensor<4x8xf32>
    }
  }
  return
}

// -----

func.func @outside(%i: index, %x: tensor<2x8xf32>, %t: tensor<4x8xf32>) {
  // expected-error @below {{stands in flash.store alone}}
  flash.store_rows %x into %t[%i] : tensor<2x8xf32> into tensor<4x8xf32>
  return
}

// -----

func.func @rows(%b: index, %h: index, %n: index, %x: tensor<?x4x?x8xf16>, %o: tensor<?x4x?x8xf16>) {
  // expected-error @below {{over the rows of a view has a grid that ends in (batch, head, row), of one batch at a time, and a view in memory such as flash.unpack gives}}
  flash.kernel over(%b, %h, %n) by [1, 1, 16] rows(%x : tensor<?x4x?x8xf16>) outs(%o : tensor<?x4x?x8xf16>) {
  ^bb0(%0: index, %1: index, %2: index, %to: tensor<?x4x?x8xf16>):
    flash.store {}
  }
  return
}

// -----

func.func @order(%n: index) {
  // expected-error @below {{expected one of [linear, longest_first, snake, pairs, heads_fastest, reverse, interleaved, both_ways, backwards, halves] for an order of tiles, got: shortest_first}}
  // expected-error @below {{failed to parse Flash_OrderAttr parameter 'kind'}}
  flash.kernel over(%n) by [16] order(<shortest_first>) {
  ^bb0(%0: index):
    flash.store {}
  }
  return
}

// -----

func.func @schedule(%n: index) {
  // expected-error @below {{'flash.kernel' op a schedule of one kernel has no key 'query_tile'; its keys are warps, stages, query_stages, ctas_per_sm, features}}
  flash.kernel over(%n) by [16] schedule(<query_tile = 64, warps = 4>) {
  ^bb0(%0: index):
    flash.store {}
  }
  return
}

// -----

func.func @schedule_of_loop(%n: index) {
  // expected-error @below {{'scf.forall' op a schedule of one kernel has no key 'products'; its keys are warps, stages, query_stages, ctas_per_sm, features}}
  scf.forall (%i) in (%n) {
  } {flash.schedule = #flash.schedule<products = 5>}
  return
}

// -----

func.func @columns(%t: tensor<2x8xf32>, %o: tensor<4x8xf32>, %i: index) -> tensor<4x8xf32> {
  %r = flash.kernel over(%i) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%0: index, %out: tensor<4x8xf32>):
    flash.store {
      // expected-error @below {{elements of 'tensor<4x8xf32>', or fewer columns from column(...) on, got 'tensor<2x8xf32>'}}
      flash.store_rows %t into %out[%0] column(%i) : tensor<2x8xf32> into tensor<4x8xf32>
    }
  }
  return %r : tensor<4x8xf32>
}

// -----

func.func @no_grid(%o: tensor<4x8xf32>) {
  // expected-error @below {{is over a grid of one dimension or more, got none}}
  flash.kernel over() by [] outs(%o : tensor<4x8xf32>) {
  ^bb0(%t: tensor<4x8xf32>):
    flash.store {}
  }
  return
}

// -----

// A slice of a destination may be where a loop has its sums, which it clears before; nothing else is known of its elements.
func.func @slice(%a: index, %o: tensor<4x8xf32>, %x: tensor<2x8xf32>) {
  flash.kernel over(%a) by [2] outs(%o : tensor<4x8xf32>) {
  ^bb0(%i: index, %t: tensor<4x8xf32>):
    %zero = arith.constant 0.0 : f32
    %s = tensor.extract_slice %t[%i, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%s : tensor<2x8xf32>) -> tensor<2x8xf32>
    // expected-error @below {{reads a destination of the kernel, into which its positions store; read what it starts from, outs(...) of the kernel}}
    %sum = linalg.add ins(%x, %s : tensor<2x8xf32>, tensor<2x8xf32>) outs(%cleared : tensor<2x8xf32>) -> tensor<2x8xf32>
    flash.store {
      flash.store_rows %sum into %t[%i] : tensor<2x8xf32> into tensor<4x8xf32>
    }
  }
  return
}
