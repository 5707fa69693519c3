//===- MaskEvaluate.cpp - Masks and their tiles at a point ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Utils/MaskTiles.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

int64_t flash::evaluate(AffineExpr expr, ArrayRef<int64_t> dims,
                        ArrayRef<int64_t> symbols) {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return cast<AffineConstantExpr>(expr).getValue();
  case AffineExprKind::DimId:
    return dims[cast<AffineDimExpr>(expr).getPosition()];
  case AffineExprKind::SymbolId:
    return symbols[cast<AffineSymbolExpr>(expr).getPosition()];
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), dims, symbols);
  int64_t rhs = evaluate(binary.getRHS(), dims, symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return llvm::mod(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    llvm_unreachable("not a binary affine expression");
  }
}

bool flash::contains(IntegerSet set, ArrayRef<int64_t> dims,
                     ArrayRef<int64_t> symbols) {
  for (auto [expr, isEq] : llvm::zip(set.getConstraints(), set.getEqFlags())) {
    int64_t value = evaluate(expr, dims, symbols);
    if (isEq ? value != 0 : value < 0)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// MaskTiles
//===----------------------------------------------------------------------===//

/// The least or greatest, over the bounds that count, of the other extreme over
/// a map's results.
static int64_t getBound(ArrayRef<TileBound> bounds, bool isLeast, int64_t none,
                        ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  std::optional<int64_t> result;
  for (TileBound bound : bounds) {
    if (bound.guard && !contains(bound.guard, dims, symbols))
      continue;
    std::optional<int64_t> value;
    for (AffineExpr expr : bound.map.getResults()) {
      int64_t next = evaluate(expr, dims, symbols);
      value = !value    ? next
              : isLeast ? std::max(*value, next)
                        : std::min(*value, next);
    }
    result = !result   ? *value
             : isLeast ? std::min(*result, *value)
                       : std::max(*result, *value);
  }
  return result.value_or(none);
}

TileRange MaskTiles::getRange(int64_t b, int64_t h, int64_t i0, int64_t nq,
                              int64_t nk) const {
  int64_t dims[] = {b, h, i0}, symbols[] = {nq, nk};
  TileRange range;
  range.lo = getBound(lo, /*isLeast=*/true, 0, dims, symbols);
  range.hi = getBound(hi, /*isLeast=*/false, 0, dims, symbols);
  range.hi = std::max(range.lo, range.hi);
  range.fullLo = range.fullHi = range.lo;
  if (!fullIsRange)
    return range;
  range.fullLo = getBound(fullLo, /*isLeast=*/false, range.lo, dims, symbols);
  range.fullLo = std::clamp(range.fullLo, range.lo, range.hi);
  range.fullHi = getBound(fullHi, /*isLeast=*/true, range.hi, dims, symbols);
  range.fullHi = std::clamp(range.fullHi, range.fullLo, range.hi);
  return range;
}

bool MaskTiles::isVisited(int64_t b, int64_t h, int64_t i0, int64_t t,
                          int64_t nq, int64_t nk) const {
  return llvm::any_of(visited, [&](IntegerSet set) {
    return contains(set, {b, h, i0, t}, {nq, nk});
  });
}

bool MaskTiles::isFull(int64_t b, int64_t h, int64_t i0, int64_t t, int64_t nq,
                       int64_t nk) const {
  return llvm::none_of(notFull, [&](IntegerSet set) {
    return contains(set, {b, h, i0, t}, {nq, nk});
  });
}

void MaskTiles::print(raw_ostream &os) const {
  auto printBounds = [&](StringRef name, ArrayRef<TileBound> bounds) {
    for (TileBound bound : bounds) {
      os << "  " << name << " " << bound.map;
      if (bound.guard)
        bound.guard.print(os << " if ");
      os << "\n";
    }
  };
  os << "tiles" << (exact ? "" : " (inexact)") << "\n";
  printBounds(visitedIsRange ? "lo     =" : "lo     <=", lo);
  printBounds(visitedIsRange ? "hi     =" : "hi     >=", hi);
  printBounds("fullLo =", fullLo);
  printBounds("fullHi =", fullHi);
  auto printSets = [&](StringRef name, ArrayRef<IntegerSet> sets) {
    for (IntegerSet set : sets) {
      set.print(os << "  " << name << " ");
      os << "\n";
    }
  };
  printSets("visited ", visited);
  printSets("not full", notFull);
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

/// True if j occurs under no division, so that a constraint has a slope in j.
static bool isLinearInKey(AffineExpr expr) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return true;
  AffineExpr lhs = binary.getLHS(), rhs = binary.getRHS();
  bool inLhs = lhs.isFunctionOfDim(3), inRhs = rhs.isFunctionOfDim(3);
  if (!inLhs && !inRhs)
    return true;
  if (expr.getKind() == AffineExprKind::Add)
    return isLinearInKey(lhs) && isLinearInKey(rhs);
  return expr.getKind() == AffineExprKind::Mul && inLhs != inRhs &&
         isLinearInKey(inLhs ? lhs : rhs);
}

/// The keys [lo, hi) of query `dims[2]` in a set whose constraints have slopes.
static std::pair<int64_t, int64_t> getKeys(IntegerSet set,
                                           MutableArrayRef<int64_t> dims,
                                           ArrayRef<int64_t> symbols) {
  int64_t lo = 0, hi = symbols[1];
  for (auto [expr, isEq] : llvm::zip(set.getConstraints(), set.getEqFlags())) {
    dims[3] = 0;
    int64_t offset = flash::evaluate(expr, dims, symbols);
    dims[3] = 1;
    int64_t slope = flash::evaluate(expr, dims, symbols) - offset;
    if (slope == 0) {
      if (isEq ? offset != 0 : offset < 0)
        return {0, 0};
      continue;
    }
    int64_t floor = llvm::divideFloorSigned(-offset, slope);
    int64_t ceil = llvm::divideCeilSigned(-offset, slope);
    if (isEq || slope > 0)
      lo = std::max(lo, ceil);
    if (isEq || slope < 0)
      hi = std::min(hi, floor + 1);
  }
  return {lo, std::max(lo, hi)};
}

int64_t flash::countUnmasked(ArrayRef<IntegerSet> mask, int64_t B, int64_t H,
                             int64_t nq, int64_t nk) {
  auto dependsOn = [&](unsigned dim) {
    return llvm::any_of(mask, [&](IntegerSet set) {
      return llvm::any_of(set.getConstraints(), [&](AffineExpr expr) {
        return expr.isFunctionOfDim(dim);
      });
    });
  };
  bool hasSlopes = llvm::all_of(mask, [](IntegerSet set) {
    return llvm::all_of(set.getConstraints(), isLinearInKey);
  });
  int64_t numB = dependsOn(0) ? B : std::min<int64_t>(B, 1);
  int64_t numH = dependsOn(1) ? H : std::min<int64_t>(H, 1);
  int64_t symbols[] = {nq, nk}, count = 0;
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t b = 0; b < numB; ++b) {
    for (int64_t h = 0; h < numH; ++h) {
      for (int64_t i = 0; i < nq; ++i) {
        int64_t dims[] = {b, h, i, 0};
        if (!hasSlopes) {
          for (dims[3] = 0; dims[3] < nk; ++dims[3])
            count += llvm::any_of(mask, [&](IntegerSet set) {
              return contains(set, dims, symbols);
            });
          continue;
        }
        ranges.clear();
        for (IntegerSet set : mask)
          ranges.push_back(getKeys(set, dims, symbols));
        llvm::sort(ranges);
        int64_t end = 0;
        for (auto [lo, hi] : ranges) {
          count += std::max<int64_t>(0, hi - std::max(lo, end));
          end = std::max(end, hi);
        }
      }
    }
  }
  if (numB)
    count *= B / numB;
  if (numH)
    count *= H / numH;
  return count;
}
