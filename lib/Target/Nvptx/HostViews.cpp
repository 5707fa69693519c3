//===- HostViews.cpp - Memrefs of the host as strided views ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostViews.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash;
using arith::CmpIPredicate;
using flash::runtime::HostProgram;
using host::Arithmetic;

static_assert(HostProgram::dynamic == ShapedType::kDynamic);

SmallVector<Value> HostView::flatten() const {
  SmallVector<Value> values = {address, offset};
  llvm::append_range(values, sizes);
  llvm::append_range(values, strides);
  if (result)
    values.push_back(bytes);
  return values;
}

HostView HostView::rebuild(ValueRange values) const {
  HostView view;
  view.result = result;
  view.address = values[0];
  view.offset = values[1];
  values = values.drop_front(2);
  view.sizes = llvm::to_vector<4>(values.take_front(sizes.size()));
  values = values.drop_front(sizes.size());
  view.strides = llvm::to_vector<4>(values.take_front(strides.size()));
  if (result)
    view.bytes = values.back();
  return view;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The size of an element, or nothing where elements are not whole bytes.
static std::optional<int64_t> getElementBytes(Type type) {
  if (!type.isIntOrFloat())
    return std::nullopt;
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 1)
    return 1;
  return bits % 8 ? std::nullopt : std::optional<int64_t>(bits / 8);
}

LogicalResult HostViews::addArgument(BlockArgument argument) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type)
    return failure();
  std::optional<int64_t> bytes = getElementBytes(type.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!bytes || failed(type.getStridesAndOffset(strides, offset)))
    return failure();
  // The caller gives the address of the first element, and nothing in front.
  if (offset != 0 && offset != ShapedType::kDynamic)
    return failure();

  unsigned index = argument.getArgNumber();
  HostProgram::Argument &result = builder.program.arguments[index];
  if (auto name = dyn_cast<NameLoc>(argument.getLoc()))
    result.name = name.getName().str();
  result.elementType = debugString(type.getElementType());
  result.elementBytes = *bytes;
  result.sizes.assign(type.getShape().begin(), type.getShape().end());
  result.strides.assign(strides.begin(), strides.end());
  result.isDense = type.getLayout().isIdentity();
  result.alignment = llvm::isPowerOf2_64(*bytes) ? *bytes : 1;

  HostView view;
  view.argument = index;
  view.isWhole = true;
  unsigned input = builder.program.getArgumentInput(index);
  auto read = [&](int64_t known) {
    Value value = builder.input(input++);
    return ShapedType::isDynamic(known) ? value : builder.constant(known);
  };
  view.address = builder.input(input++);
  view.offset = builder.constant(0);
  for (int64_t size : result.sizes)
    view.sizes.push_back(read(size));
  for (int64_t stride : result.strides)
    view.strides.push_back(read(stride));
  views[argument] = std::move(view);
  return success();
}

SmallVector<Value, 4> HostViews::getDenseStrides(ArrayRef<Value> sizes) {
  SmallVector<Value, 4> strides(sizes.size());
  Value stride = builder.constant(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride = builder.mul(stride, sizes[d]);
  }
  return strides;
}

/// The dimension of an expanded group that has the stride of what was expanded:
/// the only one that may have several elements. Nothing if there are more.
static std::optional<int64_t> getOnlyLongDim(MemRefType type,
                                             ArrayRef<int64_t> group) {
  std::optional<int64_t> found;
  for (int64_t dim : group) {
    if (type.getDimSize(dim) == 1)
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found.value_or(group.back());
}

/// From what a view makes to what it is made of.
void HostViews::traceView(Operation *op, ReturnedBuffer &buffer) {
  SmallVector<ReturnedBuffer::StrideOrigin, 4> sources;
  if (isa<memref::CastOp, memref::AssumeAlignmentOp>(op))
    return;
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(op);
      expand && !buffer.isCollapsed) {
    for (ArrayRef<int64_t> group : expand.getReassociationIndices()) {
      auto dim = getOnlyLongDim(expand.getResultType(), group);
      buffer.hasInverse &= dim.has_value();
      sources.push_back(buffer.origins[dim.value_or(group.back())]);
    }
  } else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op);
             collapse && !buffer.isCollapsed) {
    // What is spanned are sizes of the allocation.
    buffer.isCollapsed = true;
    for (auto [group, origin] :
         llvm::zip_equal(collapse.getReassociationIndices(), buffer.origins))
      for (size_t i = 0; i != group.size(); ++i)
        sources.push_back(
            {origin.dimension,
             llvm::to_vector<1>(ArrayRef(group).drop_front(i + 1))});
  } else {
    buffer.hasInverse = false;
  }
  buffer.origins = std::move(sources);
}

void HostViews::traceResult(Value value, ReturnedBuffer buffer,
                            Region *region) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      // Another may be alive together with that of the other branch, where both
      // cannot be the memory of the result.
      if (!region->isAncestor(op->getParentRegion()))
        return;
      // A cast from a memref of no rank may change it.
      buffer.hasInverse &=
          size_t(alloc.getType().getRank()) == buffer.origins.size();
      builder.program.results[buffer.result].isDense |= !buffer.hasInverse;
      returnedBuffers.try_emplace(op, std::move(buffer));
      return;
    }
    if (auto choice = dyn_cast<scf::IfOp>(op)) {
      unsigned number = llvm::cast<OpResult>(value).getResultNumber();
      traceResult(choice.thenYield().getOperand(number), buffer,
                  &choice.getThenRegion());
      traceResult(choice.elseYield().getOperand(number), buffer,
                  &choice.getElseRegion());
      return;
    }
    if (op->getNumOperands() == 0 ||
        !isa<BaseMemRefType>(op->getOperand(0).getType()))
      return;
    if (buffer.hasInverse)
      traceView(op, buffer);
    value = op->getOperand(0);
  }
}

void HostViews::findResults(func::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      continue;
    ReturnedBuffer buffer;
    buffer.result = operand.getOperandNumber();
    for (int64_t d = 0; d < type.getRank(); ++d)
      buffer.origins.push_back({d, {}});
    builder.program.results[buffer.result].strides.assign(type.getRank(),
                                                          HostProgram::dynamic);
    traceResult(operand.get(), std::move(buffer), op->getParentRegion());
  }
}

Value HostViews::getResultStride(unsigned result, unsigned dimension,
                                 Value dense) {
  unsigned input = builder.program.getResultInput(result) + 1 +
                   builder.program.results[result].sizes.size() + dimension;
  return builder.select(builder.hasResults(), builder.input(input), dense);
}

void HostViews::chooseStrides(const ReturnedBuffer &returned, HostView &view) {
  for (auto [d, origin] : llvm::enumerate(returned.origins)) {
    Value stride =
        view.strides[origin.spanned.empty() ? d : origin.spanned.back()];
    stride = getResultStride(returned.result, origin.dimension, stride);
    for (int64_t spanned : origin.spanned)
      stride = builder.mul(stride, view.sizes[spanned]);
    view.strides[d] = stride;
  }
}

LogicalResult HostViews::addBuffer(memref::AllocOp op) {
  MemRefType type = op.getType();
  std::optional<int64_t> elementBytes = getElementBytes(type.getElementType());
  int64_t alignment = op.getAlignment().value_or(1);
  if (!elementBytes || !type.getLayout().isIdentity() ||
      alignment > HostProgram::alignment)
    return failure();
  HostView view;
  view.isWhole = true;
  view.offset = builder.constant(0);
  view.sizes = scalars.getMixed(op.getMixedSizes());
  view.strides = getDenseStrides(view.sizes);
  Value bytes = builder.countBytes(numBuffers++, *elementBytes, view.sizes);
  auto found = returnedBuffers.find(op);
  if (found == returnedBuffers.end()) {
    view.isScratch = true;
    view.address =
        host::AllocateOp::create(builder.b, builder.loc, builder.call, bytes);
    views[op] = std::move(view);
    return success();
  }
  const ReturnedBuffer &returned = found->second;
  HostProgram::Result &result = builder.program.results[returned.result];
  result.alignment = std::max(result.alignment, alignment);
  view.address = builder.input(builder.program.getResultInput(returned.result));
  view.result = returned.result;
  view.bytes = bytes;
  if (returned.hasInverse) {
    view.returned = &returned;
    chooseStrides(returned, view);
  }
  views[op] = std::move(view);
  return success();
}

LogicalResult HostViews::assumeAlignment(memref::AssumeAlignmentOp op) {
  const HostView &view = get(op.getMemref());
  int64_t alignment = op.getAlignment();
  int64_t elementBytes =
      llvm::divideCeil(op.getMemref().getType().getElementTypeBitWidth(), 8);
  auto checkMultiple = [&](Value bytes) {
    Value rest =
        builder.createOp<arith::RemUIOp>(bytes, builder.constant(alignment));
    builder.check(builder.isEqual(rest, builder.constant(0)),
                  llvm::formatv("memref.assume_alignment: a view does not "
                                "start at a multiple of {0} bytes",
                                alignment)
                      .str());
  };
  if (std::optional<int64_t> offset = builder.getConstant(view.offset)) {
    if (*offset * elementBytes % alignment != 0)
      return failure();
  } else {
    checkMultiple(builder.mul(view.offset, builder.constant(elementBytes)));
  }
  // Calls are made again with other addresses that have this in common with
  // those before, and what the code found then is taken for granted.
  if ((!view.argument || !isUnconditional) &&
      alignment > HostProgram::alignment)
    return failure();
  if ((view.argument || view.result) && isUnconditional) {
    int64_t &known = view.argument
                         ? builder.program.arguments[*view.argument].alignment
                         : builder.program.results[*view.result].alignment;
    known = std::max(known, alignment);
  } else if (!view.isScratch) {
    checkMultiple(view.address);
  }
  HostView same = view;
  views[op->getResult(0)] = std::move(same);
  return success();
}

void HostViews::addUse(Value operand, int64_t alignment, StringRef kernel) {
  auto type = dyn_cast<MemRefType>(operand.getType());
  if (!type)
    return;
  const HostView &view = get(operand);
  if (!view.result)
    return;
  // The kernel may count on what the type says.
  if (type.getLayout().isIdentity()) {
    builder.program.results[*view.result].isDense = true;
    return;
  }
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  for (auto [d, stride] : llvm::enumerate(strides)) {
    Value actual = view.strides[d];
    if (builder.getConstant(actual))
      continue;
    if (!ShapedType::isDynamic(stride)) {
      require("gpu.launch_func", actual, stride, "stride", d);
    } else if (alignment > 1) {
      Value rest =
          builder.create(Arithmetic::RemS, actual, builder.constant(alignment));
      builder.check(
          builder.isEqual(rest, builder.constant(0)),
          llvm::formatv("the kernel '{0}' stores {1} elements at a time: the "
                        "strides of its results must be multiples of that",
                        kernel, alignment)
              .str());
    }
  }
}

void HostViews::extractMetadata(memref::ExtractStridedMetadataOp op) {
  const HostView &view = get(op.getSource());
  scalars.set(op.getOffset(), view.offset);
  for (auto [result, size] : llvm::zip_equal(op.getSizes(), view.sizes))
    scalars.set(result, size);
  for (auto [result, stride] : llvm::zip_equal(op.getStrides(), view.strides))
    scalars.set(result, stride);
  HostView base = getPart(view);
  base.offset = builder.constant(0);
  views[op.getBaseBuffer()] = std::move(base);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

HostView HostViews::getPart(const HostView &source) {
  HostView view = source;
  view.isWhole = false;
  view.sizes.clear();
  view.strides.clear();
  return view;
}

void HostViews::require(StringRef who, Value actual, int64_t expected,
                        StringRef what, unsigned dimension) {
  builder.check(builder.isEqual(actual, builder.constant(expected)),
                llvm::formatv("{0}: the {1} of dimension {2} is not {3}", who,
                              what, dimension, expected)
                    .str());
}

/// What the result's type knows and the source's does not is checked: for an
/// argument when the call starts, otherwise where the cast is. The rank is
/// known here even where the type does not say it.
std::optional<HostView> HostViews::cast(memref::CastOp op) {
  HostView view = get(op.getSource());
  auto type = dyn_cast<MemRefType>(op.getType());
  if (!type)
    return view;
  if (size_t(type.getRank()) != view.sizes.size())
    return std::nullopt;
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  bool checksCall = view.isWhole && isUnconditional;
  HostProgram::Argument *argument =
      checksCall && view.argument ? &builder.program.arguments[*view.argument]
                                  : nullptr;
  const ReturnedBuffer *returned = checksCall ? view.returned : nullptr;
  // Where the stride that the caller must give is stored.
  auto getOpenStride = [&](unsigned d) -> int64_t * {
    if (argument)
      return &argument->strides[d];
    if (!returned || !returned->origins[d].spanned.empty())
      return nullptr;
    return &builder.program.results[returned->result]
                .strides[returned->origins[d].dimension];
  };
  auto refine = [&](Value &value, int64_t expected, int64_t *open,
                    StringRef what, unsigned d) {
    if (ShapedType::isDynamic(expected))
      return;
    if (open && (ShapedType::isDynamic(*open) || *open == expected))
      *open = expected;
    else
      require("memref.cast", value, expected, what, d);
    value = builder.constant(expected);
  };
  for (unsigned d = 0; d != type.getRank(); ++d) {
    refine(view.sizes[d], type.getDimSize(d),
           argument ? &argument->sizes[d] : nullptr, "size", d);
    refine(view.strides[d], strides[d], getOpenStride(d), "stride", d);
  }
  if (argument && type.getLayout().isIdentity())
    argument->isDense = true;
  return view;
}

HostView HostViews::subview(memref::SubViewOp op) {
  const HostView &source = get(op.getSource());
  SmallVector<Value, 4> offsets = scalars.getMixed(op.getMixedOffsets());
  SmallVector<Value, 4> sizes = scalars.getMixed(op.getMixedSizes());
  SmallVector<Value, 4> steps = scalars.getMixed(op.getMixedStrides());
  llvm::SmallBitVector dropped = op.getDroppedDims();
  HostView view = getPart(source);
  for (auto [d, stride] : llvm::enumerate(source.strides)) {
    Value skipped = builder.mul(offsets[d], stride);
    view.offset = builder.add(view.offset, skipped);
    if (dropped[d])
      continue;
    view.sizes.push_back(sizes[d]);
    view.strides.push_back(builder.mul(steps[d], stride));
  }
  return view;
}

HostView HostViews::reinterpret(memref::ReinterpretCastOp op) {
  const HostView &source = get(op.getSource());
  HostView view = getPart(source);
  // Counted from the root, whatever the source's offset.
  view.offset = scalars.getMixed(op.getMixedOffsets()).front();
  view.sizes = scalars.getMixed(op.getMixedSizes());
  view.strides = scalars.getMixed(op.getMixedStrides());
  return view;
}

HostView HostViews::expandShape(memref::ExpandShapeOp op) {
  HostView view = get(op.getSrc());
  SmallVector<Value, 4> sources = std::move(view.strides);
  view.isWhole = false;
  view.sizes = scalars.getMixed(op.getMixedOutputShape());
  view.strides.assign(view.sizes.size(), builder.constant(1));
  for (auto [group, source] :
       llvm::zip(op.getReassociationIndices(), sources)) {
    Value stride = source;
    for (int64_t d : llvm::reverse(group)) {
      view.strides[d] = stride;
      stride = builder.mul(stride, view.sizes[d]);
    }
  }
  return view;
}

HostView HostViews::collapseShape(memref::CollapseShapeOp op) {
  const HostView &source = get(op.getSrc());
  HostView view = getPart(source);
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    Value size = builder.constant(1);
    for (int64_t d : group)
      size = builder.mul(size, source.sizes[d]);
    view.sizes.push_back(size);
    // The stride of a single element may be any number.
    ArrayRef<int64_t> rest = group;
    while (rest.size() > 1 &&
           builder.getConstant(source.sizes[rest.back()]) == 1)
      rest = rest.drop_back();
    view.strides.push_back(source.strides[rest.back()]);
  }
  return view;
}

HostView HostViews::transpose(memref::TransposeOp op) {
  const HostView &source = get(op.getIn());
  HostView view = source;
  view.isWhole = false;
  for (auto [to, from] : llvm::enumerate(op.getPermutation().getResults())) {
    unsigned dim = llvm::cast<AffineDimExpr>(from).getPosition();
    view.sizes[to] = source.sizes[dim];
    view.strides[to] = source.strides[dim];
  }
  return view;
}

LogicalResult HostViews::translate(Operation *op) {
  if (op->getNumResults() != 1 ||
      !isa<BaseMemRefType>(op->getResult(0).getType()) ||
      op->getNumOperands() == 0 || !views.contains(op->getOperand(0)))
    return failure();
  std::optional<HostView> view =
      llvm::TypeSwitch<Operation *, std::optional<HostView>>(op)
          .Case([&](memref::CastOp op) { return cast(op); })
          .Case([&](memref::SubViewOp op) { return subview(op); })
          .Case([&](memref::ReinterpretCastOp op) { return reinterpret(op); })
          .Case([&](memref::ExpandShapeOp op) { return expandShape(op); })
          .Case([&](memref::CollapseShapeOp op) { return collapseShape(op); })
          .Case([&](memref::TransposeOp op) { return transpose(op); })
          .Default(std::nullopt);
  if (!view)
    return failure();
  views[op->getResult(0)] = std::move(*view);
  return success();
}
