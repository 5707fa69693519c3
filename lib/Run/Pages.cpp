//===- Pages.cpp - Inputs of sequences that lie in pages ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Pages.h"

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/RandomInputs.h"
#include "flash/Support/StripCasts.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash::run;

namespace {
/// An operation over inputs.
struct PagedInput {
  unsigned table, memory, lengths;
  int64_t page;
};
} // namespace

static SmallVector<PagedInput> getPagedInputs(func::FuncOp entry) {
  SmallVector<PagedInput> all;
  entry.walk([&](flash::UnpageOp op) {
    auto table = dyn_cast<BlockArgument>(flash::stripCasts(op.getTable())),
         memory = dyn_cast<BlockArgument>(flash::stripCasts(op.getMemory())),
         lengths = dyn_cast<BlockArgument>(flash::stripCasts(op.getLengths()));
    if (table && memory && lengths)
      all.push_back({table.getArgNumber(), memory.getArgNumber(),
                     lengths.getArgNumber(), op.getPageRows()});
  });
  return all;
}

bool flash::run::areInPages(func::FuncOp entry, unsigned argument) {
  return llvm::any_of(getPagedInputs(entry), [&](const PagedInput &input) {
    return input.table == argument || input.memory == argument;
  });
}

/// Calls `visit` with each entry of the table at which a sequence has rows, and
/// how many of them the page has.
static void forEachPage(
    const PagedInput &input, ArrayRef<HostTensor> inputs,
    function_ref<void(int64_t sequence, int64_t column, int64_t rows)> visit) {
  ArrayRef<int64_t> shape = inputs[input.table].getSpec().shape;
  int64_t sequences =
      std::min(shape[0], inputs[input.lengths].getSpec().getNumElements());
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    auto length = static_cast<int64_t>(inputs[input.lengths].get(sequence));
    int64_t left = std::min(length, shape[1] * input.page);
    for (int64_t column = 0; left > 0; ++column, left -= input.page)
      visit(sequence, column, std::min(left, input.page));
  }
}

void flash::run::fillPages(func::FuncOp entry, uint64_t seed,
                           MutableArrayRef<HostTensor> inputs) {
  SmallVector<PagedInput> all = getPagedInputs(entry);
  // Keys and values may have a table in common.
  llvm::MapVector<unsigned, int64_t> pagesOfTables;
  for (const PagedInput &input : all) {
    int64_t pages = inputs[input.memory].getSpec().shape[0];
    auto [entry, isNew] = pagesOfTables.try_emplace(input.table, pages);
    entry->second = std::min(entry->second, pages);
  }
  for (auto [number, pages] : pagesOfTables) {
    HostTensor &table = inputs[number];
    std::vector<int64_t> order = permute(pages, seed, number);
    for (int64_t i = 0, e = table.getSpec().getNumElements(); i != e; ++i)
      table.set(i, -1);
    size_t next = 0;
    llvm::DenseSet<int64_t> seen;
    for (const PagedInput &input : all)
      if (input.table == number && pages > 0)
        forEachPage(input, inputs, [&](int64_t sequence, int64_t column, auto) {
          int64_t at = sequence * table.getSpec().shape[1] + column;
          if (seen.insert(at).second)
            table.set(at, order[next++ % order.size()]);
        });
  }
  llvm::MapVector<unsigned, std::vector<bool>> rowsOfMemory;
  for (const PagedInput &input : all) {
    const HostTensor &table = inputs[input.table];
    int64_t pages = inputs[input.memory].getSpec().shape[0];
    std::vector<bool> &isRow = rowsOfMemory[input.memory];
    isRow.resize(pages * input.page);
    forEachPage(input, inputs,
                [&](int64_t sequence, int64_t column, int64_t rows) {
                  int64_t page =
                      table.get(sequence * table.getSpec().shape[1] + column);
                  for (int64_t row = 0; row < rows && pages > 0; ++row)
                    isRow[page * input.page + row] = true;
                });
  }
  for (auto &[number, isRow] : rowsOfMemory) {
    HostTensor &memory = inputs[number];
    ArrayRef<int64_t> shape = memory.getSpec().shape;
    int64_t columns = shape.size() > 3 ? shape[3] : 1;
    for (int64_t i = 0, e = memory.getSpec().getNumElements(); i != e; ++i) {
      int64_t row = i / columns, page = row / (shape[1] * shape[2]);
      if (!isRow[page * shape[2] + row % shape[2]])
        memory.set(i, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

llvm::Error flash::run::verifyPages(func::FuncOp entry,
                                    ArrayRef<HostTensor> inputs) {
  std::string fault;
  for (const PagedInput &input : getPagedInputs(entry)) {
    const HostTensor &table = inputs[input.table];
    int64_t pages = inputs[input.memory].getSpec().shape[0];
    int64_t sequences = table.getSpec().shape[0],
            lengths = inputs[input.lengths].getSpec().getNumElements();
    if (lengths != sequences)
      return llvm::createStringError(
          llvm::formatv("argument {0} has a length for each of the {1} "
                        "sequences of argument {2}, got {3}",
                        input.lengths, sequences, input.table, lengths));
    forEachPage(input, inputs, [&](int64_t sequence, int64_t column, auto) {
      int64_t page = table.get(sequence * table.getSpec().shape[1] + column);
      if (fault.empty() && (page < 0 || page >= pages))
        fault = llvm::formatv(
            "argument {0} says which of the {1} pages of argument {2} a "
            "sequence has, but page {3} of sequence {4} is {5}; pages in which "
            "there are rows are from 0 and below {1}",
            input.table, pages, input.memory, column, sequence, page);
    });
  }
  return fault.empty() ? llvm::Error::success()
                       : llvm::createStringError(fault);
}
