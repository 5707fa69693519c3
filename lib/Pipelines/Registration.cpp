//===- Registration.cpp - Everything the tools register -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/Registration.h"

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Pipelines/Pipelines.h"
#include "flash/Pipelines/Upstream.h"
#include "flash/Support/DebugTypes.h"
#include "flash/Target/Cpu/Passes.h"
#include "flash/Target/Cpu/Pipeline.h"
#include "flash/Target/Host/Passes.h"
#include "flash/Target/Nvptx/Passes.h"
#include "flash/Target/Nvptx/Ptx.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

void flash::registerAllDialects(DialectRegistry &registry) {
  readDebugTypes();
  registerUpstreamDialects(registry);
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  registerNvptxDialects(registry);
  registry.insert<FlashDialect, tile::TileDialect, nvx::NvxDialect,
                  host::HostDialect>();
}

void flash::registerAllPasses() {
  registerUpstreamPasses();
  registerFlashPasses();
  registerFlashConversionPasses();
  tile::registerTilePasses();
  registerFlashCpuPasses();
  registerFlashHostPasses();
  registerFlashNvptxPasses();
  registerCpuPipelines();
  registerPipelines();
}
