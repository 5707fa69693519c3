// RUN: flash-opt %s --flash-attach-target=target=emulate --flash-select-schedule="schedule=query_tile=64,key_tile=128" --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf \
// RUN:   --canonicalize --cse --split-input-file | FileCheck %s

// Full tiles first, without mask; then the tiles on the diagonal.

// CHECK-DAG:   #[[HI:.*]] = affine_map<(d0) -> (d0 floordiv 128 + 1, 8)>
// CHECK-LABEL: func @causal(
// CHECK:         scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) =
// CHECK:           %[[HI_HERE:.*]] = affine.min #[[HI]](%[[I]])
// CHECK:           %[[FULL:.*]]:3 = scf.for %{{.*}} = %c0 to %[[FULL_END:.*]] step %c128
// CHECK:             flash.online_attention
// CHECK-NOT:           mask
// CHECK-SAME:          schedule
// CHECK:           %[[END:.*]] = affine.apply #{{.*}}(%[[HI_HERE]])
// CHECK:           scf.for %{{.*}} = %[[FULL_END]] to %[[END]] step %c128 iter_args(%{{.*}} = %[[FULL]]#0
// CHECK:             flash.online_attention
// CHECK-SAME:          mask(#flash.causal)
// CHECK-NOT:       scf.for %
func.func @causal(%q: tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal)
      : (tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16>
  return %o : tensor<2x4x1024x64xf16>
}

// -----

// Without a mask only the ragged last tile is split off: the whole tiles run
// without padding.

// CHECK-LABEL: func @ragged(
// CHECK:         scf.for %{{.*}} = %c0 to %c256 step %c128
// CHECK-NOT:       tensor.pad
// CHECK:           flash.online_attention
// CHECK-NOT:         keys
// CHECK-SAME:        schedule
// One tile is left, so its loop is gone.
// CHECK:         tensor.pad
// CHECK:           flash.online_attention
// CHECK-SAME:        keys(
func.func @ragged(%q: tensor<1x1x64x64xf16>, %k: tensor<1x1x300x64xf16>) -> tensor<1x1x64x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<1x1x64x64xf16>, tensor<1x1x300x64xf16>, tensor<1x1x300x64xf16>) -> tensor<1x1x64x64xf16>
  return %o : tensor<1x1x64x64xf16>
}

// -----

// A window has partial tiles on both sides of the full ones.

// CHECK-LABEL: func @window(
// CHECK:         flash.online_attention
// CHECK-SAME:      mask(#flash.window<left = 512, right = 0>)
// CHECK:         flash.online_attention
// CHECK-NOT:       mask
// CHECK-SAME:      schedule
// CHECK:         flash.online_attention
// CHECK-SAME:      mask(#flash.window<left = 512, right = 0>)
// CHECK-NOT:     flash.online_attention
func.func @window(%q: tensor<1x1x1024x64xf16>) -> tensor<1x1x1024x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 512, right = 0>)
      : (tensor<1x1x1024x64xf16>, tensor<1x1x1024x64xf16>, tensor<1x1x1024x64xf16>) -> tensor<1x1x1024x64xf16>
  return %o : tensor<1x1x1024x64xf16>
}

// -----

// Visited tiles that are no range: one loop computes at each tile whether to visit
// it and whether to mask it.

#far = affine_set<(b, h, i, j)[nq, nk] : (i - j - 512 >= 0)>
// CHECK-LABEL: func @union(
// CHECK:         scf.for
// CHECK:           %[[VISIT:.*]] = arith.{{.*}} : i1
// CHECK:           scf.if %{{.*}} -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
// CHECK:             scf.if
// CHECK:               flash.online_attention
// CHECK-SAME:            mask(#flash.any_of
// CHECK:             } else {
// CHECK:               flash.online_attention
// CHECK-NOT:             mask
// CHECK-SAME:            schedule
func.func @union(%q: tensor<1x1x2048x64xf16>) -> tensor<1x1x2048x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.any_of<[#flash.affine<#far>, #flash.window<left = 64, right = 0>]>)
      : (tensor<1x1x2048x64xf16>, tensor<1x1x2048x64xf16>, tensor<1x1x2048x64xf16>) -> tensor<1x1x2048x64xf16>
  return %o : tensor<1x1x2048x64xf16>
}

// -----

// Each split of the keys visits its own of the tiles in each range:
// the bounds are the next of its tiles.

// CHECK-LABEL: func @splits(
// CHECK:         scf.forall (%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK:           %[[FROM:.*]] = affine.apply #{{.*}}(%[[S]])
// CHECK:           %[[AHEAD:.*]] = arith.subi %{{.*}}, %[[S]]
// CHECK:           %[[NOT_NEGATIVE:.*]] = arith.maxsi %[[AHEAD]], %c0
// CHECK:           %[[ROUNDS:.*]] = arith.ceildivui %[[NOT_NEGATIVE]], %c4
// CHECK:           %[[STEPS:.*]] = arith.muli %[[ROUNDS]], %c4
// CHECK:           %[[NEXT:.*]] = arith.addi %[[S]], %[[STEPS]]
// CHECK:           %[[FULL_END:.*]] = affine.apply #{{.*}}(%[[NEXT]])
// CHECK:           scf.for %{{.*}} = %[[FROM]] to %[[FULL_END]] step %c512
// CHECK-NOT:         mask
// CHECK:           scf.for %{{.*}} = %[[FULL_END]] to %{{.*}} step %c512
// CHECK:             flash.online_attention
// CHECK-SAME:          mask(#flash.causal)
func.func @splits(%q: tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 128, num_splits = 4>)
      : (tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16>
  return %o : tensor<2x4x1024x64xf16>
}

// -----

// What splits have in one piece is visited in its order, also where products overlap and there is one split: which
// tiles need care depends on the other rows.

// CHECK-LABEL: func @split_keys(
// CHECK-NOT:     scf.if
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %[[FULL:.*]] step %c128
// CHECK-NOT:       mask
// CHECK:         scf.for %{{.*}} = %[[FULL]] to
// CHECK:           mask(#flash.causal)
func.func @split_keys(%q: tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal)
      schedule(<query_tile = 64, key_tile = 128, features = specialize_warps|overlap, split_keys = 1024>)
      : (tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16>
  return %o : tensor<2x4x1024x64xf16>
}

// -----

// Where products overlap, the tiles that need care come first, the last of all
// among them. A choice guards all loops by the bounds of this one.

// CHECK-LABEL: func @care_first(
// CHECK:         %[[ENTERED:.*]] = arith.cmpi slt, %[[FROM:.*]], %[[END:.*]] : index
// CHECK:         scf.if %[[ENTERED]]
// CHECK:         scf.for %{{.*}} = %[[FROM]] to %[[END]]
// CHECK:           flash.online_attention
// CHECK-SAME:        mask(#flash.window<right = 200>)
// CHECK:         scf.for %{{.*}} = %c0 to
// CHECK:           flash.online_attention
// CHECK-NOT:         mask
// CHECK-SAME:        schedule
// CHECK-NOT:     flash.online_attention
func.func @care_first(%q: tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.window<right = 200>)
      schedule(<query_tile = 128, key_tile = 128, warps = 8, stages = 2, features = specialize_warps|overlap>)
      : (tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16>
  return %o : tensor<2x4x1024x64xf16>
}

// -----

// Of square tiles on the diagonal the last one alone needs care: it is no loop.

// CHECK-LABEL: func @care_for_last(
// CHECK:         scf.if
// CHECK-NOT:     scf.for
// CHECK:           flash.online_attention
// CHECK-SAME:        mask(#flash.causal)
// CHECK:         scf.for %{{.*}} = %c0 to
// CHECK:           flash.online_attention
// CHECK-NOT:         mask
// CHECK-SAME:        schedule
// CHECK-NOT:     flash.online_attention
func.func @care_for_last(%q: tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal)
      schedule(<query_tile = 128, key_tile = 128, warps = 8, stages = 2, features = specialize_warps|overlap>)
      : (tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16>
  return %o : tensor<2x4x1024x64xf16>
}

// -----

// So it is where all queries see the first keys, too: each of the ends that the visit may have is one tile behind full ones.

// CHECK-LABEL: func @care_for_last_of_two(
// CHECK:         scf.if
// CHECK-NOT:     scf.for
// CHECK:           flash.online_attention
// CHECK-SAME:        mask(
// CHECK:         scf.for %{{.*}} = %c0 to
// CHECK:           flash.online_attention
// CHECK-NOT:         mask
// CHECK-SAME:        schedule
// CHECK-NOT:     flash.online_attention
func.func @care_for_last_of_two(%q: tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.any_of<[#flash.causal, #flash.prefix<300>]>)
      schedule(<query_tile = 128, key_tile = 128, warps = 8, stages = 2, features = specialize_warps|overlap>)
      : (tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16>
  return %o : tensor<2x4x1024x64xf16>
}

// -----

// Where both sides of a window cut tiles, one loop has all of them: the last ones, whose numbers are negative, then the first
// ones, then the others. Each step computes whether its tile needs care.

// CHECK-LABEL: func @both_ends(
// CHECK:         scf.if
// CHECK:           scf.for %[[AT:[^ ]*]] =
// CHECK:             %[[IS_LAST:.*]] = arith.cmpi slt, %[[AT]], %c0
// CHECK-NEXT:        arith.select %[[IS_LAST]]
// CHECK:             %[[IS_CUT:.*]] = arith.cmpi slt, %[[AT]], %{{.*}} : index
// CHECK:             flash.online_attention
// CHECK-SAME:          partial(%[[IS_CUT]])
// CHECK-SAME:          mask(
// CHECK-NOT:     flash.online_attention
func.func @both_ends(%q: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 1000, right = 0>)
      schedule(<query_tile = 128, key_tile = 128, warps = 8, stages = 2, features = specialize_warps|overlap>)
      : (tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Also of keys whose number is not known, which fill all tiles but the last one.

// CHECK-LABEL: func @ragged_last(
// CHECK:         scf.if
// CHECK-NOT:     scf.for
// CHECK:           flash.online_attention
// CHECK-SAME:        keys(
// CHECK:         scf.for %{{.*}} = %c0 to
// CHECK:           flash.online_attention
// CHECK-NOT:         keys(
// CHECK-SAME:        schedule
// CHECK-NOT:     flash.online_attention
func.func @ragged_last(%q: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %o = flash.attention %q, %q, %q
      schedule(<query_tile = 128, key_tile = 80, warps = 8, stages = 2, features = specialize_warps|overlap>)
      : (tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Bounds that are constants need no guard.

// CHECK-LABEL: func @no_guard(
// CHECK-NOT:     scf.if
// CHECK:         tensor.extract_slice %{{.*}}, 896, 0] [1, 1, 104, 64]
// CHECK:         scf.for %{{.*}} = %c0 to %c896
// CHECK-NOT:     scf.if
// CHECK:         return
func.func @no_guard(%q: tensor<2x4x1000x64xf16>) -> tensor<2x4x1000x64xf16> {
  %o = flash.attention %q, %q, %q schedule(<query_tile = 128, key_tile = 128, warps = 8, stages = 2, features = specialize_warps|overlap>)
      : (tensor<2x4x1000x64xf16>, tensor<2x4x1000x64xf16>, tensor<2x4x1000x64xf16>) -> tensor<2x4x1000x64xf16>
  return %o : tensor<2x4x1000x64xf16>
}
