//===- Warpgroup.cpp - Products of a warpgroup as inline PTX --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash;

/// With up to so many steps the descriptors of queries, which many products
/// read, are kept in uniform registers. More would leave too few of these for
/// others: they are computed for each product, as the descriptors of keys and
/// values are.
constexpr size_t mostStepsInRegisters = 4;

namespace {
/// Collects the operands of an inline assembly, whose numbers follow the
/// numbers of its results.
class Assembly {
public:
  Assembly(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// The registers of vectors that the instructions change, or only write if
  /// `isRead` is not set. To be called once, before anything else.
  void addResults(ArrayRef<Value> vectors, ArrayRef<VectorType> types,
                  bool isRead) {
    for (auto [i, type] : llvm::enumerate(types)) {
      resultVectors.push_back(type);
      for (int64_t n = 0; n < type.getNumElements(); ++n) {
        resultTypes.push_back(type.getElementType());
        constraints.push_back(type.getElementType().isF32() ? "=f" : "=r");
      }
    }
    numResults = numOperands = resultTypes.size();
    if (!isRead)
      return;
    for (Value vector : vectors)
      for (Value x : unpack(vector))
        addInput(x, std::to_string(inputs.size()));
  }
  /// The number of an operand that is only read.
  size_t addInput(Value value, std::string constraint) {
    inputs.push_back(value);
    constraints.push_back(std::move(constraint));
    return numOperands++;
  }
  /// The descriptors at distances from one, as the text names them: computed
  /// inside of it, in registers that `declarations` declares, or in front.
  SmallVector<std::string> addDescriptors(Value first,
                                          ArrayRef<int64_t> offsets,
                                          StringRef name, bool isInside,
                                          std::string &declarations);
  SmallVector<Value> unpack(Value vector) {
    SmallVector<Value> elements;
    for (int64_t i = 0, n = cast<VectorType>(vector.getType()).getNumElements();
         i < n; ++i)
      elements.push_back(
          LLVM::ExtractElementOp::create(b, loc, vector, index(i)));
    return elements;
  }
  /// Emits the assembly; gives the vectors of its results.
  SmallVector<Value> create(StringRef text);
  /// "{$first, ...}"
  static std::string list(size_t first, size_t count) {
    std::string text = "{";
    for (size_t i = first; i < first + count; ++i)
      text += llvm::formatv("{0}${1}", i == first ? "" : ", ", i);
    return text + "}";
  }

private:
  Value index(int64_t i) {
    return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                    b.getI32IntegerAttr(i));
  }

  OpBuilder &b;
  Location loc;
  SmallVector<VectorType> resultVectors;
  SmallVector<Type> resultTypes;
  SmallVector<Value> inputs;
  SmallVector<std::string> constraints;
  size_t numResults = 0, numOperands = 0;
};
} // namespace

SmallVector<std::string> Assembly::addDescriptors(Value first,
                                                  ArrayRef<int64_t> offsets,
                                                  StringRef name, bool isInside,
                                                  std::string &declarations) {
  SmallVector<std::string> names;
  size_t number = isInside ? addInput(first, "l") : 0;
  for (auto [step, offset] : llvm::enumerate(offsets)) {
    if (!isInside) {
      Value constant = LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                                b.getI64IntegerAttr(offset));
      Value descriptor = LLVM::AddOp::create(b, loc, first, constant);
      names.push_back(llvm::formatv("${0}", addInput(descriptor, "l")));
    } else if (offset == 0) {
      names.push_back(llvm::formatv("${0}", number));
    } else {
      names.push_back(llvm::formatv("{0}{1}", name, step));
      declarations += llvm::formatv(".reg .b64 {0};\nadd.s64 {0}, ${1}, {2};\n",
                                    names.back(), number, offset);
    }
  }
  return names;
}

SmallVector<Value> Assembly::create(StringRef text) {
  Type type;
  if (numResults == 1)
    type = resultTypes.front();
  else if (numResults > 1)
    type = LLVM::LLVMStructType::getLiteral(b.getContext(), resultTypes);
  auto op = LLVM::InlineAsmOp::create(
      b, loc, type ? TypeRange(type) : TypeRange(), inputs, text,
      llvm::join(constraints, ","), /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr(), ArrayAttr());
  SmallVector<Value> vectors;
  size_t next = 0;
  for (VectorType vectorType : resultVectors) {
    Value vector = LLVM::PoisonOp::create(b, loc, vectorType);
    for (int64_t i = 0; i < vectorType.getNumElements(); ++i, ++next) {
      Value x = op.getResult(0);
      if (numResults > 1)
        x = LLVM::ExtractValueOp::create(b, loc, x, next);
      vector = LLVM::InsertElementOp::create(b, loc, vector, x, index(i));
    }
    vectors.push_back(vector);
  }
  return vectors;
}

namespace {
struct WarpgroupMma : ConvertOpToLLVMPattern<nvx::WarpgroupMmaOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvx::WarpgroupMmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly assembly(rewriter, op.getLoc());
    auto type = cast<VectorType>(op.getResult().getType());
    assembly.addResults(op.getC() ? ArrayRef<Value>(adaptor.getC())
                                  : ArrayRef<Value>(),
                        type, /*isRead=*/!!op.getC());
    size_t registers = type.getNumElements(), steps = op.getOffsetsB().size();
    std::string declarations;
    SmallVector<std::string> a, b;
    if (std::optional<ArrayRef<int64_t>> offsets = op.getOffsetsA()) {
      a = assembly.addDescriptors(adaptor.getA(), *offsets, "a",
                                  steps > mostStepsInRegisters, declarations);
    } else {
      SmallVector<size_t> numbers;
      for (Value x : assembly.unpack(adaptor.getA()))
        numbers.push_back(assembly.addInput(x, "r"));
      for (size_t step = 0; step < steps; ++step)
        a.push_back(Assembly::list(numbers[4 * step], 4));
    }
    b = assembly.addDescriptors(adaptor.getB(), op.getOffsetsB(), "b",
                                /*isInside=*/true, declarations);

    // Whether the instruction adds to its result is a predicate.
    std::string text = "{\n.reg .pred adds, starts;\n"
                       "setp.eq.u32 adds, 0, 0;\nsetp.ne.u32 starts, 0, 0;\n" +
                       declarations;
    bool isE4M3 = isa<Float8E4M3FNType>(op.getElementType());
    StringRef element = isE4M3                        ? "e4m3"
                        : op.getElementType().isF16() ? "f16"
                                                      : "bf16";
    // Behind the predicate: the signs of a and b, and which of the operands in
    // shared memory are transposed, where they can be.
    std::string transposed;
    if (!isE4M3)
      transposed = llvm::formatv("{0}, {1}",
                                 !op.getOffsetsA()    ? ""
                                 : op.getTransposeA() ? ", 1"
                                                      : ", 0",
                                 op.getTransposeB() ? 1 : 0);
    for (size_t step = 0; step < steps; ++step)
      text += llvm::formatv(
          "wgmma.mma_async.sync.aligned.m64n{0}k{1}.f32.{2}.{2} {3}, {4}, {5}, "
          "{6}, 1, 1{7};\n",
          2 * registers, isE4M3 ? 32 : 16, element,
          Assembly::list(0, registers), a[step], b[step],
          step == 0 && !op.getC() ? "starts" : "adds", transposed);
    rewriter.replaceOp(op, assembly.create(text + "}"));
    return success();
  }
};

struct WarpgroupWait : ConvertOpToLLVMPattern<nvx::WarpgroupWaitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvx::WarpgroupWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly assembly(rewriter, op.getLoc());
    auto types = llvm::map_to_vector(
        op.getResultTypes(), [](Type type) { return cast<VectorType>(type); });
    assembly.addResults(llvm::to_vector(adaptor.getValues()), types,
                        /*isRead=*/true);
    rewriter.replaceOp(
        op, assembly.create(llvm::formatv("wgmma.wait_group.sync.aligned {0};",
                                          op.getPending())
                                .str()));
    return success();
  }
};
} // namespace

void flash::populateWarpgroupPatterns(LLVMTypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<WarpgroupMma, WarpgroupWait>(converter);
}
