//===- CallSizes.cpp - The sizes of a function's calls --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallSizes.h"

#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Support/StripCasts.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace flash;

// Sizes of dimensions that kernels can have.
static constexpr int64_t largestSize = std::numeric_limits<int32_t>::max();

//===----------------------------------------------------------------------===//
// What is said of calls
//===----------------------------------------------------------------------===//

static FailureOr<std::optional<SizeRange>> parseRange(StringRef text) {
  if (text == "?")
    return std::optional<SizeRange>();
  auto [first, last] = text.split("..");
  SizeRange range;
  if (first.getAsInteger(10, range.first))
    return failure();
  range.last = range.first;
  if (text.contains("..") && last.getAsInteger(10, range.last))
    return failure();
  if (range.first < 1 || range.first > range.last || range.last > largestSize)
    return failure();
  return std::optional(range);
}

FailureOr<SmallVector<Call>> flash::parseCalls(Operation *op, StringRef text) {
  SmallVector<Call> calls;
  for (StringRef ofCall : llvm::split(text, ';')) {
    Call &call = calls.emplace_back();
    call.text = ofCall;
    for (StringRef ofArgument : llvm::split(ofCall, ',')) {
      auto &sizes = call.arguments.emplace_back();
      for (StringRef size : llvm::split(ofArgument, 'x')) {
        FailureOr<std::optional<SizeRange>> range = parseRange(size);
        if (failed(range))
          return op->emitError("there are no versions for the calls '")
                 << text << "': '" << size
                 << "' is no size; write the sizes of an argument as "
                    "2x8x1..4096x64, each from 1 to "
                 << largestSize
                 << ", with ? for a size that another argument gives or that "
                    "does not matter, and semicolons between calls";
        sizes.push_back(*range);
      }
    }
  }
  return calls;
}

/// The range as it is written in calls.
static std::string str(SizeRange range) {
  std::string text = std::to_string(range.first);
  if (range.first != range.last)
    text += ".." + std::to_string(range.last);
  return text;
}

//===----------------------------------------------------------------------===//
// What schedules depend on
//===----------------------------------------------------------------------===//

const CallAxis *CallAxes::find(unsigned argument, int64_t dim) const {
  auto *axis = llvm::find_if(axes, [&](const CallAxis &axis) {
    return llvm::is_contained(axis.members, std::pair(argument, dim));
  });
  return axis == axes.end() ? nullptr : axis;
}

FailureOr<size_t> CallAxes::add(AttentionOp op, StringRef name,
                                ArrayRef<std::pair<Value, int64_t>> dims,
                                bool isExact) {
  CallAxis added;
  added.name = name.str();
  added.isExact = isExact;
  for (auto [tensor, dim] : dims) {
    // To the argument that it is a dimension of.
    for (Value at = tensor; at;) {
      int64_t size = cast<RankedTensorType>(at.getType()).getDimSize(dim);
      bool isKnown = !ShapedType::isDynamic(size);
      if (isKnown)
        added.known = size;
      if (auto argument = dyn_cast<BlockArgument>(at)) {
        if (!isKnown)
          added.members.emplace_back(argument.getArgNumber(), dim);
        at = nullptr;
      } else if (auto cast = at.getDefiningOp<tensor::CastOp>()) {
        at = cast.getSource();
      } else if (auto before = at.getDefiningOp<DequantizeOp>()) {
        at = before.getSource();
      } else if (auto before = at.getDefiningOp<AttentionOp>()) {
        at = before.getQuery();
      } else if (added.known) {
        at = nullptr;
      } else {
        return op.emitOpError("cannot have versions: its ")
               << name << " is that of a tensor that is computed";
      }
    }
  }
  // All axes that have a dimension in common are one.
  size_t number = axes.size();
  axes.push_back(std::move(added));
  for (size_t i = number; i-- > 0;) {
    CallAxis &last = axes[number];
    if (llvm::none_of(axes[i].members, [&](auto member) {
          return llvm::is_contained(last.members, member);
        }))
      continue;
    for (auto member : last.members)
      if (!llvm::is_contained(axes[i].members, member))
        axes[i].members.push_back(member);
    axes[i].isExact |= last.isExact;
    if (last.known)
      axes[i].known = last.known;
    axes.erase(axes.begin() + number);
    for (auto &[ofQuery, ofKey] : heads)
      for (size_t *axis : {&ofQuery, &ofKey})
        *axis = *axis == number ? i : *axis - (*axis > number);
    number = i;
  }
  return number;
}

/// The view of keys or values that are in pages; else null.
static UnpageOp getUnpage(Value tensor) {
  return UnpageOp::ofRows(stripCasts(tensor));
}

FailureOr<CallAxes> CallAxes::of(func::FuncOp func) {
  CallAxes result(func);
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("cannot have versions: it has branches");
  bool hasAttention = false;
  WalkResult walk = func.walk([&](AttentionOp op) {
    hasAttention = true;
    Value query = op.getQuery();
    int64_t queries = op.getQuery().getType().getRank() - 2;
    // Where keys and values have these sizes: of pages, the table has two.
    SmallVector<std::pair<Value, int64_t>> batches = {{query, 0}}, ofKeys, keys;
    bool isPaged = false;
    // Values that are columns of the keys have their sizes.
    SmallVector<Value> keysAndValues = {op.getKey()};
    if (!areColumnsOfKeys(op.getKey(), op.getValue()))
      keysAndValues.push_back(op.getValue());
    for (Value each : keysAndValues) {
      UnpageOp unpage = getUnpage(each);
      isPaged |= unpage != nullptr;
      batches.emplace_back(unpage ? unpage.getTable() : each, 0);
      ofKeys.emplace_back(unpage ? unpage.getMemory() : each, queries - 1);
      keys.emplace_back(unpage ? unpage.getTable() : each,
                        unpage ? 1 : queries);
    }
    if (op.hasBatch()) {
      if (op.getLengths())
        batches.emplace_back(op.getLengths(), 0);
      if (failed(result.add(op, "batch size", batches, /*isExact=*/false)))
        return WalkResult::interrupt();
    }
    if (op.hasHeads()) {
      SmallVector<std::pair<Value, int64_t>> ofQuery = {{query, queries - 1}};
      if (op.getSink())
        ofQuery.emplace_back(op.getSink(), 0);
      auto queryHeads =
          result.add(op, "number of query heads", ofQuery, /*isExact=*/true);
      if (failed(queryHeads))
        return WalkResult::interrupt();
      result.heads.emplace_back(*queryHeads, *queryHeads);
      auto keyHeads =
          result.add(op, "number of key heads", ofKeys, /*isExact=*/true);
      if (failed(keyHeads))
        return WalkResult::interrupt();
      result.heads.back().second = *keyHeads;
    }
    return WalkResult(
        failed(result.add(op, "number of queries", {{query, queries}},
                          /*isExact=*/false)) ||
                failed(result.add(op,
                                  isPaged ? "number of pages of a sequence"
                                          : "number of keys",
                                  keys, /*isExact=*/false))
            ? failure()
            : success());
  });
  if (walk.wasInterrupted())
    return failure();
  if (!hasAttention)
    return func.emitOpError("cannot have versions: it has no flash.attention");
  return result;
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<SizeRange>> CallAxes::match(const Call &call) const {
  auto refuse = [&] {
    func::FuncOp op = func;
    return op.emitOpError("cannot have versions for the call '")
           << call.text << "': ";
  };
  func::FuncOp op = func;
  if (call.arguments.size() > op.getNumArguments())
    return refuse() << "it has sizes of " << call.arguments.size()
                    << " arguments, the function takes "
                    << op.getNumArguments();
  SmallVector<std::optional<SizeRange>> said(axes.size());
  for (auto [number, sizes] : llvm::enumerate(call.arguments)) {
    auto type = dyn_cast<RankedTensorType>(op.getArgument(number).getType());
    if (!type || type.getRank() != static_cast<int64_t>(sizes.size()))
      return refuse() << "argument " << number << " has type "
                      << op.getArgument(number).getType();
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      if (!size)
        continue;
      if (!type.isDynamicDim(dim)) {
        if (size->first == type.getDimSize(dim) && size->first == size->last)
          continue;
        return refuse() << "argument " << number << " has type " << type;
      }
      const CallAxis *axis = find(number, dim);
      if (!axis)
        return refuse() << "no schedule depends on size " << dim
                        << " of argument " << number << "; write ?";
      std::optional<SizeRange> &before = said[axis - axes.begin()];
      if (before && str(*before) != str(*size))
        return refuse() << "it says " << str(*before) << " and " << str(*size)
                        << " of the " << axis->name;
      before = size;
    }
  }
  SmallVector<SizeRange> ranges;
  for (auto [axis, range] : llvm::zip_equal(axes, said)) {
    if (range && axis.known && str(*range) != std::to_string(*axis.known))
      return refuse() << "it says " << str(*range) << " of the " << axis.name
                      << ", which is " << *axis.known;
    if (axis.known)
      range = {*axis.known, *axis.known};
    if (!range)
      return refuse() << "it does not say the " << axis.name << " (size "
                      << axis.members.front().second << " of argument "
                      << axis.members.front().first << ")";
    ranges.push_back(*range);
  }
  return ranges;
}

LogicalResult CallAxes::verifySizes(const Call &call,
                                    ArrayRef<int64_t> sizes) const {
  func::FuncOp op = func;
  for (auto [query, key] : heads)
    if (sizes[key] == 0 || sizes[query] % sizes[key] != 0)
      return op.emitOpError("cannot have versions for the call '")
             << call.text << "': no attention has " << sizes[query]
             << " query heads on " << sizes[key] << " key heads";
  return success();
}

SmallVector<std::string> CallAxes::describe(ArrayRef<int64_t> sizes) const {
  func::FuncOp op = func;
  unsigned count = 0;
  for (const CallAxis &axis : axes)
    for (auto [argument, dim] : axis.members)
      count = std::max(count, argument + 1);
  SmallVector<std::string> arguments;
  for (unsigned number = 0; number < count; ++number) {
    SmallVector<std::string> texts;
    auto type = dyn_cast<RankedTensorType>(op.getArgument(number).getType());
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
      const CallAxis *axis = find(number, dim);
      texts.push_back(axis ? std::to_string(sizes[axis - axes.begin()]) : "?");
    }
    arguments.push_back(llvm::join(texts, "x"));
  }
  return arguments;
}
