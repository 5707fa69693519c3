//===- FakeSetup.cpp - What the fake CUDA driver begins with --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of its own, since the tools load many libraries that differ in nothing
// else. FAKE_SETUP is code that changes `fake`.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

FakeCuda makeFakeCuda() {
  FakeCuda fake;
#ifdef FAKE_SETUP
  FAKE_SETUP;
#endif
  return fake;
}
