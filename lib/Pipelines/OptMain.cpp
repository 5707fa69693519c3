//===- OptMain.cpp - flash-opt --------------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/OptMain.h"

#include "flash/Pipelines/Registration.h"
#include "flash/Support/InputFile.h"
#include "flash/Support/SourceCheck.h"
#include "flash/Support/Version.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

/// What is registered before passes are is LLVM's: hundreds of options of its
/// optimizer and its code generators, among which --help would hide the rest.
/// --help-hidden shows them.
static void hideOptionsOfLLVM() {
  llvm::cl::OptionCategory &generic = llvm::cl::getGeneralCategory();
  for (auto &entry : llvm::cl::getRegisteredOptions())
    if (llvm::is_contained(entry.second->Categories, &generic))
      entry.second->setHiddenFlag(llvm::cl::Hidden);
}

int flash::optMain(int argc, char **argv) {
  hideOptionsOfLLVM();
  flash::registerVersionPrinter();
  flash::registerAllPasses();
  mlir::DialectRegistry registry;
  flash::registerAllDialects(registry);
  auto [inputName, outputName] = mlir::registerAndParseCLIOptions(
      argc, argv, "flash-mlir optimizer driver\n", registry);
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
