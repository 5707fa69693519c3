// Where the analysis of a mask gives up, a map says which tiles it leaves.
// RUN: flash-run --target=cpu %s --check --function=nested --shape=0=1x1x1000x16 --schedule=query_tile=8,key_tile=8 --count-tiles 2>&1 | FileCheck %s --check-prefix=NESTED
// NESTED-NOT: warning
// NESTED: tiles: 15625 visited = 3412 full + 12213 partial
// NESTED: check: ok
// RUN: flash-run --target=cpu %s --check --function=grid --shape=0=1x1x700x16 --schedule=query_tile=32,key_tile=32 --count-tiles 2>&1 | FileCheck %s --check-prefix=GRID
// GRID-NOT: warning
// GRID: tiles: 64 visited = 0 full + 64 partial
// GRID: check: ok
#nested = affine_set<(b, h, i, j)[nq, nk]
    : (((i * 7 + j * 5) floordiv 31 + (i * 3 - j) floordiv 17) floordiv 13 - (j * 11 + i) mod 29 >= 0)>
!t = tensor<?x?x?x16xf32>
func.func @nested(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#nested>) : (!t, !t, !t) -> !t
  return %o : !t
}

#grid = affine_set<(b, h, i, j)[nq, nk]
    : (i floordiv 14 - j floordiv 14 + 2 >= 0, j floordiv 14 - i floordiv 14 + 2 >= 0,
       i mod 14 - j mod 14 + 2 >= 0, j mod 14 - i mod 14 + 2 >= 0)>
func.func @grid(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#grid>) : (!t, !t, !t) -> !t
  return %o : !t
}
