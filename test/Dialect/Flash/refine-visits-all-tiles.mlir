// A mask too complicated to determine which tiles it leaves out visits all of them,
// with a warning.
// RUN: flash-opt %s --flash-attach-target=target=emulate --flash-select-schedule="schedule=query_tile=64,key_tile=64" --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf \
// RUN:   --verify-diagnostics

#nested = affine_set<(b, h, i, j)[nq, nk] : ((i * 7 + j * 5) floordiv 31 + (i * 3 - j) mod 29 - (j * 11 + i) mod 13 >= 0)>
#more = affine_set<(b, h, i, j)[nq, nk] : ((i * 5 + j * 9) floordiv 31 + (i * 3 - j) mod 37 - (j * 11 + i) mod 13 >= 0)>
#both = #flash.all_of<[#flash.affine<#nested>, #flash.affine<#more>]>
!t = tensor<?x?x?x16xf32>

func.func @nested(%q: !t) -> !t {
  // expected-warning @below {{the mask #flash.affine<affine_set<(d0, d1, d2, d3)[s0, s1] : ((d2 * 7 + d3 * 5) floordiv 31 + (d2 * 3 - d3) mod 29 - (d3 * 11 + d2) mod 13 >= 0)>> is too complicated, or its numbers are too large, to determine which tiles of keys it leaves out: all are visited, which is right but slow}}
  %o = flash.attention %q, %q, %q mask(#flash.affine<#nested>) : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @long(%q: !t) -> !t {
  // expected-warning-re @below {{the mask #flash.all_of<{{.*}}... is too complicated, }}
  %o = flash.attention %q, %q, %q mask(#both) : (!t, !t, !t) -> !t
  return %o : !t
}

// Some of its tiles are left out.
func.func @causal(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.all_of<[#both, #flash.causal]>) : (!t, !t, !t) -> !t
  return %o : !t
}

// Each tile has work.
#keys = affine_set<(b, h, i, j)[nq, nk] : ((i + j) mod 3 == 0)>
func.func @everywhere(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#keys>) : (!t, !t, !t) -> !t
  return %o : !t
}
