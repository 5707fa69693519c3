//===- AttachTarget.cpp - Which machine a module is for -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Machine/TargetAttr.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringSet.h"

namespace flash {
#define GEN_PASS_DEF_ATTACHTARGET
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
struct AttachTarget : flash::impl::AttachTargetBase<AttachTarget> {
  using Base::Base;

  /// What is wrong with the options; empty if nothing is.
  std::string readOptions(Machine &machine) {
    if (!target.empty() && machine.name != target) {
      const Machine *known = findMachine(target);
      if (!known)
        return ("there is no target '" + target + "'; the targets are " +
                listMachines());
      machine = *known;
    }
    StringRef rest = keys;
    llvm::StringSet<> seen;
    while (!rest.empty()) {
      auto [key, value] = rest.split('=');
      std::tie(value, rest) = value.split(',');
      if (!seen.insert(key).second)
        return (key + " is given twice").str();
      if (std::string fault = machine.set(key, value); !fault.empty())
        return fault;
    }
    return "";
  }

  void runOnOperation() override {
    if (target.empty() && keys.empty())
      return;
    Machine machine = target.empty() ? getMachineOfKernels(getOperation())
                                     : flash::getMachine(getOperation());
    if (std::string fault = readOptions(machine); !fault.empty()) {
      emitError(getOperation().getLoc(), fault);
      return signalPassFailure();
    }
    // Kernels have the instructions of the machine that they are for.
    auto before = getOperation()->getAttrOfType<TargetAttr>(TargetAttr::name);
    auto kernels = getOperation().getOps<gpu::GPUModuleOp>();
    if (before && before.getMachine().name != machine.name &&
        !kernels.empty()) {
      (*kernels.begin())->emitOpError("has kernels for the target ")
          << before.getMachine().name << ", and not for " << machine.name;
      return signalPassFailure();
    }
    auto helper =
        getContext().getLoadedDialect<FlashDialect>()->getTargetAttrHelper();
    // Without a target a module is for the CPU.
    if (machine == getCpu())
      helper.removeAttr(getOperation());
    else
      helper.setAttr(getOperation(), TargetAttr::get(&getContext(), machine));
  }
};
} // namespace
