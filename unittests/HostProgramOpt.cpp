//===- HostProgramOpt.cpp - Programs of host functions --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// flash-opt with a single pass, `test-host-program`, which prints the program
// of each function to stdout, or a C header, or what calls of it do.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Pipelines/Registration.h"
#include "flash/Runtime/CHeader.h"
#include "flash/Target/Host/HostCode.h"
#include "flash/Target/Nvptx/BuildHostProgram.h"
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

struct PrintHostProgram
    : PassWrapper<PrintHostProgram, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintHostProgram)
  PrintHostProgram() = default;
  PrintHostProgram(const PrintHostProgram &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-host-program"; }
  StringRef getDescription() const final { return "Print host programs"; }

  Option<std::string> header{*this, "header",
                             llvm::cl::desc("Print a C header of this name")};
  Option<std::string> file{*this, "file",
                           llvm::cl::desc("The file of the kernels")};
  Option<std::string> embed{*this, "embed",
                            llvm::cl::desc("The text of the kernels")};
  Option<std::string> calls{
      *this, "calls", llvm::cl::desc("A file with the arguments of calls")};

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<host::HostDialect>();
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FailureOr<BuiltHostProgram> built = buildHostProgram(function);
      if (failed(built))
        return signalPassFailure();
      llvm::Error error = llvm::Error::success();
      if (!calls.empty())
        error = evaluate(*built);
      else if (!header.empty())
        error = printHeader(*built);
      else
        print(*built);
      if (error) {
        function.emitOpError(llvm::toString(std::move(error)));
        return signalPassFailure();
      }
    }
  }

  static void print(BuiltHostProgram &built) {
    built.program.print(llvm::outs());
    for (auto function : built.module->getOps<func::FuncOp>())
      llvm::outs() << function << "\n";
  }

  llvm::Error printHeader(BuiltHostProgram &built) {
    std::string text;
    llvm::raw_string_ostream(text) << *built.module;
    llvm::Expected<std::string> code = printHostCode(text, header);
    if (!code)
      return code.takeError();
    KernelImage image{file.empty(), file.empty() ? embed : file};
    return printCHeader(built.program, header, *code, image, /*origin=*/{},
                        llvm::outs());
  }

  /// Prints what call.c prints with the C header and the driver it brings.
  llvm::Error evaluate(BuiltHostProgram &built) {
    auto buffer = llvm::MemoryBuffer::getFile(calls);
    if (!buffer)
      return llvm::errorCodeToError(buffer.getError());
    llvm::Expected<std::string> object = compileHostCode(*built.module);
    if (!object)
      return object.takeError();
    HostProgram &program = built.program;
    if (llvm::Error error = linkHostCode(program, *object))
      return error;
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
      if (llvm::Error error = program.prepare(tensors, call))
        llvm::outs() << "error: " << llvm::toString(std::move(error)) << "\n";
      else
        execute(program, tensors, call);
    }
    return llvm::Error::success();
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

  void execute(const HostProgram &program, ArrayRef<TensorArgument> arguments,
               Invocation &call) {
    llvm::raw_ostream &os = llvm::outs();
    SmallVector<uint64_t> results, scratch;
    for (size_t i = 0; i != program.results.size(); ++i) {
      Invocation::Result result = call.getResult(program, i);
      os << "result";
      for (auto [size, stride] : llvm::zip(result.sizes, result.strides))
        os << " " << size << ":" << stride;
      os << "\n";
      results.push_back((i + 1) << 28);
    }
    for (const Invocation::Scratch &part : call.scratch)
      scratch.push_back((uint64_t(1) << 32) + part.offset);
    os << "workspace " << call.scratchBytes << "\n";
    if (llvm::Error error =
            program.bind(arguments, results, scratch, call, encode)) {
      os << "error: " << llvm::toString(std::move(error)) << "\n";
      return;
    }
    for (auto [i, launch] : llvm::enumerate(call.launches)) {
      const HostProgram::Launch &listed = program.launches[launch.index];
      os << (listed.isDependent ? "dependent " : "") << "launch "
         << listed.kernel;
      for (uint32_t size : launch.grid)
        os << " " << size;
      for (uint32_t size : launch.block)
        os << " " << size;
      os << " " << launch.sharedBytes;
      auto printBytes = [&](const void *bytes, size_t size) {
        StringRef text(static_cast<const char *>(bytes), size);
        os << " " << llvm::toHex(text, /*LowerCase=*/true);
      };
      if (listed.hasTensorMaps())
        for (auto [pointer, field] :
             llvm::zip_equal(program.getPointers(call, i), listed.fields))
          printBytes(pointer, getBytes(field.abi.type));
      else
        printBytes(call.parameters.data() + launch.firstByte,
                   listed.parameterBytes);
      os << "\n";
    }
  }
};
} // namespace

int main(int argc, char **argv) {
  PassRegistration<PrintHostProgram>();
  DialectRegistry registry;
  registerAllDialects(registry);
  return asMainReturnCode(
      MlirOptMain(argc, argv, "programs of host functions\n", registry));
}
