//===- IndexRange.cpp - Between which numbers an index lies ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexRange.h"

#include <algorithm>
#include <stdexcept>

using namespace flash::python;

IndexRange::Kind IndexRange::getKind(const std::string &name) {
  static const std::pair<const char *, Kind> kinds[] = {
      {"b", Kind::Batch},         {"h", Kind::Head},
      {"q", Kind::Query},         {"k", Kind::Key},
      {"nq", Kind::QueryLength},  {"nk", Kind::KeyLength},
      {"add", Kind::Add},         {"sub", Kind::Sub},
      {"mul", Kind::Mul},         {"floordiv", Kind::FloorDiv},
      {"mod", Kind::Mod},         {"minimum", Kind::Minimum},
      {"maximum", Kind::Maximum}, {"abs", Kind::Abs},
      {"", Kind::Number},
  };
  for (auto [known, kind] : kinds)
    if (name == known)
      return kind;
  throw std::invalid_argument("a range has no step '" + name + "'");
}

IndexRange::IndexRange(int dimension, const std::vector<Step> &steps,
                       std::string text)
    : dimension(dimension), text(std::move(text)) {
  for (const Step &step : steps)
    this->steps.push_back({getKind(step.name), step.number});
}

static int64_t floorDiv(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0);
}

std::optional<std::pair<int64_t, int64_t>>
IndexRange::evaluate(const PositionSizes &sizes) const {
  struct Interval {
    int64_t lo, hi;
  };
  // As many as ranges.py makes.
  constexpr size_t maxDepth = 64;
  Interval stack[maxDepth];
  size_t depth = 0;
  for (auto [kind, number] : steps) {
    if (depth == maxDepth)
      return std::nullopt;
    auto push = [&](int64_t lo, int64_t hi) { stack[depth++] = {lo, hi}; };
    auto pushPosition = [&](int64_t size) {
      push(0, size - 1);
      return size > 0;
    };
    switch (kind) {
    case Kind::Number:
      push(number, number);
      continue;
    case Kind::QueryLength:
    case Kind::KeyLength: {
      int64_t length = kind == Kind::QueryLength ? sizes.queries : sizes.keys;
      if (length < 0)
        return std::nullopt;
      push(length, length);
      continue;
    }
    case Kind::Batch:
      if (!pushPosition(sizes.batches))
        return std::nullopt;
      continue;
    case Kind::Head:
      if (!pushPosition(sizes.heads))
        return std::nullopt;
      continue;
    case Kind::Query:
      if (!pushPosition(sizes.queries))
        return std::nullopt;
      continue;
    case Kind::Key:
      if (!pushPosition(sizes.keys))
        return std::nullopt;
      continue;
    case Kind::Abs: {
      Interval &top = stack[depth - 1];
      if (top.lo < 0)
        top = {std::max<int64_t>(-top.hi, 0), std::max(-top.lo, top.hi)};
      continue;
    }
    default:
      break;
    }
    Interval right = stack[--depth], &left = stack[depth - 1];
    if ((kind == Kind::FloorDiv || kind == Kind::Mod) && right.lo <= 0)
      return std::nullopt;
    bool overflows = false;
    switch (kind) {
    case Kind::Add:
      overflows = __builtin_add_overflow(left.lo, right.lo, &left.lo) ||
                  __builtin_add_overflow(left.hi, right.hi, &left.hi);
      break;
    case Kind::Sub:
      overflows = __builtin_sub_overflow(left.lo, right.hi, &left.lo) ||
                  __builtin_sub_overflow(left.hi, right.lo, &left.hi);
      break;
    case Kind::Mul: {
      int64_t corners[4] = {};
      overflows = __builtin_mul_overflow(left.lo, right.lo, &corners[0]) ||
                  __builtin_mul_overflow(left.lo, right.hi, &corners[1]) ||
                  __builtin_mul_overflow(left.hi, right.lo, &corners[2]) ||
                  __builtin_mul_overflow(left.hi, right.hi, &corners[3]);
      auto [lo, hi] =
          std::minmax_element(std::begin(corners), std::end(corners));
      left = {*lo, *hi};
      break;
    }
    case Kind::FloorDiv:
      left = {floorDiv(left.lo, right.lo), floorDiv(left.hi, right.lo)};
      break;
    case Kind::Mod: {
      int64_t first = floorDiv(left.lo, right.lo);
      if (first == floorDiv(left.hi, right.lo))
        left = {left.lo - first * right.lo, left.hi - first * right.lo};
      else
        left = {0, right.lo - 1};
      break;
    }
    case Kind::Minimum:
      left = {std::min(left.lo, right.lo), std::min(left.hi, right.hi)};
      break;
    default:
      left = {std::max(left.lo, right.lo), std::max(left.hi, right.hi)};
      break;
    }
    if (overflows)
      return std::nullopt;
  }
  return std::pair(stack[0].lo, stack[0].hi);
}
