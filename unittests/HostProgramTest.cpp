//===- HostProgramTest.cpp - Calls of host programs -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls of programs that are written in C++, and of arithmetic that is
// compiled: every error, the parameter buffer, and the time that a call takes.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Pipelines/Registration.h"
#include "flash/Runtime/HostCall.h"
#include "flash/Target/Host/HostCode.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cstring>

using namespace flash;
using namespace flash::runtime;
using llvm::StringRef;

static int numFailures = 0;

static void check(bool condition, const llvm::Twine &what) {
  if (condition)
    return;
  ++numFailures;
  llvm::outs() << "FAILED: " << what << "\n";
}

/// What `prepare` says, or nothing.
static std::string getError(const HostProgram &program,
                            llvm::ArrayRef<TensorArgument> arguments) {
  Invocation call;
  llvm::Error error = program.prepare(arguments, call);
  return error ? llvm::toString(std::move(error)) : "";
}

static void expectError(const HostProgram &program,
                        llvm::ArrayRef<TensorArgument> arguments,
                        StringRef expected) {
  std::string error = getError(program, arguments);
  check(error == expected,
        "expected '" + expected + "', but the error is '" + error + "'");
}

static HostProgram::Argument getArgument(llvm::ArrayRef<int64_t> sizes,
                                         llvm::ArrayRef<int64_t> strides) {
  HostProgram::Argument argument;
  argument.elementType = "f16";
  argument.elementBytes = 2;
  argument.sizes.assign(sizes.begin(), sizes.end());
  argument.strides.assign(strides.begin(), strides.end());
  return argument;
}

static constexpr int64_t open = HostProgram::dynamic;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static void testArguments() {
  HostProgram program;
  program.name = "f";
  program.function = [](HostCall *) { return 0; };
  program.arguments = {getArgument({open, 64}, {open, 1}),
                       getArgument({open, open}, {open, 1})};
  program.arguments[1].isDense = true;
  program.arguments[1].alignment = 16;
  const int64_t sizes[2][2] = {{3, 64}, {2, 5}};
  const int64_t strides[2][2] = {{100, 1}, {5, 1}};
  TensorArgument good[] = {{0, sizes[0], strides[0]},
                           {0, sizes[1], strides[1]}};
  auto with = [&](unsigned index, llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<int64_t> strides, StringRef expected) {
    TensorArgument arguments[] = {good[0], good[1]};
    arguments[index] = {0, sizes, strides};
    expectError(program, arguments, expected);
  };
  expectError(program, good, "");
  expectError(program, llvm::ArrayRef(good).drop_back(),
              "@f takes 2 arguments, but 1 are given");
  TensorArgument odd[] = {good[0], good[1]};
  odd[0].address = 1;
  odd[1].address = 24;
  expectError(program, odd,
              "argument 1: the address 0x18 is not a multiple of 16");
  with(0, {3}, {1}, "argument 0 has rank 1, expected 2");
  with(0, {3, 64}, {1}, "argument 0 has 2 sizes, but 1 strides");
  with(0, {-3, 64}, {64, 1},
       "argument 0: the size of dimension 0 is -3, a negative number");
  with(0, {3, 65}, {65, 1},
       "argument 0: the size of dimension 1 is 65, expected 64");
  with(0, {3, 64}, {128, 2},
       "argument 0: the stride of dimension 1 is 2, expected 1: the innermost "
       "dimension must be contiguous");
  with(1, {2, 5}, {6, 1},
       "argument 1: the stride of dimension 0 is 6, expected 5");
  with(1, {INT64_MAX, 2}, {2, 1},
       "argument 1: the number of elements does not fit in 64 bits");
  with(0, {3, 64}, {INT64_MAX, 1},
       "argument 0: the bytes that its strides span do not fit in 64 bits");
  with(0, {INT64_MAX, 64}, {64, 1},
       "argument 0: the bytes that its strides span do not fit in 64 bits");
  // Strides that no element is found by do not matter.
  with(1, {1, 5}, {-7, 1}, "");
  with(1, {2, 1}, {1, 99}, "");
  with(0, {0, 64}, {0, 0}, "");
  with(0, {3, 64}, {-64, 1}, "");
}

//===----------------------------------------------------------------------===//
// Memory, results and messages
//===----------------------------------------------------------------------===//

static void testMemory() {
  HostProgram program;
  program.function = [](HostCall *call) -> int32_t {
    flash_host_allocate(call, 1);
    int64_t used = flash_host_mark(call);
    flash_host_allocate(call, 0);
    flash_host_allocate(call, 1000);
    flash_host_release(call, used);
    flash_host_allocate(call, 257);
    return 0;
  };
  Invocation call;
  llvm::cantFail(program.prepare({}, call));
  std::vector<int64_t> offsets, bytes;
  for (const Invocation::Scratch &part : call.scratch) {
    offsets.push_back(part.offset);
    bytes.push_back(part.bytes);
  }
  check(offsets == std::vector<int64_t>{0, 256, 256, 256} &&
            bytes == std::vector<int64_t>{1, 0, 1000, 257},
        "where memory lies");
  check(call.scratchBytes == 256 + 1024, "the most that is in use");

  program.function = [](HostCall *call) -> int32_t {
    flash_host_allocate(call, INT64_MAX - 1000);
    flash_host_allocate(call, INT64_MAX - 1000);
    return 0;
  };
  llvm::cantFail(program.prepare({}, call));
  check(call.scratchBytes > INT64_MAX - 1000, "more than fits in 64 bits");
}

static void testResults() {
  HostProgram program;
  program.results.resize(2);
  program.results[0].sizes.resize(2);
  program.results[1].sizes.resize(1);
  program.function = [](HostCall *call) -> int32_t {
    const int64_t found[] = {48, 2, 3, 3, 1, 7, 7, 1};
    check(call->inputs[0] == 0, "there are no places for results");
    check(call->inputs[1] == getAddressStandIn(0) &&
              call->inputs[6] == getAddressStandIn(1),
          "the addresses of results");
    std::copy_n(found, 8, call->outputs);
    return 0;
  };
  Invocation call;
  llvm::cantFail(program.prepare({}, call));
  Invocation::Result result = call.getResult(program, 0);
  check(result.bytes == 48 && result.sizes == llvm::ArrayRef<int64_t>{2, 3} &&
            result.strides == llvm::ArrayRef<int64_t>{3, 1},
        "the first result");
  result = call.getResult(program, 1);
  check(result.bytes == 7 && result.sizes == llvm::ArrayRef<int64_t>{7} &&
            result.strides == llvm::ArrayRef<int64_t>{1},
        "the second result");

  program.function = [](HostCall *call) -> int32_t {
    const int64_t expected[] = {1, int64_t(getAddressStandIn(0)), 2, 3, 1,
                                2, int64_t(getAddressStandIn(1)), 7, 1};
    check(std::equal(expected, expected + 9, call->inputs),
          "sizes and strides of places");
    return 0;
  };
  const int64_t sizes[] = {2, 3, 7}, strides[] = {1, 2, 1};
  TensorArgument places[] = {{0, {sizes, 2}, {strides, 2}},
                             {0, {sizes + 2, 1}, {strides + 2, 1}}};
  llvm::cantFail(program.prepare({}, call, places));
}

static void testMessages() {
  HostProgram program;
  program.function = [](HostCall *call) -> int32_t {
    flash_host_fail(call, "{1} and {0}, {0} {2} 100%s", 2, -7, 11);
    return 1;
  };
  expectError(program, {}, "11 and -7, -7 {2} 100%s");
  program.function = [](HostCall *call) -> int32_t {
    flash_host_fail(call, "{0} of the user", 0, -7, 11);
    return 1;
  };
  expectError(program, {}, "{0} of the user");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// A program of one launch whose kernel has these fields.
static HostProgram getLaunchProgram(llvm::ArrayRef<HostProgram::Field> fields) {
  HostProgram program;
  HostProgram::Launch launch;
  launch.module = "m";
  launch.kernel = "k";
  for (auto [i, field] : llvm::enumerate(fields)) {
    HostProgram::Field copy = field;
    copy.owner = "operand " + std::to_string(i);
    launch.addField(copy);
  }
  program.launches = {launch};
  return program;
}

/// Sizes as strides of an argument of 7 dimensions: a grid of [a, b, c] with
/// blocks of [d, e, f] and g bytes of shared memory. Beside it a buffer of 60
/// bytes.
static int32_t launchOfStrides(HostCall *call) {
  const int64_t *s = call->inputs + 9;
  int64_t buffer = flash_host_allocate(call, 60);
  const int64_t values[] = {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[0],
                            // The argument from element b on.
                            call->inputs[1], s[1], 0x3f800000, s[6], buffer, 0,
                            s[2]};
  return flash_host_launch(call, 0, values);
}

static void testLaunches() {
  HostProgram program = getLaunchProgram(
      {{{AbiType::I32, AbiRole::Scalar}},
       {{AbiType::Pointer, AbiRole::Pointer}, {}, -1, 0, /*elementBytes=*/2},
       {{AbiType::F32, AbiRole::Scalar}},
       {{AbiType::I64, AbiRole::Stride, 3}},
       {{AbiType::Pointer, AbiRole::Pointer}, {}, -1, 0, /*elementBytes=*/4},
       {{AbiType::I32, AbiRole::Size, 2}}});
  program.function = launchOfStrides;
  llvm::SmallVector<int64_t, 8> unknown(7, open);
  program.arguments = {getArgument(unknown, unknown)};
  auto with = [&](llvm::ArrayRef<int64_t> strides, StringRef expected) {
    // The size of one dimension is 0, so that strides are free.
    int64_t sizes[] = {0, 1, 1, 1, 1, 1, 1};
    expectError(program, TensorArgument{0, sizes, strides}, expected);
  };
  with({1, 1, 1, 32, 1, 1, 0}, "");
  with({-1, 1, 1, 32, 1, 1, 0},
       "@k: the grid has -1 in x, but must have 0 to 2147483647");
  with({1LL << 31, 1, 1, 32, 1, 1, 0},
       "@k: the grid has 2147483648 in x, but must have 0 to 2147483647");
  with({1, 65536, 1, 32, 1, 1, 0},
       "@k: the grid has 65536 in y, but must have 0 to 65535");
  with({1, 1, 65536, 32, 1, 1, 0},
       "@k: the grid has 65536 in z, but must have 0 to 65535");
  with({1, 1, 1, 0, 1, 1, 0},
       "@k: the block has 0 in x, but must have 1 to 1024");
  with({1, 1, 1, 1, 1, 65, 0},
       "@k: the block has 65 in z, but must have 1 to 64");
  with({1, 1, 1, 1024, 2, 1, 0},
       "@k: a block has 2048 threads, but may have at most 1024");
  with({1, 1, 1, 32, 1, 1, -1},
       "@k: -1 bytes of dynamic shared memory are not in the range from 0 to "
       "2147483647");
  with({1, 1, 1, 32, 1, 1, 1LL << 31},
       "@k: 2147483648 bytes of dynamic shared memory are not in the range "
       "from 0 to 2147483647");

  int64_t sizes[] = {3, 5, 1, 1, 1, 1, 1};
  int64_t strides[] = {7, 2, 1, 32, 4, 1, 100};
  TensorArgument argument{0x1000, sizes, strides};
  Invocation call;
  // The second time, memory is used again.
  for (uint64_t address : {0x10, 0x20}) {
    argument.address = address;
    llvm::cantFail(program.prepare(argument, call));
    check(call.scratch.size() == 1 && call.scratch[0].bytes == 60 &&
              call.scratchBytes == 256,
          "bytes of a buffer");
    uint64_t buffers[] = {address << 32};
    llvm::cantFail(program.bind(argument, {}, buffers, call, nullptr));
    check(call.launches.size() == 1, "number of launches");
    const Invocation::Launch &launch = call.launches[0];
    check(launch.grid[0] == 7 && launch.grid[1] == 2 && launch.grid[2] == 1 &&
              launch.block[0] == 32 && launch.block[1] == 4 &&
              launch.block[2] == 1 && launch.sharedBytes == 100,
          "grid and block");
    struct {
      int32_t scalar;
      uint64_t pointer;
      float one;
      int64_t stride;
      uint64_t buffer;
      int32_t size;
    } parameters;
    check(program.launches[0].parameterBytes == 44 &&
              call.parameters.size() == launch.firstByte + 44,
          "bytes of parameters");
    std::memcpy(&parameters, call.parameters.data() + launch.firstByte, 44);
    check(parameters.scalar == 7 && parameters.pointer == address + 4 &&
              parameters.one == 1.0f && parameters.stride == 100 &&
              parameters.buffer == buffers[0] && parameters.size == 1,
          "parameters");
  }
  strides[2] = 0;
  llvm::cantFail(program.prepare(argument, call));
  llvm::cantFail(program.bind(argument, {}, {0x100}, call, nullptr));
  check(call.launches.empty() && call.parameters.empty(),
        "a launch without blocks");
}

/// One block of one thread with the values that the inputs are, from `first`
/// on.
template <unsigned first> static int32_t launchOfInputs(HostCall *call) {
  int64_t values[16] = {1, 1, 1, 1, 1, 1, 0};
  std::copy_n(call->inputs + first, 9, values + 7);
  return flash_host_launch(call, 0, values);
}

/// One field of each kind with one value, taken from a stride.
static void testFields() {
  auto with = [](AbiField abi, int64_t value, StringRef expected) {
    HostProgram program =
        getLaunchProgram({{abi, {}, -1, 0, /*elementBytes=*/2}});
    program.arguments = {getArgument({open, open}, {open, open})};
    bool isPointer = abi.type == AbiType::Pointer;
    program.function = isPointer ? launchOfInputs<4> : launchOfInputs<5>;
    int64_t sizes[] = {1, 1}, strides[] = {0, value};
    expectError(program, TensorArgument{0, sizes, strides}, expected);
  };
  with({AbiType::I32, AbiRole::Size, 3}, 1LL << 31,
       "@k, operand 0: the size of dimension 3 is 2147483648, but must be 0 to "
       "2147483647");
  with({AbiType::I32, AbiRole::Size, 3}, -1,
       "@k, operand 0: the size of dimension 3 is -1, but must be 0 to "
       "2147483647");
  with({AbiType::I32, AbiRole::Scalar}, -(1LL << 32),
       "@k, operand 0: -4294967296 does not fit in the kernel's 32 bits");
  with({AbiType::I32, AbiRole::Scalar}, -1, "");
  with({AbiType::I64, AbiRole::Stride}, INT64_MIN, "");
  with({AbiType::Pointer, AbiRole::Pointer}, 1LL << 62,
       "@k, operand 0: an offset of 4611686018427387904 elements does not fit "
       "in 64 bits");
}

/// A map of an argument between two scalars; rules, and what is encoded.
static void testTensorMaps() {
  HostProgram program;
  program.function = [](HostCall *call) {
    // Address, sizes, strides.
    const int64_t *s = call->inputs + 1;
    const int64_t values[] = {1,    1,    1,    1,    1,    1,    0,    1, s[0],
                              s[4], s[1], s[2], s[3], s[4], s[5], s[6], 1};
    return flash_host_launch(call, 0, values);
  };
  program.arguments = {getArgument({open, open, 64}, {open, open, open})};
  HostProgram::TensorMapRecipe recipe;
  recipe.box = {1, 128, 64};
  recipe.swizzleBytes = 128;
  recipe.l2PromotionBytes = 256;
  HostProgram::Launch launch;
  launch.kernel = "k";
  HostProgram::Field field;
  field.abi = {AbiType::I32, AbiRole::Scalar};
  launch.addField(field);
  field = {};
  field.abi = {AbiType::TensorMap, AbiRole::TensorMap};
  field.owner = "operand 1";
  field.elementBytes = 2;
  launch.addTensorMap(field, recipe);
  field = {};
  field.abi = {AbiType::I32, AbiRole::Scalar};
  launch.addField(field);
  program.launches = {launch};
  check(launch.fields[1].byteOffset == 64 &&
            launch.fields[2].byteOffset == 192 && launch.parameterBytes == 196,
        "where a tensor map lies");

  std::string name;
  std::vector<int64_t> given;
  auto encode =
      [&](const llvm::Twine &owner,
          const TensorMapOptions &options) -> llvm::Expected<TensorMap> {
    name = owner.str();
    given = {int64_t(options.element), int64_t(options.address),
             options.swizzleBytes, options.l2PromotionBytes};
    for (llvm::ArrayRef<int64_t> list :
         {options.sizes, options.byteStrides, options.box})
      given.insert(given.end(), list.begin(), list.end());
    if (options.address == 0x9000)
      return llvm::createStringError("refused");
    TensorMap map;
    std::fill_n(map.words, 16, options.address);
    return map;
  };
  Invocation call;
  auto with = [&](uint64_t address, llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<int64_t> strides, StringRef expected) {
    TensorArgument argument{address, sizes, strides};
    llvm::Error error = program.prepare(argument, call);
    if (!error)
      error = program.bind(argument, {}, {}, call, encode);
    std::string text = error ? llvm::toString(std::move(error)) : "";
    check(text == expected,
          "expected '" + expected + "', but the error is '" + text + "'");
  };
  auto gives = [&](std::vector<int64_t> expected, StringRef what) {
    check(given == expected, what);
  };
  with(0x1000, {4, 333, 64}, {21312, 64, 1}, "");
  gives({6, 0x1000 + 2 * 21312, 128, 256, 4, 333, 64, 42624, 128, 1, 128, 64},
        "what the encoder is given");
  check(name == "@k, operand 1", "who wants the map");
  char *parameters = call.parameters.data();
  check(reinterpret_cast<uintptr_t>(parameters) % 64 == 0,
        "alignment of the parameters");
  llvm::SmallVector<const void *> pointers = program.getPointers(call, 0);
  check(program.launches[0].hasTensorMaps() && pointers.size() == 3 &&
            pointers[0] == parameters && pointers[1] == parameters + 64 &&
            pointers[2] == parameters + 192,
        "pointers to parameters");
  uint64_t word;
  std::memcpy(&word, parameters + 64 + 120, 8);
  check(word == 0x1000 + 2 * 21312, "the bytes of the map");
  // Each address has its map made once, until the call is prepared again.
  for (auto [address, isNew] : {std::pair(0x1000, false),
                                {0x2000, true},
                                {0x1000, false},
                                {0x2000, false}}) {
    given.clear();
    int64_t sizes[] = {4, 333, 64}, strides[] = {21312, 64, 1};
    TensorArgument argument{uint64_t(address), sizes, strides};
    llvm::cantFail(program.bind(argument, {}, {}, call, encode));
    std::memcpy(&word, call.parameters.data() + 64 + 120, 8);
    check(given.empty() != isNew && word == uint64_t(address) + 2 * 21312,
          "the map of a call that is bound again");
  }
  with(0x1000, {5, 333, 64}, {21312, 64, 1}, "");
  check(!given.empty() && given[4] == 5, "the map of other sizes");
  // Strides of one row, or of none, do not matter.
  with(0x1000, {4, 1, 64}, {64, 7, 1}, "");
  gives({6, 0x1000 + 2 * 64, 128, 256, 4, 1, 64, 128, 16, 1, 128, 64},
        "a map of single rows");
  with(0x1001, {4, 0, 64}, {-3, 7, 1}, "");
  gives({6, 16, 128, 256, 1, 1, 1, 16, 16, 1, 128, 64}, "a map of nothing");
  // The largest size and stride.
  with(0, {1LL << 32, 1, 64}, {8, 64, 1}, "");
  with(0, {2, 1, 64}, {(1LL << 39) - 8, 64, 1}, "");

  std::string cannot = "@k, operand 1 cannot have a tensor map: ";
  with(0, {(1LL << 32) + 1, 1, 64}, {8, 64, 1},
       cannot + "the size of dimension 0 is 4294967297; 1 to 2^32 are "
                "possible");
  with(0, {2, 3, 64}, {300, 100, 1},
       cannot + "the stride of dimension 0 is 600 bytes; it must be a multiple "
                "of 16 below 2^40");
  with(0, {2, 3, 64}, {320, 100, 1},
       cannot + "the stride of dimension 1 is 200 bytes; it must be a multiple "
                "of 16 below 2^40");
  with(0, {2, 3, 64}, {-320, 64, 1},
       cannot + "the stride of dimension 0 is -640 bytes; it must be a "
                "multiple of 16 below 2^40");
  with(0, {2, 3, 64}, {1LL << 39, 64, 1},
       cannot + "the stride of dimension 0 is 1099511627776 bytes; it must be "
                "a multiple of 16 below 2^40");
  with(0, {2, 3, 64}, {320, 64, 2},
       cannot + "the stride of dimension 2 is 2, expected 1: the innermost "
                "dimension must be contiguous");
  with(0x1008, {2, 3, 64}, {320, 64, 1},
       cannot + "its address 0x1288 is no multiple of 16");
  with(0x9000 - 640, {2, 3, 64}, {320, 64, 1}, "refused");
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Compiles a function that computes with the sizes and strides of arguments,
/// and returns the value as the size of a result.
static HostProgram
compile(size_t numArguments, size_t rank,
        llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>
            build) {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    auto *context = new mlir::MLIRContext(registry);
    context->loadAllAvailableDialects();
    return context;
  }();
  HostProgram program;
  program.name = "f";
  llvm::SmallVector<int64_t> unknown(rank, open);
  program.arguments.assign(numArguments, getArgument(unknown, unknown));
  program.results.resize(1);
  program.results[0].sizes.resize(1);

  mlir::OpBuilder b(context);
  mlir::Location loc = b.getUnknownLoc();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  auto function = mlir::func::FuncOp::create(
      b, loc, "f",
      b.getFunctionType(host::CallType::get(context), b.getI32Type()));
  b.setInsertionPointToStart(function.addEntryBlock());
  mlir::Value call = function.getArgument(0);
  llvm::SmallVector<mlir::Value> inputs;
  for (size_t i = 0; i != numArguments; ++i)
    for (size_t d = 0; d != 2 * rank; ++d)
      inputs.push_back(host::InputOp::create(
          b, loc, call, program.getArgumentInput(i) + 1 + d));
  host::OutputOp::create(b, loc, call, 1, build(b, inputs));
  mlir::Value done = mlir::arith::ConstantIntOp::create(b, loc, 0, 32);
  mlir::func::ReturnOp::create(b, loc, done);
  std::string object = llvm::cantFail(compileHostCode(*module));
  llvm::cantFail(linkHostCode(program, object));
  return program;
}

static std::string evaluate(const HostProgram &program, int64_t a, int64_t b) {
  int64_t sizes[] = {1, 1}, strides[] = {a, b};
  Invocation call;
  if (llvm::Error error =
          program.prepare(TensorArgument{0, sizes, strides}, call))
    return llvm::toString(std::move(error));
  return std::to_string(call.getResult(program, 0).sizes[0]);
}

static void testArithmetic() {
  using host::Arithmetic;
  struct Case {
    Arithmetic kind;
    int64_t a, b;
    StringRef expected;
  };
  constexpr int64_t min = INT64_MIN, max = INT64_MAX;
  const Case cases[] = {
      {Arithmetic::Add, 2, 3, "5"},
      {Arithmetic::Add, max, 1,
       "add of 9223372036854775807 and 1 does not fit in 64 bits"},
      {Arithmetic::Sub, 2, 3, "-1"},
      {Arithmetic::Sub, min, 1,
       "sub of -9223372036854775808 and 1 does not fit in 64 bits"},
      {Arithmetic::Mul, -2, 3, "-6"},
      {Arithmetic::Mul, 1LL << 62, 2,
       "mul of 4611686018427387904 and 2 does not fit in 64 bits"},
      {Arithmetic::DivS, -7, 2, "-3"},
      {Arithmetic::DivS, 7, 0, "7 is divided by 0"},
      {Arithmetic::DivS, min, -1,
       "divs of -9223372036854775808 and -1 does not fit in 64 bits"},
      {Arithmetic::DivU, -2, 2, "9223372036854775807"},
      {Arithmetic::DivU, 7, 0, "7 is divided by 0"},
      {Arithmetic::CeilDivS, 7, 2, "4"},
      {Arithmetic::CeilDivS, -7, 2, "-3"},
      {Arithmetic::CeilDivS, min, -1,
       "ceildivs of -9223372036854775808 and -1 does not fit in 64 bits"},
      {Arithmetic::CeilDivU, 0, 2, "0"},
      {Arithmetic::CeilDivU, 257, 128, "3"},
      {Arithmetic::CeilDivU, 7, 0, "7 is divided by 0"},
      {Arithmetic::FloorDivS, -7, 2, "-4"},
      {Arithmetic::FloorDivS, 7, 0, "7 is divided by 0"},
      {Arithmetic::RemS, -7, 2, "-1"},
      {Arithmetic::RemS, min, -1, "0"},
      {Arithmetic::RemS, 7, 0, "7 is divided by 0"},
      {Arithmetic::RemU, -1, 10, "5"},
      {Arithmetic::RemU, 7, 0, "7 is divided by 0"},
  };
  std::map<Arithmetic, HostProgram> programs;
  for (const Case &test : cases) {
    auto [found, isNew] = programs.try_emplace(test.kind);
    HostProgram &program = found->second;
    if (isNew)
      program = compile(
          1, 2,
          [&](mlir::OpBuilder &b, mlir::ValueRange inputs) -> mlir::Value {
            return host::CheckedOp::create(b, b.getUnknownLoc(), test.kind,
                                           inputs[2], inputs[3]);
          });
    StringRef name = host::stringifyArithmetic(test.kind);
    std::string result = evaluate(program, test.a, test.b);
    check(result == test.expected,
          llvm::formatv("{0} {1}, {2} is '{3}', expected '{4}'", name, test.a,
                        test.b, result, test.expected)
              .str());

    // Folding must agree, and leave what fails to the call.
    HostProgram folded =
        compile(1, 2, [&](mlir::OpBuilder &b, mlir::ValueRange) {
          mlir::Location loc = b.getUnknownLoc();
          mlir::Value lhs = mlir::arith::ConstantIntOp::create(b, loc, test.a,
                                                               64),
                      rhs = mlir::arith::ConstantIntOp::create(b, loc, test.b,
                                                               64);
          return b.createOrFold<host::CheckedOp>(loc, test.kind, lhs, rhs);
        });
    check(evaluate(folded, 0, 0) == result, "folding of " + name + " differs");
  }

  HostProgram narrow = compile(
      1, 2, [](mlir::OpBuilder &b, mlir::ValueRange inputs) -> mlir::Value {
        return host::NarrowOp::create(b, b.getUnknownLoc(), inputs[2]);
      });
  check(evaluate(narrow, -5, 0) == "-5", "a number that fits in an i32");
  check(evaluate(narrow, INT32_MIN, 0) == "-2147483648", "the least i32");
  check(evaluate(narrow, 1LL << 31, 0) == "2147483648 does not fit in an i32",
        "a number that does not");
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

static void testTime() {
  HostProgram program =
      compile(4, 4, [](mlir::OpBuilder &b, mlir::ValueRange inputs) {
        mlir::Location loc = b.getUnknownLoc();
        mlir::Value call = b.getInsertionBlock()->getArgument(0);
        llvm::SmallVector<mlir::Value> values(inputs);
        while (values.size() < 60) {
          auto kind = values.size() % 2 ? host::Arithmetic::Add
                                        : host::Arithmetic::CeilDivS;
          values.push_back(host::CheckedOp::create(b, loc, kind, values.back(),
                                                   values[values.size() - 8]));
        }
        mlir::Value one = mlir::arith::ConstantIntOp::create(b, loc, 1, 64);
        values.insert(values.begin(), 7, one);
        host::LaunchOp::create(b, loc, call, 0, "k", values);
        return values.back();
      });
  HostProgram::Field field;
  field.abi = {AbiType::I64, AbiRole::Scalar};
  program.launches =
      getLaunchProgram(std::vector<HostProgram::Field>(60, field)).launches;
  int64_t sizes[] = {2, 4, 1000, 64}, strides[] = {256000, 64000, 64, 1};
  TensorArgument argument{0x1000, sizes, strides};
  TensorArgument arguments[] = {argument, argument, argument, argument};
  Invocation call;
  double best = 1e9;
  for (int round = 0; round != 200; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i != 100; ++i) {
      llvm::cantFail(program.prepare(arguments, call));
      llvm::cantFail(program.bind(arguments, {0x100}, {}, call, nullptr));
    }
    std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / 100);
  }
  llvm::outs() << llvm::formatv("60 values: {0:F2} us a call\n", best);
  // Far more than the 2 us that are wanted: sanitizers and busy machines.
  check(best < 200, "a call takes too long");
}

int main() {
  testArguments();
  testMessages();
  testMemory();
  testResults();
  testLaunches();
  testFields();
  testTensorMaps();
  testArithmetic();
  testTime();
  llvm::outs() << numFailures << " failures\n";
  return numFailures != 0;
}
