//===- HostViews.cpp - Memrefs of the host as strided views ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostViews.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash;
using flash::runtime::LaunchPlan;
using flash::runtime::Opcode;
using flash::runtime::Register;

static_assert(LaunchPlan::dynamic == ShapedType::kDynamic);

//===----------------------------------------------------------------------===//
// Roots
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

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
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

  unsigned index = builder.plan.arguments.size();
  LaunchPlan::Argument &result = builder.plan.arguments.emplace_back();
  if (auto name = dyn_cast<NameLoc>(argument.getLoc()))
    result.name = name.getName().str();
  result.elementType = print(type.getElementType());
  result.elementBytes = *bytes;
  result.sizes.assign(type.getShape().begin(), type.getShape().end());
  result.strides.assign(strides.begin(), strides.end());
  result.isDense = type.getLayout().isIdentity();
  result.alignment = llvm::isPowerOf2_64(*bytes) ? *bytes : 1;

  HostView view;
  view.isArgument = view.isWhole = true;
  view.root = index;
  view.offset = builder.constant(0);
  for (unsigned d = 0; d != type.getRank(); ++d) {
    view.sizes.push_back(builder.size(index, d));
    view.strides.push_back(builder.stride(index, d));
  }
  views[argument] = std::move(view);
  return success();
}

SmallVector<Register, 4> HostViews::getDenseStrides(ArrayRef<Register> sizes) {
  SmallVector<Register, 4> strides(sizes.size());
  Register stride = builder.constant(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride = builder.create(Opcode::Mul, stride, sizes[d]);
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

void HostViews::traceResult(OpOperand &returned) {
  ReturnedBuffer buffer;
  buffer.result = returned.getOperandNumber();
  auto type = dyn_cast<MemRefType>(returned.get().getType());
  if (!type)
    return;
  for (int64_t d = 0; d < type.getRank(); ++d)
    buffer.origins.push_back({d, {}});
  bool isCollapsed = false;
  Operation *op = returned.get().getDefiningOp();
  while (op && !isa<memref::AllocOp>(op)) {
    SmallVector<StrideOrigin, 4> sources;
    if (isa<memref::CastOp>(op)) {
      sources = std::move(buffer.origins);
    } else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op);
               expand && !isCollapsed) {
      for (ArrayRef<int64_t> group : expand.getReassociationIndices()) {
        auto dim = getOnlyLongDim(expand.getResultType(), group);
        if (!dim)
          return;
        sources.push_back(buffer.origins[*dim]);
      }
    } else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op);
               collapse && !isCollapsed) {
      // What is spanned are sizes of the buffer.
      isCollapsed = true;
      for (auto [group, origin] :
           llvm::zip_equal(collapse.getReassociationIndices(), buffer.origins))
        for (size_t i = 0; i != group.size(); ++i)
          sources.push_back(
              {origin.dimension,
               llvm::to_vector<1>(ArrayRef(group).drop_front(i + 1))});
    } else {
      return;
    }
    buffer.origins = std::move(sources);
    op = op->getOperand(0).getDefiningOp();
  }
  // A cast from a memref of no rank may change it.
  if (!op || size_t(llvm::cast<memref::AllocOp>(op).getType().getRank()) !=
                 buffer.origins.size())
    return;
  LaunchPlan::Result &result = results[buffer.result];
  result.isDense = false;
  result.openStrides.assign(type.getRank(), LaunchPlan::dynamic);
  returnedBuffers[op] = std::move(buffer);
}

void HostViews::findResults(func::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    LaunchPlan::Result &result = results.emplace_back();
    result.isDense = true;
    traceResult(operand);
  }
}

const HostViews::ReturnedBuffer *
HostViews::getReturned(const HostView &view) const {
  return view.isArgument ? nullptr : returnedRoots.lookup(view.root);
}

void HostViews::chooseStrides(const ReturnedBuffer &returned, HostView &view) {
  for (auto [d, origin] : llvm::enumerate(returned.origins)) {
    Register stride =
        view.strides[origin.spanned.empty() ? d : origin.spanned.back()];
    stride = builder.resultStride(returned.result, origin.dimension, stride);
    for (int64_t spanned : origin.spanned)
      stride = builder.create(Opcode::Mul, stride, view.sizes[spanned]);
    view.strides[d] = stride;
  }
}

LogicalResult HostViews::addBuffer(memref::AllocOp op) {
  MemRefType type = op.getType();
  std::optional<int64_t> bytes = getElementBytes(type.getElementType());
  if (!bytes || !type.getLayout().isIdentity() ||
      op.getAlignment().value_or(1) > uint64_t(LaunchPlan::alignment))
    return failure();
  HostView view;
  view.isWhole = true;
  view.root = builder.plan.buffers.size();
  view.offset = builder.constant(0);
  view.sizes = scalars.getMixed(op.getMixedSizes());
  view.strides = getDenseStrides(view.sizes);
  LaunchPlan::Buffer &buffer = builder.plan.buffers.emplace_back();
  buffer.elementType = print(type.getElementType());
  buffer.elementBytes = *bytes;
  buffer.sizes = view.sizes;
  if (auto found = returnedBuffers.find(op); found != returnedBuffers.end()) {
    const ReturnedBuffer &returned = found->second;
    returnedRoots[view.root] = &returned;
    chooseStrides(returned, view);
    int64_t &alignment = results[returned.result].alignment;
    alignment = std::max<int64_t>(alignment, op.getAlignment().value_or(1));
  }
  views[op] = std::move(view);
  return success();
}

LogicalResult HostViews::assumeAlignment(memref::AssumeAlignmentOp op) {
  HostView view = get(op.getMemref());
  int64_t alignment = op.getAlignment();
  int64_t elementBytes =
      llvm::divideCeil(op.getMemref().getType().getElementTypeBitWidth(), 8);
  if (std::optional<int64_t> offset = builder.getConstant(view.offset)) {
    if (*offset * elementBytes % alignment != 0)
      return failure();
  } else {
    Register bytes = builder.create(Opcode::Mul, view.offset,
                                    builder.constant(elementBytes));
    Register rest =
        builder.create(Opcode::RemS, bytes, builder.constant(alignment));
    builder.assertTrue(
        builder.create(Opcode::Equal, rest, builder.constant(0)),
        llvm::formatv("memref.assume_alignment: a view does not start at a "
                      "multiple of {0} bytes",
                      alignment)
            .str());
  }
  if (view.isArgument) {
    int64_t &known = builder.plan.arguments[view.root].alignment;
    known = std::max(known, alignment);
  } else if (alignment > LaunchPlan::alignment) {
    return failure();
  } else if (const ReturnedBuffer *returned = getReturned(view)) {
    int64_t &known = results[returned->result].alignment;
    known = std::max(known, alignment);
  }
  views[op->getResult(0)] = std::move(view);
  return success();
}

void HostViews::addUse(Value operand, int64_t alignment, StringRef kernel) {
  auto type = dyn_cast<MemRefType>(operand.getType());
  if (!type)
    return;
  const HostView &view = get(operand);
  const ReturnedBuffer *returned = getReturned(view);
  if (!returned)
    return;
  // The kernel may count on what the type says.
  if (type.getLayout().isIdentity()) {
    results[returned->result].isDense = true;
    return;
  }
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  for (auto [d, stride] : llvm::enumerate(strides)) {
    Register actual = view.strides[d];
    if (builder.getConstant(actual))
      continue;
    if (!ShapedType::isDynamic(stride)) {
      require("gpu.launch_func", actual, stride, "stride", d);
    } else if (alignment > 1) {
      Register rest =
          builder.create(Opcode::RemS, actual, builder.constant(alignment));
      builder.assertTrue(
          builder.create(Opcode::Equal, rest, builder.constant(0)),
          llvm::formatv("the kernel '{0}' stores {1} elements at a time: the "
                        "strides of its results must be multiples of that",
                        kernel, alignment)
              .str());
    }
  }
}

void HostViews::extractMetadata(memref::ExtractStridedMetadataOp op) {
  HostView view = get(op.getSource());
  scalars.set(op.getOffset(), view.offset);
  for (auto [result, size] : llvm::zip_equal(op.getSizes(), view.sizes))
    scalars.set(result, size);
  for (auto [result, stride] : llvm::zip_equal(op.getStrides(), view.strides))
    scalars.set(result, stride);
  HostView base;
  base.isArgument = view.isArgument;
  base.root = view.root;
  base.offset = builder.constant(0);
  views[op.getBaseBuffer()] = std::move(base);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

void HostViews::require(StringRef who, Register actual, int64_t expected,
                        StringRef what, unsigned dimension) {
  Register isEqual =
      builder.create(Opcode::Equal, actual, builder.constant(expected));
  builder.assertTrue(isEqual,
                     llvm::formatv("{0}: the {1} of dimension {2} is not {3}",
                                   who, what, dimension, expected)
                         .str());
}

/// What the result's type knows and the source's does not is checked: for an
/// argument when the call starts, otherwise at this place. The rank is known
/// here even where the type does not say it.
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
  LaunchPlan::Argument *argument = view.isArgument && view.isWhole
                                       ? &builder.plan.arguments[view.root]
                                       : nullptr;
  const ReturnedBuffer *returned = view.isWhole ? getReturned(view) : nullptr;
  // The place where a stride is asked of the caller.
  auto getOpenStride = [&](unsigned d) -> int64_t * {
    if (argument)
      return &argument->strides[d];
    if (!returned || !returned->origins[d].spanned.empty())
      return nullptr;
    return &results[returned->result]
                .openStrides[returned->origins[d].dimension];
  };
  auto refine = [&](Register &value, int64_t expected, int64_t *open,
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
  SmallVector<Register, 4> offsets = scalars.getMixed(op.getMixedOffsets());
  SmallVector<Register, 4> sizes = scalars.getMixed(op.getMixedSizes());
  SmallVector<Register, 4> steps = scalars.getMixed(op.getMixedStrides());
  llvm::SmallBitVector dropped = op.getDroppedDims();
  HostView view;
  view.isArgument = source.isArgument;
  view.root = source.root;
  view.offset = source.offset;
  for (auto [d, stride] : llvm::enumerate(source.strides)) {
    Register skipped = builder.create(Opcode::Mul, offsets[d], stride);
    view.offset = builder.create(Opcode::Add, view.offset, skipped);
    if (dropped[d])
      continue;
    view.sizes.push_back(sizes[d]);
    view.strides.push_back(builder.create(Opcode::Mul, steps[d], stride));
  }
  return view;
}

HostView HostViews::reinterpret(memref::ReinterpretCastOp op) {
  const HostView &source = get(op.getSource());
  HostView view;
  view.isArgument = source.isArgument;
  view.root = source.root;
  // Counted from the root, whatever the source's offset.
  view.offset = scalars.getMixed(op.getMixedOffsets()).front();
  view.sizes = scalars.getMixed(op.getMixedSizes());
  view.strides = scalars.getMixed(op.getMixedStrides());
  return view;
}

HostView HostViews::expandShape(memref::ExpandShapeOp op) {
  HostView view = get(op.getSrc());
  SmallVector<Register, 4> sources = std::move(view.strides);
  view.isWhole = false;
  view.sizes = scalars.getMixed(op.getMixedOutputShape());
  view.strides.assign(view.sizes.size(), builder.constant(1));
  for (auto [group, source] :
       llvm::zip(op.getReassociationIndices(), sources)) {
    Register stride = source;
    for (int64_t d : llvm::reverse(group)) {
      view.strides[d] = stride;
      stride = builder.create(Opcode::Mul, stride, view.sizes[d]);
    }
  }
  return view;
}

HostView HostViews::collapseShape(memref::CollapseShapeOp op) {
  const HostView &source = get(op.getSrc());
  HostView view;
  view.isArgument = source.isArgument;
  view.root = source.root;
  view.offset = source.offset;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    Register size = builder.constant(1);
    for (int64_t d : group)
      size = builder.create(Opcode::Mul, size, source.sizes[d]);
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
