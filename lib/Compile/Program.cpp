//===- Program.cpp - The program and its function -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/Program.h"

#include "flash/Compile/RunPasses.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Support/SourceCheck.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::compile;
using llvm::createStringError;
using llvm::formatv;

static llvm::Error checkTensorType(Type type, StringRef what) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !getDType(tensor.getElementType()) || tensor.getEncoding())
    return createStringError(formatv(
        "{0} has type {1}; flash-run passes ranked tensors of f16, bf16, f32, "
        "f64, i8, i16, i32 or i64",
        what, debugString(type)));
  return llvm::Error::success();
}

static llvm::Error checkSignature(func::FuncOp entry) {
  for (auto [i, type] : llvm::enumerate(entry.getArgumentTypes()))
    if (llvm::Error error = checkTensorType(
            type, formatv("argument {0} of @{1}", i, entry.getSymName()).str()))
      return error;
  for (auto [i, type] : llvm::enumerate(entry.getResultTypes()))
    if (llvm::Error error = checkTensorType(
            type, formatv("result {0} of @{1}", i, entry.getSymName()).str()))
      return error;
  if (entry.getNumResults() == 0)
    return createStringError(
        formatv("@{0} has no results; return what it computes as tensors",
                entry.getSymName()));
  return llvm::Error::success();
}

void flash::compile::inlineCalls(func::FuncOp entry) {
  // Functions that call themselves would never end.
  constexpr unsigned most = 1000;
  unsigned count = 0;
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    SmallVector<func::CallOp> calls;
    entry.walk([&](func::CallOp call) { calls.push_back(call); });
    for (func::CallOp call : calls) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (!callee || callee == entry ||
          !llvm::hasSingleElement(callee.getBody()) || ++count > most)
        continue;
      OpBuilder b(call);
      IRMapping map;
      map.map(callee.getArguments(), call.getOperands());
      Block &body = callee.getBody().front();
      for (Operation &op : body.without_terminator())
        b.clone(op, map);
      for (auto [result, value] : llvm::zip_equal(
               call.getResults(), body.getTerminator()->getOperands()))
        result.replaceAllUsesWith(map.lookupOrDefault(value));
      call.erase();
      isChanged = true;
    }
  }
}

/// The name at a location of the text, without the `%`; empty if there is none.
static StringRef getNameAt(llvm::SourceMgr &sources, Location location) {
  auto at = dyn_cast<FileLineColLoc>(location);
  unsigned buffer = sources.getMainFileID();
  if (!at || at.getFilename().getValue() !=
                 sources.getMemoryBuffer(buffer)->getBufferIdentifier())
    return "";
  llvm::SMLoc start =
      sources.FindLocForLineAndColumn(buffer, at.getLine(), at.getColumn());
  if (!start.isValid())
    return "";
  StringRef rest(start.getPointer(),
                 sources.getMemoryBuffer(buffer)->getBufferEnd() -
                     start.getPointer());
  if (!rest.consume_front("%"))
    return "";
  return rest.take_while(
      [](char c) { return llvm::isAlnum(c) || StringRef("$._-").contains(c); });
}

/// Keeps the names of functions' arguments, which the parser drops, in their
/// locations. C headers have them.
static void nameArguments(ModuleOp module, llvm::SourceMgr &sources) {
  for (auto func : module.getOps<func::FuncOp>())
    for (BlockArgument argument : func.getArguments())
      if (StringRef name = getNameAt(sources, argument.getLoc()); !name.empty())
        argument.setLoc(NameLoc::get(StringAttr::get(module.getContext(), name),
                                     argument.getLoc()));
}

/// The function of this name or, without a name, the only public one; the first
/// if `isForAll`.
static llvm::Expected<func::FuncOp> findEntry(ModuleOp module, StringRef name,
                                              bool isForAll) {
  SmallVector<std::string> names;
  func::FuncOp entry;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    bool selected = name.empty() ? func.isPublic() : func.getSymName() == name;
    if (func.isPublic())
      names.push_back(("@" + func.getSymName()).str());
    if (selected && !entry)
      entry = func;
  }
  std::string list = llvm::join(names, ", ");
  if (!name.empty() && !entry)
    return createStringError(
        formatv("there is no function @{0} with a body; the public functions "
                "are: {1}",
                name, names.empty() ? "none" : list));
  if (name.empty() && names.empty())
    return createStringError(
        "there is no function to run; write a public func.func with a body");
  if (name.empty() && names.size() > 1 && !isForAll)
    return createStringError(
        formatv("there are {0} public functions: {1}; choose one with "
                "--function=NAME",
                names.size(), list));
  return entry;
}

/// Sizes of dimensions that there are not are undefined to upstream's verifier,
/// and its passes look for them.
static LogicalResult checkDimensions(ModuleOp module) {
  WalkResult walk = module.walk([](tensor::DimOp op) -> WalkResult {
    auto type = dyn_cast<RankedTensorType>(op.getSource().getType());
    std::optional<int64_t> dim = op.getConstantIndex();
    if (!type || !dim || (*dim >= 0 && *dim < type.getRank()))
      return WalkResult::advance();
    return op.emitOpError("reads the size of dimension ")
           << *dim << " of " << type << ", whose dimensions are 0 to "
           << type.getRank() - 1;
  });
  return failure(walk.wasInterrupted());
}

llvm::Expected<Program> flash::compile::loadProgram(
    MLIRContext &context, std::unique_ptr<llvm::MemoryBuffer> file,
    const CompileOptions &options, llvm::raw_ostream &os, bool isForAll) {
  std::string name = file->getBufferIdentifier().str();
  Program program;
  program.sources = std::make_unique<llvm::SourceMgr>();
  program.sources->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  program.diagnostics = std::make_unique<SourceMgrDiagnosticHandler>(
      *program.sources, &context, os);
  // The message shows the line of the file, as it was written.
  context.printOpOnDiagnostic(false);
  // MLIR looks for the end of a dialect's attribute before it parses the
  // inside, and takes the `>` of a `>=` for that end.
  ScopedDiagnosticHandler hint(&context, [](Diagnostic &diagnostic) {
    if (StringRef(diagnostic.str()).contains("in pretty dialect name"))
      diagnostic.attachNote()
          << "if this is an affine set with '>=', give it a name before the "
             "function (#set = affine_set<...>) and write #flash.affine<#set>";
    return failure();
  });
  if (succeeded(checkSource(*program.sources, os)))
    program.module = parseSourceFile<ModuleOp>(*program.sources, &context);
  if (!program.module || failed(checkDimensions(*program.module)))
    return createStringError(formatv("'{0}' is not a valid program", name));

  // Nothing is linked, so a function without a body can only be missing.
  std::string external;
  program.module->walk([&](FunctionOpInterface func) {
    if (func.isExternal() && external.empty())
      external = func.getName().str();
  });
  if (!external.empty())
    return createStringError(formatv("@{0} is declared but has no body; "
                                     "flash-run links no other files, so "
                                     "define it here",
                                     external));
  nameArguments(*program.module, *program.sources);
  auto entry = findEntry(*program.module, options.function, isForAll);
  if (!entry)
    return entry.takeError();
  program.entry = *entry;
  if (llvm::Error error = checkSignature(program.entry))
    return error;
  if (isForAll && options.function.empty())
    for (auto func : program.module->getOps<func::FuncOp>())
      if (func.isPublic())
        if (llvm::Error error = checkSignature(func))
          return error;
  return program;
}

std::optional<SmallVector<int64_t, 4>>
flash::compile::getSizes(Value value, ArrayRef<TensorSpec> inputs) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return std::nullopt;
  if (type.hasStaticShape())
    return SmallVector<int64_t, 4>(type.getShape());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (!isa<func::FuncOp>(argument.getOwner()->getParentOp()) ||
        argument.getArgNumber() >= inputs.size())
      return std::nullopt;
    return SmallVector<int64_t, 4>(inputs[argument.getArgNumber()].shape);
  }
  Operation *op = value.getDefiningOp();
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return getSizes(cast.getSource(), inputs);
  // The reshapes of flash-expand-rank only add or drop sizes of one.
  auto reshape = [&](Value source) -> std::optional<SmallVector<int64_t, 4>> {
    auto sizes = getSizes(source, inputs);
    if (!sizes)
      return std::nullopt;
    SmallVector<int64_t, 4> result;
    llvm::erase(*sizes, 1);
    size_t next = 0;
    for (int64_t size : type.getShape()) {
      if (size != 1 && next == sizes->size())
        return std::nullopt;
      result.push_back(size == 1 ? 1 : (*sizes)[next++]);
    }
    if (next != sizes->size())
      return std::nullopt;
    return result;
  };
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return reshape(expand.getSrc());
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return reshape(collapse.getSrc());
  if (auto dequantize = dyn_cast<flash::DequantizeOp>(op))
    return getSizes(dequantize.getSource(), inputs);
  if (auto unpack = dyn_cast<flash::UnpackOp>(op)) {
    auto sizes = getSizes(unpack.getMemory(), inputs),
         offsets = getSizes(unpack.getOffsets(), inputs);
    if (!sizes || !offsets)
      return std::nullopt;
    sizes->front() = offsets->front() - 1;
    if (value == unpack.getLengths())
      sizes->truncate(1);
    return sizes;
  }
  if (auto unpage = dyn_cast<flash::UnpageOp>(op)) {
    auto sizes = getSizes(unpage.getMemory(), inputs),
         table = getSizes(unpage.getTable(), inputs);
    if (!sizes || !table)
      return std::nullopt;
    sizes->front() = table->front();
    (*sizes)[2] *= table->back();
    return sizes;
  }
  if (auto pack = dyn_cast<flash::PackOp>(op))
    return getSizes(pack.getMemory(), inputs);
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    SmallVector<int64_t, 4> sizes;
    for (OpFoldResult size : empty.getMixedSizes()) {
      std::optional<int64_t> known = getConstantIntValue(size);
      auto dim = known ? tensor::DimOp()
                       : cast<Value>(size).getDefiningOp<tensor::DimOp>();
      auto ofSource = dim && dim.getConstantIndex()
                          ? getSizes(dim.getSource(), inputs)
                          : std::nullopt;
      if (ofSource)
        known = (*ofSource)[*dim.getConstantIndex()];
      if (!known)
        return std::nullopt;
      sizes.push_back(*known);
    }
    return sizes;
  }
  if (auto attention = dyn_cast<flash::AttentionOp>(op)) {
    auto sizes = getSizes(attention.getQuery(), inputs);
    if (!sizes)
      return std::nullopt;
    sizes->pop_back();
    if (value == attention.getOutput())
      sizes->push_back(attention.getValueDim());
    return sizes;
  }
  if (auto grad = dyn_cast<flash::AttentionGradOp>(op))
    for (auto [operand, result] :
         llvm::zip_equal(grad.getDifferentiated(), grad->getResults()))
      if (value == result)
        return getSizes(operand, inputs);
  return std::nullopt;
}

llvm::Expected<OwningOpRef<ModuleOp>>
flash::compile::assumeSizes(ModuleOp program, StringRef entry,
                            ArrayRef<TensorSpec> inputs) {
  OwningOpRef<ModuleOp> module = program.clone();
  SmallVector<tensor::DimOp> dims;
  module->lookupSymbol<func::FuncOp>(entry).walk(
      [&](tensor::DimOp op) { dims.push_back(op); });
  for (tensor::DimOp op : dims) {
    std::optional<int64_t> dim = op.getConstantIndex();
    auto sizes = getSizes(op.getSource(), inputs);
    if (!dim || !sizes || *dim >= static_cast<int64_t>(sizes->size()))
      continue;
    OpBuilder b(op);
    op.replaceAllUsesWith(
        arith::ConstantIndexOp::create(b, op.getLoc(), (*sizes)[*dim])
            .getResult());
    op.erase();
  }
  // Sizes are read for attention. In slices on tiles that leave out dimensions,
  // LLVM 22's canonicalizer may take other dimensions for them (mended in
  // llvm-project#178118); then it fails or does not end.
  auto hasAttention = module->walk(
      [](flash::AttentionOpInterface) { return WalkResult::interrupt(); });
  if (!hasAttention.wasInterrupted())
    return module;
  llvm::Error error = runPasses(*module, [](OpPassManager &pm) {
    pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  });
  if (error)
    return std::move(error);
  return module;
}

template <typename Op> static bool hasAny(ModuleOp program) {
  return program.walk([](Op) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

bool flash::compile::isBlockLevel(ModuleOp program) {
  return hasAny<gpu::LaunchFuncOp>(program);
}

bool flash::compile::isTileLevel(ModuleOp program) {
  return hasAny<KernelOp>(program);
}
