//===- Registration.h - Dialects and passes of the tools --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PIPELINES_REGISTRATION_H
#define FLASH_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace flash {

/// Registers the dialects of this project, the upstream dialects that programs
/// use, and the external interface models (bufferization, tiling, translation
/// to LLVM IR) that the pipelines need.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers every pass of this project, and the upstream passes for the
/// dialects above, with the registry of the pass manager.
void registerAllPasses();

} // namespace flash

#endif // FLASH_PIPELINES_REGISTRATION_H
