//===- OptMain.cpp - flash-opt --------------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/OptMain.h"

#include "flash/Pipelines/Registration.h"
#include "flash/Support/Help.h"
#include "flash/Support/InputFile.h"
#include "flash/Support/SourceCheck.h"
#include "flash/Support/Version.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

/// The passes and pipelines of this project, which --help lists among
/// MLIR's, too. They have to be registered as options.
static std::string listOwn() {
  llvm::SmallVector<llvm::StringRef> names;
  for (auto &entry : llvm::cl::getRegisteredOptions())
    for (llvm::StringRef prefix : {"flash-", "tile-", "host-", "convert-flash-",
                                   "convert-tile-", "convert-nvx-"})
      if (entry.first.starts_with(prefix))
        names.push_back(entry.first);
  llvm::sort(names);
  std::string text;
  llvm::raw_string_ostream os(text);
  auto list = [&](llvm::StringRef title, auto find) {
    os << "\n" << title << ":\n";
    for (llvm::StringRef name : names)
      if (const mlir::PassRegistryEntry *found = find(name))
        os << llvm::formatv("  --{0,-29} {1}\n", name,
                            found->getPassDescription());
  };
  list("flash-mlir's pipelines", mlir::PassPipelineInfo::lookup);
  list("flash-mlir's passes", mlir::PassInfo::lookup);
  return text;
}

int flash::optMain(int argc, char **argv) {
  hideOptionsOfLLVM();
  flash::registerVersionPrinter();
  flash::registerAllPasses();
  mlir::DialectRegistry registry;
  flash::registerAllDialects(registry);
  std::string header =
      mlir::registerCLIOptions("flash-mlir optimizer driver\n", registry);
  auto [inputName, outputName] =
      mlir::parseCLIOptions(argc, argv, header + "\n" + listOwn());
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, inputName, outputName, registry));

  // Upstream's main, but for the check of the text before it is parsed.
  std::string message;
  auto input = flash::readTextFile(inputName);
  if (!input) {
    llvm::errs() << "cannot open input file '" << inputName
                 << "': " << llvm::toString(input.takeError()) << "\n";
    return EXIT_FAILURE;
  }
  auto output = mlir::openOutputFile(outputName, &message);
  if (!output) {
    llvm::errs() << message << "\n";
    return EXIT_FAILURE;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(**input), {});
  if (failed(flash::checkSource(sources)) ||
      failed(
          mlir::MlirOptMain(output->os(), std::move(*input), registry, config)))
    return EXIT_FAILURE;
  output->keep();
  return EXIT_SUCCESS;
}
