//===- Machines.cpp - The machines that are described ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations per clock are the peak rates in these papers, divided by
// multiprocessors and boost clock:
//   sm_75: "NVIDIA Turing GPU Architecture"
//   sm_80: "NVIDIA A100 Tensor Core GPU Architecture"
//   sm_86: "NVIDIA Ampere GA102 GPU Architecture"
//   sm_89: "NVIDIA Ada GPU Architecture"
//   sm_90a: "NVIDIA H100 Tensor Core GPU Architecture"
//   sm_120: "NVIDIA RTX Blackwell GPU Architecture"
//
//===----------------------------------------------------------------------===//

#include "flash/Machine/Machine.h"

using namespace flash;

static constexpr int64_t kibibytes = 1024;

static Machine makeTuring() {
  Machine machine;
  machine.name = "sm_75";
  machine.computeCapability = 75;
  machine.multiprocessors = 40;
  machine.registers = 64 * 1024;
  machine.registersPerThread = 255;
  machine.sharedBytesPerBlock = 64 * kibibytes;
  machine.portableSharedBytesPerBlock = machine.sharedBytesPerBlock;
  machine.products = MatrixProducts::M16N8K8;
  machine.halfFlopsPerClock = 1024;
  machine.isPortable = true;
  machine.cudaVersion = 100;
  machine.cards = "T4, RTX 20";
  return machine;
}

/// An A100 has 108 multiprocessors. But the schedules of this target were
/// measured on an H200 (docs/lab/2026-11-21-kernels-of-the-sm80-kind.md), which
/// has 132, and are for it.
static Machine makeAmpere() {
  Machine machine = makeTuring();
  machine.name = "sm_80";
  machine.computeCapability = 80;
  machine.multiprocessors = 132;
  machine.sharedBytesPerBlock = 163 * kibibytes;
  // Later GPUs have less: 8.6, 8.9 and 12.0.
  machine.portableSharedBytesPerBlock = 99 * kibibytes;
  machine.reservedSharedBytesPerBlock = 1 * kibibytes;
  machine.products = MatrixProducts::M16N8K16;
  machine.copies = TileCopies::Async;
  machine.halfFlopsPerClock = 2048;
  machine.tf32FlopsPerClock = 1024;
  machine.cudaVersion = 110;
  machine.cards = "A100, A30";
  return machine;
}

static Machine makeGa102() {
  Machine machine = makeAmpere();
  machine.name = "sm_86";
  machine.computeCapability = 86;
  machine.multiprocessors = 82;
  machine.sharedBytesPerBlock = 99 * kibibytes;
  machine.halfFlopsPerClock = 512;
  machine.tf32FlopsPerClock = 256;
  machine.cudaVersion = 111;
  machine.cards = "RTX 30, A10, A40";
  return machine;
}

static Machine makeAda() {
  Machine machine = makeGa102();
  machine.name = "sm_89";
  machine.computeCapability = 89;
  machine.multiprocessors = 128;
  machine.cudaVersion = 118;
  machine.cards = "RTX 40, L4, L40";
  return machine;
}

static Machine makeHopper() {
  Machine machine = makeAmpere();
  machine.name = "sm_90a";
  machine.computeCapability = 90;
  machine.sharedBytesPerBlock = 227 * kibibytes;
  machine.portableSharedBytesPerBlock = machine.sharedBytesPerBlock;
  machine.products = MatrixProducts::Warpgroup;
  machine.copies = TileCopies::Bulk;
  machine.convertsE4M3 = true;
  machine.hasDependentLaunches = true;
  machine.halfFlopsPerClock = 4096;
  machine.tf32FlopsPerClock = 2048;
  machine.isPortable = false;
  machine.cudaVersion = 120;
  machine.cards = "H100, H200, GH200";
  machine.wasTried = true;
  return machine;
}

/// It is like Ada: it has none of Hopper's products of warpgroups.
static Machine makeRtxBlackwell() {
  Machine machine = makeAda();
  machine.name = "sm_120";
  machine.computeCapability = 120;
  machine.multiprocessors = 170;
  machine.convertsE4M3 = true;
  machine.cudaVersion = 128;
  machine.cards = "RTX 50, RTX PRO 6000 Blackwell";
  return machine;
}

static Machine makeNamed(llvm::StringRef name) {
  Machine machine;
  machine.name = name;
  return machine;
}

llvm::ArrayRef<Machine> flash::getMachines() {
  static const Machine machines[] = {
      makeNamed("cpu"), makeNamed("emulate"), makeTuring(),
      makeAmpere(),     makeGa102(),          makeAda(),
      makeHopper(),     makeRtxBlackwell(),
  };
  return machines;
}
