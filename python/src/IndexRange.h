//===- IndexRange.h - Between which numbers an index lies -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_INDEXRANGE_H
#define FLASH_PYTHON_INDEXRANGE_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flash::python {

/// How many batches, query heads, queries and keys there are; -1 for lengths
/// that are not known.
struct PositionSizes {
  int64_t batches, heads, queries, keys;
};

/// An index of a captured tensor: steps of a stack machine, which
/// flash_mlir/ranges.py makes from the expression.
class IndexRange {
public:
  /// One of the names and operations of ranges.py, or a number.
  struct Step {
    std::string name;
    int64_t number;
  };

  IndexRange(int dimension, const std::vector<Step> &steps, std::string text);

  /// The least and the greatest index; nothing if there is no position, or if
  /// 64 bits do not hold them.
  std::optional<std::pair<int64_t, int64_t>>
  evaluate(const PositionSizes &sizes) const;

  /// Whether it is the same number at every position.
  bool isConstant() const {
    return steps.size() == 1 && steps[0].kind == Kind::Number;
  }

  const int dimension;
  /// The expression as Python has it.
  const std::string text;

private:
  enum class Kind {
    Number,
    Batch,
    Head,
    Query,
    Key,
    QueryLength,
    KeyLength,
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Minimum,
    Maximum,
    Abs,
  };
  struct Operation {
    Kind kind;
    int64_t number;
  };

  static Kind getKind(const std::string &name);

  std::vector<Operation> steps;
};

} // namespace flash::python

#endif // FLASH_PYTHON_INDEXRANGE_H
