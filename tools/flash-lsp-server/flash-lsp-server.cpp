//===- flash-lsp-server.cpp - Language server for .mlir files -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/Registration.h"
#include "flash/Support/Help.h"
#include "flash/Support/Version.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  flash::hideOptionsOfLLVM();
  flash::registerVersionPrinter();
  mlir::DialectRegistry registry;
  flash::registerAllDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
