//===- LaunchPlanOpt.cpp - Launch plans of host functions -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// flash-opt with a single pass, `test-launch-plan`, which prints the plan of
// each function to stdout, or a C header, or what calls of it do.
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/Registration.h"
#include "flash/Runtime/LaunchPlanHeader.h"
#include "flash/Target/Nvptx/ExtractLaunchPlan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace flash;
using namespace flash::runtime;

namespace {
/// An argument as text: sizes and, after a colon, strides: "2x3:3x1"; "-" for
/// rank 0. Without strides it is dense.
struct Argument {
  SmallVector<int64_t> sizes, strides;

  static SmallVector<int64_t> parseList(StringRef text) {
    SmallVector<int64_t> values;
    for (StringRef part : llvm::split(text, 'x')) {
      int64_t value;
      if (!part.getAsInteger(10, value))
        values.push_back(value);
    }
    return values;
  }

  explicit Argument(StringRef text) {
    auto [left, right] = text.split(':');
    sizes = parseList(left);
    strides = parseList(right);
    if (!right.empty()) {
      if (sizes.size() == strides.size())
        setIdleStrides(sizes, strides);
      return;
    }
    strides.assign(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;)
      strides[d - 1] = uint64_t(strides[d]) * uint64_t(sizes[d]);
  }
};

struct PrintLaunchPlan : PassWrapper<PrintLaunchPlan, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintLaunchPlan)
  PrintLaunchPlan() = default;
  PrintLaunchPlan(const PrintLaunchPlan &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-launch-plan"; }
  StringRef getDescription() const final { return "Print launch plans"; }

  Option<std::string> header{*this, "header",
                             llvm::cl::desc("Print a C header of this name")};
  Option<std::string> file{*this, "file",
                           llvm::cl::desc("The file of the kernels")};
  Option<std::string> embed{*this, "embed",
                            llvm::cl::desc("The text of the kernels")};
  Option<std::string> calls{
      *this, "calls", llvm::cl::desc("A file with the arguments of calls")};

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FailureOr<LaunchPlan> plan = extractLaunchPlan(function);
      if (failed(plan))
        return signalPassFailure();
      if (!calls.empty())
        evaluate(*plan);
      else if (header.empty())
        plan->print(llvm::outs());
      else if (llvm::Error error = printHeader(*plan)) {
        function.emitOpError(llvm::toString(std::move(error)));
        return signalPassFailure();
      }
    }
  }

  llvm::Error printHeader(const LaunchPlan &plan) {
    KernelImage image{file.empty(), file.empty() ? embed : file};
    return printCHeader(plan, header, image, /*origin=*/{}, llvm::outs());
  }

  /// Prints what call.c prints with the C header and the driver it brings.
  void evaluate(const LaunchPlan &plan) {
    auto buffer = llvm::MemoryBuffer::getFile(calls);
    if (!buffer)
      return signalPassFailure();
    SmallVector<StringRef> lines;
    (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
    Invocation call;
    for (StringRef line : lines) {
      std::vector<Argument> arguments;
      for (StringRef text : llvm::split(line, ' '))
        arguments.emplace_back(text);
      SmallVector<TensorArgument> tensors;
      for (auto [i, argument] : llvm::enumerate(arguments))
        tensors.push_back({(i + 1) << 20, argument.sizes, argument.strides});
      llvm::outs() << line << "\n";
      if (llvm::Error error = plan.prepare(tensors, call))
        llvm::outs() << "error: " << llvm::toString(std::move(error)) << "\n";
      else
        execute(plan, tensors, call);
    }
  }

  /// As the fake driver does it.
  static llvm::Expected<TensorMap> encode(const llvm::Twine &name,
                                          const TensorMapOptions &options) {
    auto getCode = [](int bytes, int unit) -> uint64_t {
      return bytes ? llvm::Log2_32(bytes / unit) : 0;
    };
    std::vector<uint64_t> words = {
        uint64_t(options.element) | getCode(options.swizzleBytes, 16) << 8 |
            getCode(options.l2PromotionBytes, 32) << 16,
        options.address};
    llvm::append_range(words, llvm::reverse(options.sizes));
    llvm::append_range(words, llvm::reverse(options.byteStrides));
    llvm::append_range(words, llvm::reverse(options.box));
    TensorMap map = {};
    llvm::copy(words, map.words);
    return map;
  }

  void execute(const LaunchPlan &plan, ArrayRef<TensorArgument> arguments,
               Invocation &call) {
    llvm::raw_ostream &os = llvm::outs();
    SmallVector<uint64_t> addresses(plan.buffers.size());
    for (auto [i, result] : llvm::enumerate(plan.results)) {
      os << "result";
      for (auto [size, stride] : llvm::zip(result.sizes, result.strides))
        os << " " << call.registers[size] << ":" << call.registers[stride];
      os << "\n";
      addresses[result.buffer] = (i + 1) << 28;
    }
    uint64_t first = uint64_t(1) << 32, end = first;
    for (auto [i, bytes] : llvm::enumerate(call.bufferBytes)) {
      if (plan.buffers[i].isResult)
        continue;
      addresses[i] = end;
      end = llvm::alignTo(end + bytes, LaunchPlan::alignment);
    }
    os << "workspace " << end - first << "\n";
    if (llvm::Error error = plan.bind(arguments, addresses, call, encode)) {
      os << "error: " << llvm::toString(std::move(error)) << "\n";
      return;
    }
    for (auto [i, launch] : llvm::enumerate(call.launches)) {
      const LaunchPlan::Launch &planned = plan.launches[launch.index];
      os << "launch " << planned.kernel;
      for (uint32_t size : launch.grid)
        os << " " << size;
      for (uint32_t size : launch.block)
        os << " " << size;
      os << " " << launch.sharedBytes;
      auto printBytes = [&](const void *bytes, size_t size) {
        StringRef text(static_cast<const char *>(bytes), size);
        os << " " << llvm::toHex(text, /*LowerCase=*/true);
      };
      if (planned.hasTensorMaps())
        for (auto [pointer, field] :
             llvm::zip_equal(plan.getPointers(call, i), planned.fields))
          printBytes(pointer, getBytes(field.abi.type));
      else
        printBytes(call.parameters.data() + launch.firstByte,
                   planned.parameterBytes);
      os << "\n";
    }
  }
};
} // namespace

int main(int argc, char **argv) {
  PassRegistration<PrintLaunchPlan>();
  DialectRegistry registry;
  registerAllDialects(registry);
  return asMainReturnCode(
      MlirOptMain(argc, argv, "launch plans of host functions\n", registry));
}
