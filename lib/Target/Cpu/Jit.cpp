//===- Jit.cpp - Compile and run a kernel in this process -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Jit.h"

#include "flash/Runtime/Cpu.h"
#include "flash/Runtime/Emulation.h"
#include "flash/Runtime/TileCounts.h"
#include "flash/Target/Cpu/NativeCode.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/bit.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>
#include <cmath>

using namespace llvm;

namespace {

constexpr StringLiteral packedName = "_flash_packed_entry";

class Stopwatch {
public:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    std::chrono::duration<double> seconds = now - start;
    start = now;
    return seconds.count();
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// The rank of a memref descriptor {ptr, ptr, i64 [, [r x i64], [r x i64]]}.
std::optional<unsigned> getDescriptorRank(Type *type) {
  auto *fields = dyn_cast<StructType>(type);
  if (!fields || fields->getNumElements() < 3 ||
      !fields->getElementType(0)->isPointerTy())
    return std::nullopt;
  if (fields->getNumElements() == 3)
    return 0;
  auto *sizes = dyn_cast<ArrayType>(fields->getElementType(3));
  if (!sizes)
    return std::nullopt;
  return sizes->getNumElements();
}

/// Where a branch carries a bf16, code that is not optimized holds it as f32 on
/// machines without instructions for bf16, and calls this. Not every libgcc and
/// compiler-rt has it.
__bf16 truncateToBf16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  bits = std::isnan(value) ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  return llvm::bit_cast<__bf16>(static_cast<uint16_t>(bits >> 16));
}

/// Functions the generated code calls.
const flash::NativeSymbol runtimeSymbols[] = {
    {"__truncsfbf2", &truncateToBf16},
    {"flash_parallel_for", &flash_parallel_for},
    {"flash_concurrent_for", &flash_concurrent_for},
    {"flash_runtime_failure", &flash_runtime_failure},
    {"flash_count_tile", &flash_count_tile},
    {"flash_emulation_begin", &flash_emulation_begin},
    {"flash_emulation_end", &flash_emulation_end},
    {"flash_emulation_start_roles", &flash_emulation_start_roles},
    {"flash_emulation_enter_role", &flash_emulation_enter_role},
    {"flash_emulation_finish_role", &flash_emulation_finish_role},
    {"flash_emulation_ring", &flash_emulation_ring},
    {"flash_emulation_acquire", &flash_emulation_acquire},
    {"flash_emulation_copy_async", &flash_emulation_copy_async},
    {"flash_emulation_start_put", &flash_emulation_start_put},
    {"flash_emulation_end_put", &flash_emulation_end_put},
    {"flash_emulation_wait", &flash_emulation_wait},
    {"flash_emulation_set_checked", &flash_emulation_set_checked},
    {"flash_emulation_wait_checked", &flash_emulation_wait_checked},
    {"flash_emulation_release", &flash_emulation_release},
    {"flash_emulation_check_lease", &flash_emulation_check_lease},
    {"flash_emulation_note", &flash_emulation_note},
    {"flash_emulation_check_range", &flash_emulation_check_range},
    {"flash_emulation_claim", &flash_emulation_claim},
    {"flash_emulation_check_rank", &flash_emulation_check_rank},
    {"flash_emulation_fetch", &flash_emulation_fetch},
    {"_mlir_memref_to_llvm_alloc", &_mlir_memref_to_llvm_alloc},
    {"_mlir_memref_to_llvm_aligned_alloc", &_mlir_memref_to_llvm_aligned_alloc},
    {"_mlir_memref_to_llvm_free", &_mlir_memref_to_llvm_free},
};

/// Wide vectors are the point: x86 would otherwise split them on machines
/// that prefer 256 bits.
void setHostAttributes(Module &module, const TargetMachine &machine) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
    function.addFnAttr(Attribute::NoUnwind);
  }
}

/// One function of one pointer, to an array of pointers to all arguments.
void addPackedEntry(Module &module, Function &callee) {
  IRBuilder<> b(module.getContext());
  auto *function =
      Function::Create(FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
                       GlobalValue::ExternalLinkage, packedName, module);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "", function));
  SmallVector<Value *> arguments;
  for (unsigned i = 0; i < callee.arg_size(); ++i)
    arguments.push_back(b.CreateLoad(
        b.getPtrTy(),
        b.CreateConstGEP1_64(b.getPtrTy(), function->getArg(0), i)));
  b.CreateCall(&callee, arguments);
  b.CreateRetVoid();
}

/// What a kernel gains from: its loops are ordered, vectorized and unrolled
/// already. The rest of LLVM's default pipeline takes five times as long and
/// makes no kernel faster.
constexpr StringLiteral kernelPasses =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-rotate,licm),early-cse<memssa>,simplifycfg)";

void optimize(Module &module, TargetMachine &machine) {
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
  ModulePassManager passes;
  cantFail(builder.parsePassPipeline(passes, kernelPasses));
  passes.run(module, modules);
}

/// A function with more instructions, of a mask of hundreds of terms, is
/// compiled without optimizations of code generation: some of these take time
/// that grows faster than a block.
constexpr unsigned mostOptimized = 40000;

/// About how many instructions become of one. No processor divides vectors of
/// integers: each element is taken out, multiplied, and what is left put back.
unsigned countInstructions(const Instruction &instruction) {
  auto *type = dyn_cast<FixedVectorType>(instruction.getType());
  bool divides = instruction.isIntDivRem();
  return type && divides ? 6 * type->getNumElements() : 1;
}

bool isHuge(const Module &module) {
  return any_of(module, [](const Function &function) {
    unsigned count = 0;
    for (const Instruction &instruction : instructions(function))
      count += countInstructions(instruction);
    return count > mostOptimized;
  });
}

/// Appends the descriptor of a buffer: pointers, offset, sizes, strides.
void appendDescriptor(SmallVectorImpl<int64_t> &words,
                      const flash::StridedBuffer &buffer) {
  auto address = reinterpret_cast<int64_t>(buffer.data);
  words.append({address, address, 0});
  words.append(buffer.sizes.begin(), buffer.sizes.end());
  words.append(buffer.strides.begin(), buffer.strides.end());
}

} // namespace

flash::OwnedBuffer::~OwnedBuffer() { _mlir_memref_to_llvm_free(allocated); }

flash::CpuExecutable::~CpuExecutable() = default;

Expected<std::unique_ptr<flash::CpuExecutable>>
flash::CpuExecutable::compile(mlir::ModuleOp op, StringRef entry,
                              const JitOptions &options) {
  CpuObject result;
  std::string llvmIR, assembly;
  CompileTimes times;
  Stopwatch watch;

  LLVMContext context;
  context.setDiscardValueNames(true);
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(op, context);
  if (!module)
    return makeError("translation to LLVM IR failed");
  Expected<std::unique_ptr<TargetMachine>> machine =
      createNativeMachine(CodeGenOptLevel::Aggressive);
  if (!machine)
    return machine.takeError();
  module->setDataLayout((*machine)->createDataLayout());
  module->setTargetTriple((*machine)->getTargetTriple());

  Function *kernel = module->getFunction(entry);
  Function *wrapper = module->getFunction(("_mlir_ciface_" + entry).str());
  if (!kernel || !wrapper || kernel->isDeclaration())
    return makeError("no function '" + entry + "' in the compiled module");
  Type *returned = kernel->getReturnType();
  if (!returned->isVoidTy()) {
    SmallVector<Type *> descriptors = {returned};
    if (!getDescriptorRank(returned) && returned->isStructTy())
      descriptors.assign(cast<StructType>(returned)->elements().begin(),
                         cast<StructType>(returned)->elements().end());
    for (Type *type : descriptors) {
      std::optional<unsigned> rank = getDescriptorRank(type);
      if (!rank)
        return makeError("'" + entry + "' returns something not a tensor");
      result.resultRanks.push_back(*rank);
    }
  }
  for (Argument &argument : wrapper->args())
    if (!argument.getType()->isPointerTy())
      return makeError("'" + entry + "' takes something not a tensor");
  result.numInputs = wrapper->arg_size() - (result.resultRanks.empty() ? 0 : 1);
  for (Function &function : *module)
    if (!function.isDeclaration())
      function.setLinkage(GlobalValue::InternalLinkage);
  addPackedEntry(*module, *wrapper);
  setHostAttributes(*module, **machine);
  times.translate = watch.lap();

  if (options.optimize)
    optimize(*module, **machine);
  if (!options.optimize || isHuge(*module))
    (*machine)->setOptLevel(CodeGenOptLevel::None);
  times.optimize = watch.lap();
  if (options.keepText) {
    raw_string_ostream(llvmIR) << *module;
    SmallVector<char, 0> text;
    std::unique_ptr<Module> copy = CloneModule(*module);
    if (Error error = emitNativeCode(*copy, **machine,
                                     CodeGenFileType::AssemblyFile, text))
      return std::move(error);
    assembly.assign(text.begin(), text.end());
    watch.lap();
  }
  SmallVector<char, 0> object;
  if (Error error = emitNativeCode(*module, **machine,
                                   CodeGenFileType::ObjectFile, object))
    return std::move(error);
  times.codegen = watch.lap();
  result.bytes.assign(object.begin(), object.end());

  Expected<std::unique_ptr<CpuExecutable>> linked = link(std::move(result));
  if (!linked)
    return linked.takeError();
  times.link = watch.lap();
  (*linked)->times = times;
  (*linked)->llvmIR = std::move(llvmIR);
  (*linked)->assembly = std::move(assembly);
  return linked;
}

Expected<std::unique_ptr<flash::CpuExecutable>>
flash::CpuExecutable::link(CpuObject object) {
  std::unique_ptr<CpuExecutable> result(new CpuExecutable);
  result->object = std::move(object);
  Expected<std::unique_ptr<orc::LLJIT>> jit =
      linkNativeCode(result->object.bytes, runtimeSymbols);
  if (!jit)
    return jit.takeError();
  result->jit = std::move(*jit);
  Expected<void *> function = lookUpNativeCode(*result->jit, packedName);
  if (!function)
    return function.takeError();
  result->function = reinterpret_cast<void (*)(void *)>(*function);
  return std::move(result);
}

/// Whether the elements lie in row-major order without gaps.
static bool isDense(const flash::StridedBuffer &buffer) {
  // Without elements none lies elsewhere.
  if (is_contained(buffer.sizes, 0))
    return true;
  int64_t expected = 1;
  for (auto [size, stride] : reverse(zip(buffer.sizes, buffer.strides))) {
    if (size > 1 && stride != expected)
      return false;
    if (MulOverflow(expected, size, expected))
      return false;
  }
  return true;
}

Error flash::CpuExecutable::invoke(
    ArrayRef<StridedBuffer> inputs,
    SmallVectorImpl<OwnedBuffer> &results) const {
  if (inputs.size() != object.numInputs)
    return makeError("the kernel takes " + Twine(object.numInputs) +
                     " arguments, not " + Twine(inputs.size()));
  // Kernels are compiled for the identity layout and would not see others.
  for (auto [i, input] : enumerate(inputs))
    if (!isDense(input))
      return makeError("argument " + Twine(i) + " is not contiguous");
  SmallVector<SmallVector<int64_t, 16>> descriptors;
  for (const StridedBuffer &input : inputs)
    appendDescriptor(descriptors.emplace_back(), input);
  SmallVector<int64_t, 32> returned;
  for (unsigned rank : object.resultRanks)
    returned.append(3 + 2 * rank, 0);
  SmallVector<void *> pointers;
  if (!object.resultRanks.empty())
    pointers.push_back(returned.data());
  for (auto &descriptor : descriptors)
    pointers.push_back(descriptor.data());

  if (std::optional<std::string> failure =
          runtime::callProtected(function, pointers.data()))
    return makeError(*failure);

  results.clear();
  const int64_t *word = returned.data();
  for (unsigned rank : object.resultRanks) {
    StridedBuffer view;
    view.data = reinterpret_cast<void *>(word[1]);
    view.sizes.assign(word + 3, word + 3 + rank);
    view.strides.assign(word + 3 + rank, word + 3 + 2 * rank);
    // Results are whole allocations, so their offset is 0.
    results.emplace_back(reinterpret_cast<void *>(word[0]), std::move(view));
    word += 3 + 2 * rank;
  }
  return Error::success();
}
