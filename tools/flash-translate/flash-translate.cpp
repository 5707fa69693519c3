//===- flash-translate.cpp - From the LLVM dialect to PTX -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/Registration.h"
#include "flash/Support/Version.h"
#include "flash/Target/Nvptx/Ptx.h"
#include "flash/Target/Nvptx/Ptxas.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;

static cl::OptionCategory category("flash-translate options");
static cl::opt<std::string> input(cl::Positional, cl::init("-"),
                                  cl::desc("<program.mlir>"),
                                  cl::cat(category));
static cl::opt<std::string> chip("chip", cl::init("sm_80"), cl::cat(category),
                                 cl::desc("Chip, for example sm_90a"));
static cl::opt<unsigned> ptxVersion(
    "ptx", cl::cat(category),
    cl::desc("PTX version times ten; without it the lowest from 80 on"));
static cl::opt<bool> report(
    "ptxas", cl::cat(category),
    cl::desc("Assemble, and print what the kernels need; status 1 if they "
             "spill registers or ptxas has a remark"));
static cl::opt<bool> allowSpills("allow-spills", cl::cat(category),
                                 cl::desc("Status 0 all the same"));
static cl::opt<bool> timing("time", cl::cat(category),
                            cl::desc("Print the seconds of each stage"));

static llvm::Expected<mlir::Operation *> findModule(mlir::ModuleOp module) {
  auto gpuModules = llvm::to_vector(module.getOps<mlir::gpu::GPUModuleOp>());
  if (gpuModules.size() > 1)
    return llvm::createStringError(llvm::formatv(
        "there are {0} gpu.modules; at most one can be translated",
        gpuModules.size()));
  return gpuModules.empty() ? module.getOperation() : gpuModules.front();
}

static llvm::Expected<int> translate(mlir::ModuleOp module) {
  llvm::Expected<mlir::Operation *> op = findModule(module);
  if (!op)
    return op.takeError();
  llvm::Expected<flash::PtxText> ptx = flash::emitPtx(*op, {chip, ptxVersion});
  if (!ptx)
    return ptx.takeError();
  if (timing)
    llvm::errs() << llvm::formatv(
        "translate {0:f3} s, optimize {1:f3} s, codegen {2:f3} s\n",
        ptx->times.translate, ptx->times.optimize, ptx->times.codegen);
  if (!report) {
    llvm::outs() << ptx->text;
    return 0;
  }
  llvm::Expected<flash::Cubin> cubin = flash::runPtxas(ptx->text, chip);
  if (!cubin)
    return cubin.takeError();
  for (const flash::KernelResources &kernel : cubin->kernels)
    llvm::outs() << llvm::formatv(
        "{0}: {1} registers, stack {2}, spill stores {3}, spill loads {4}, "
        "static shared memory {5}\n",
        kernel.name, kernel.registers, kernel.stack, kernel.spillStores,
        kernel.spillLoads, kernel.staticShared);
  for (const std::string &remark : cubin->remarks)
    llvm::outs() << remark << "\n";
  return !allowSpills && (cubin->hasSpills() || !cubin->remarks.empty());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  flash::registerVersionPrinter();
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Thread programs to PTX\n");
  mlir::DialectRegistry registry;
  flash::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceFile<mlir::ModuleOp>(input, sources, &context);
  if (!module)
    return 1;
  llvm::Expected<int> status = translate(*module);
  if (status)
    return *status;
  llvm::WithColor::error(llvm::errs(), "flash-translate")
      << llvm::toString(status.takeError()) << "\n";
  return 1;
}
