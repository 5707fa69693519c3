//===- Registration.h - Everything the tools register -----------*- C++ -*-===//
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

/// Registers the flash dialect, the upstream dialects its programs use, and
/// the external interface models (bufferization, tiling, LLVM translation)
/// that the pipelines need.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers every pass of this project, and the upstream passes over the
/// dialects above, with the pass manager's registry.
void registerAllPasses();

} // namespace flash

#endif // FLASH_PIPELINES_REGISTRATION_H
