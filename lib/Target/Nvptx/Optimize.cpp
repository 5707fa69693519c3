//===- Optimize.cpp - Between translation and code generation -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "CopyAddresses.h"
#include "GridLoops.h"
#include "JoinSelects.h"
#include "SinkOffsets.h"
#include "SplitVectors.h"
#include "WidenBf16.h"
#include "flash/Machine/Machine.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

/// Whether what only a branch inside of a loop uses may be computed in front of
/// the loop. Where warps with roles have a multiprocessor to themselves, their
/// tiles take all registers; several such blocks have smaller tiles.
static bool speculates(Function &function) {
  bool hasRoles = any_of(instructions(function), [](Instruction &instruction) {
    auto *call = dyn_cast<IntrinsicInst>(&instruction);
    return call && call->getIntrinsicID() ==
                       Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32;
  });
  return !hasRoles ||
         function.getFnAttributeAsParsedInteger("nvvm.minctasm", 1) > 1;
}

static FunctionPassManager makePasses(bool speculates, int64_t registers) {
  FunctionPassManager passes;
  // First, so that no pass walks the chains of insertions and extractions that
  // put tiles of registers together and take them apart. The scalarizer does
  // the rest, such as elements whose index is a variable.
  passes.addPass(flash::SplitVectorsPass());
  // It rewrites nearly all there is, and what follows would make sense of
  // broken code: a value that lacks one of its sources, say, becomes another.
  passes.addPass(VerifierPass());
  passes.addPass(ScalarizerPass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  LICMOptions options(SetLicmMssaOptCap, SetLicmMssaNoAccForPromotionCap,
                      speculates);
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(options),
                                                 /*UseMemorySSA=*/true));
  passes.addPass(flash::SinkOffsetsPass());
  passes.addPass(flash::GridLoopsPass(registers));
  passes.addPass(flash::CopyAddressesPass());
  passes.addPass(flash::WidenBf16Pass());
  passes.addPass(flash::JoinSelectsPass());
  passes.addPass(VerifierPass());
  return passes;
}

/// What the default pipelines do beyond this to code that is unrolled already
/// costs time and gains nothing, as docs/nvptx.md shows. The code generator
/// brings its own passes for addresses, loops and common subexpressions.
void flash::optimizeForNvptx(Module &module, TargetMachine &machine) {
  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graph;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);

  // A chip that is not described is taken to have as many as the default one.
  const flash::Machine *known = flash::findMachine(machine.getTargetCPU());
  int64_t registers = (known ? *known : flash::getDefaultGpu()).registers;
  for (Function &function : module)
    if (!function.isDeclaration())
      makePasses(speculates(function), registers).run(function, functions);
}
