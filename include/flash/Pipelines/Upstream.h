//===- Upstream.h - Dialects and passes of upstream MLIR --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PIPELINES_UPSTREAM_H
#define FLASH_PIPELINES_UPSTREAM_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace flash {

/// Registers the upstream dialects that a program with attention, or the
/// programs to which it is lowered, may use, with their interface models and
/// extensions. Other upstream dialects (SPIR-V, TOSA, OpenACC, the dialects of
/// vendors and so on) are not registered, because tools that are linked
/// statically would become twice as large.
void registerUpstreamDialects(mlir::DialectRegistry &registry);

/// Registers the upstream passes that work on these dialects.
void registerUpstreamPasses();

} // namespace flash

#endif // FLASH_PIPELINES_UPSTREAM_H
