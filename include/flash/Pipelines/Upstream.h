//===- Upstream.h - What the tools take from upstream MLIR ------*- C++ -*-===//
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

/// Registers the upstream dialects an attention program or its lowering may
/// use, with their interface models and extensions. The others (SPIR-V, TOSA,
/// OpenACC, vendor dialects and so on) stay out: linked statically they would
/// double the tools.
void registerUpstreamDialects(mlir::DialectRegistry &registry);

/// Registers the upstream passes over those dialects.
void registerUpstreamPasses();

} // namespace flash

#endif // FLASH_PIPELINES_UPSTREAM_H
