//===- LaunchPlanTest.cpp - Launch plans at a call ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates hand-written plans: every opcode, every error, the parameter
// buffer, and the time that a call takes.
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/LaunchPlanBuilder.h"

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
static std::string getError(const LaunchPlan &plan,
                            llvm::ArrayRef<TensorArgument> arguments) {
  Invocation call;
  llvm::Error error = plan.prepare(arguments, call);
  return error ? llvm::toString(std::move(error)) : "";
}

static void expectError(const LaunchPlan &plan,
                        llvm::ArrayRef<TensorArgument> arguments,
                        StringRef expected) {
  std::string error = getError(plan, arguments);
  check(error == expected,
        "expected '" + expected + "', but the error is '" + error + "'");
}

static LaunchPlan::Argument getArgument(llvm::ArrayRef<int64_t> sizes,
                                        llvm::ArrayRef<int64_t> strides) {
  LaunchPlan::Argument argument;
  argument.elementType = "f16";
  argument.elementBytes = 2;
  argument.sizes.assign(sizes.begin(), sizes.end());
  argument.strides.assign(strides.begin(), strides.end());
  return argument;
}

static constexpr int64_t open = LaunchPlan::dynamic;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static void testArguments() {
  LaunchPlanBuilder builder;
  builder.plan.name = "f";
  builder.plan.arguments = {getArgument({open, 64}, {open, 1}),
                            getArgument({open, open}, {open, 1})};
  builder.plan.arguments[1].isDense = true;
  builder.plan.arguments[1].alignment = 16;
  LaunchPlan plan = builder.finish();
  const int64_t sizes[2][2] = {{3, 64}, {2, 5}};
  const int64_t strides[2][2] = {{100, 1}, {5, 1}};
  TensorArgument good[] = {{0, sizes[0], strides[0]},
                           {0, sizes[1], strides[1]}};
  auto with = [&](unsigned index, llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<int64_t> strides, StringRef expected) {
    TensorArgument arguments[] = {good[0], good[1]};
    arguments[index] = {0, sizes, strides};
    expectError(plan, arguments, expected);
  };
  expectError(plan, good, "");
  expectError(plan, llvm::ArrayRef(good).drop_back(),
              "@f takes 2 arguments, but 1 are given");
  TensorArgument odd[] = {good[0], good[1]};
  odd[0].address = 1;
  odd[1].address = 24;
  expectError(plan, odd,
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
// Instructions
//===----------------------------------------------------------------------===//

/// The value of one operation on the sizes of an argument; or the error.
static std::string evaluate(Opcode opcode, int64_t a, int64_t b = 0,
                            int64_t c = 0) {
  LaunchPlanBuilder builder;
  builder.plan.arguments = {
      getArgument({open, open, open}, {open, open, open})};
  Register values[] = {builder.stride(0, 0), builder.stride(0, 1),
                       builder.stride(0, 2)};
  unsigned count = getNumOperands(opcode);
  Register result = builder.create(opcode, values[0], count > 1 ? values[1] : 0,
                                   count > 2 ? values[2] : 0);
  builder.plan.buffers = {{"f16", 2, {}, true}};
  builder.plan.results = {{0, {result}, {result}}};
  LaunchPlan plan = builder.finish();
  int64_t sizes[] = {1, 1, 1}, strides[] = {a, b, c};
  Invocation call;
  if (llvm::Error error = plan.prepare(TensorArgument{0, sizes, strides}, call))
    return llvm::toString(std::move(error));

  // Folding must agree.
  LaunchPlanBuilder folding;
  Register folded = folding.create(opcode, folding.constant(a),
                                   count > 1 ? folding.constant(b) : 0,
                                   count > 2 ? folding.constant(c) : 0);
  int64_t value = call.registers[plan.results[0].sizes[0]];
  check(folding.getConstant(folded) == value,
        "folding of " + getName(opcode) + " differs");
  return std::to_string(value);
}

static void testInstructions() {
  struct Case {
    Opcode opcode;
    int64_t a, b, c;
    StringRef expected;
  };
  constexpr int64_t min = INT64_MIN, max = INT64_MAX;
  const Case cases[] = {
      {Opcode::Add, 2, 3, 0, "5"},
      {Opcode::Add, max, 1, 0,
       "add of 9223372036854775807 and 1 does not fit in 64 bits"},
      {Opcode::Sub, 2, 3, 0, "-1"},
      {Opcode::Sub, min, 1, 0,
       "sub of -9223372036854775808 and 1 does not fit in 64 bits"},
      {Opcode::Mul, -2, 3, 0, "-6"},
      {Opcode::Mul, 1LL << 62, 2, 0,
       "mul of 4611686018427387904 and 2 does not fit in 64 bits"},
      {Opcode::DivS, -7, 2, 0, "-3"},
      {Opcode::DivS, 7, 0, 0, "7 is divided by 0"},
      {Opcode::DivS, min, -1, 0,
       "divs of -9223372036854775808 and -1 does not fit in 64 bits"},
      {Opcode::DivU, -2, 2, 0, "9223372036854775807"},
      {Opcode::DivU, 7, 0, 0, "7 is divided by 0"},
      {Opcode::CeilDivS, 7, 2, 0, "4"},
      {Opcode::CeilDivS, -7, 2, 0, "-3"},
      {Opcode::CeilDivS, min, -1, 0,
       "ceildivs of -9223372036854775808 and -1 does not fit in 64 bits"},
      {Opcode::CeilDivU, 0, 2, 0, "0"},
      {Opcode::CeilDivU, 257, 128, 0, "3"},
      {Opcode::CeilDivU, 7, 0, 0, "7 is divided by 0"},
      {Opcode::FloorDivS, -7, 2, 0, "-4"},
      {Opcode::FloorDivS, 7, 0, 0, "7 is divided by 0"},
      {Opcode::RemS, -7, 2, 0, "-1"},
      {Opcode::RemS, min, -1, 0, "0"},
      {Opcode::RemS, 7, 0, 0, "7 is divided by 0"},
      {Opcode::RemU, -1, 10, 0, "5"},
      {Opcode::RemU, 7, 0, 0, "7 is divided by 0"},
      {Opcode::MinS, -1, 2, 0, "-1"},
      {Opcode::MinU, -1, 2, 0, "2"},
      {Opcode::MaxS, -1, 2, 0, "2"},
      {Opcode::MaxU, -1, 2, 0, "-1"},
      {Opcode::And, 6, 3, 0, "2"},
      {Opcode::Or, 6, 3, 0, "7"},
      {Opcode::Xor, 6, 3, 0, "5"},
      {Opcode::Equal, 3, 3, 0, "1"},
      {Opcode::NotEqual, 3, 3, 0, "0"},
      {Opcode::LessS, -1, 3, 0, "1"},
      {Opcode::LessU, -1, 3, 0, "0"},
      {Opcode::LessEqualS, 3, 3, 0, "1"},
      {Opcode::LessEqualU, -1, 3, 0, "0"},
      {Opcode::Select, 1, 5, 6, "5"},
      {Opcode::Select, 0, 5, 6, "6"},
      {Opcode::ToI32, -5, 0, 0, "-5"},
      {Opcode::ToI32, 1LL << 31, 0, 0, "2147483648 does not fit in an i32"},
  };
  for (const Case &test : cases) {
    std::string result = evaluate(test.opcode, test.a, test.b, test.c);
    check(result == test.expected,
          llvm::formatv("{0} {1}, {2}, {3} is '{4}', expected '{5}'",
                        getName(test.opcode), test.a, test.b, test.c, result,
                        test.expected)
              .str());
  }
}

static void testBuilder() {
  LaunchPlanBuilder builder;
  builder.plan.arguments = {getArgument({open}, {1})};
  Register n = builder.size(0, 0), zero = builder.constant(0),
           one = builder.constant(1);
  check(builder.stride(0, 0) == one, "a known stride is a constant");
  check(builder.create(Opcode::Add, zero, n) == n, "0 + n");
  check(builder.create(Opcode::Sub, n, zero) == n, "n - 0");
  check(builder.create(Opcode::Mul, n, one) == n, "n * 1");
  check(builder.create(Opcode::Mul, n, zero) == zero, "n * 0");
  check(builder.create(Opcode::Equal, n, n) == one, "n == n");
  check(builder.create(Opcode::Select, one, n, zero) == n, "true ? n : 0");
  Register twice = builder.create(Opcode::Add, n, n);
  check(builder.create(Opcode::Add, n, n) == twice, "equal instructions");
  builder.assertTrue(one, "never");
  builder.assertTrue(n, "n is 0");
  LaunchPlan plan = builder.finish();
  check(plan.instructions.size() == 2 && plan.messages.size() == 1,
        "what nothing needs is dropped");
  int64_t empty[] = {0}, stride[] = {1};
  expectError(plan, TensorArgument{0, empty, stride}, "n is 0");
}

//===----------------------------------------------------------------------===//
// Buffers and launches
//===----------------------------------------------------------------------===//

/// Sizes as arguments: a plan with one buffer of [a, b] and one launch on a
/// grid of [a, b, c] with blocks of [d, e, f] and g bytes of shared memory.
static LaunchPlan getLaunchPlan() {
  LaunchPlanBuilder builder;
  llvm::SmallVector<int64_t, 8> unknown(7, open);
  builder.plan.arguments = {getArgument(unknown, unknown)};
  Register values[7];
  for (unsigned d = 0; d != 7; ++d)
    values[d] = builder.stride(0, d);
  builder.plan.buffers = {{"f32", 4, {builder.size(0, 0), builder.size(0, 1)}}};
  LaunchPlan::Launch launch;
  launch.module = "m";
  launch.kernel = "k";
  std::copy_n(values, 3, launch.grid);
  std::copy_n(values + 3, 3, launch.block);
  launch.sharedBytes = values[6];
  LaunchPlan::Field field;
  auto add = [&](AbiField abi, Register value) {
    field.abi = abi;
    field.value = value;
    builder.addField(launch, field);
    ++field.operand;
  };
  field.isArgument = true;
  field.elementBytes = 2;
  add({AbiType::I32, AbiRole::Scalar}, values[0]);
  add({AbiType::Pointer, AbiRole::Pointer}, values[1]);
  add({AbiType::F32, AbiRole::Scalar}, builder.constant(0x3f800000));
  add({AbiType::I64, AbiRole::Stride, 3}, values[6]);
  field.isArgument = false;
  field.elementBytes = 4;
  add({AbiType::Pointer, AbiRole::Pointer}, builder.constant(0));
  add({AbiType::I32, AbiRole::Size, 2}, values[2]);
  builder.plan.launches = {launch};
  return builder.finish();
}

static void testLaunches() {
  LaunchPlan plan = getLaunchPlan();
  int64_t ones[] = {3, 5, 1, 1, 1, 1, 1};
  TensorArgument argument{0x1000, ones, {}};
  auto with = [&](llvm::ArrayRef<int64_t> strides, StringRef expected) {
    // The size of one dimension is 0, so that strides are free.
    int64_t sizes[] = {0, 1, 1, 1, 1, 1, 1};
    expectError(plan, TensorArgument{0, sizes, strides}, expected);
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

  int64_t strides[] = {7, 2, 1, 32, 4, 1, 100};
  argument.strides = strides;
  Invocation call;
  // The second time, memory is used again.
  for (uint64_t address : {0x10, 0x20}) {
    argument.address = address;
    llvm::cantFail(plan.prepare(argument, call));
    uint64_t buffers[] = {address << 32};
    llvm::cantFail(plan.bind(argument, buffers, call, nullptr));
    check(call.bufferBytes.size() == 1 && call.bufferBytes[0] == 60,
          "bytes of a buffer");
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
    check(plan.launches[0].parameterBytes == 44 &&
              call.parameters.size() == launch.firstByte + 44,
          "bytes of parameters");
    std::memcpy(&parameters, call.parameters.data() + launch.firstByte, 44);
    check(parameters.scalar == 7 && parameters.pointer == address + 4 &&
              parameters.one == 1.0f && parameters.stride == 100 &&
              parameters.buffer == buffers[0] && parameters.size == 1,
          "parameters");
  }
  strides[2] = 0;
  llvm::cantFail(plan.prepare(argument, call));
  check(call.launches.empty() && call.parameters.empty(),
        "a launch without blocks");
}

/// One field of each kind with one value, taken from a stride.
static void testFields() {
  auto with = [](AbiField abi, int64_t value, StringRef expected) {
    LaunchPlanBuilder builder;
    builder.plan.arguments = {getArgument({open}, {open})};
    LaunchPlan::Launch launch;
    launch.kernel = "k";
    Register one = builder.constant(1);
    std::fill_n(launch.grid, 3, one);
    std::fill_n(launch.block, 3, one);
    launch.sharedBytes = builder.constant(0);
    LaunchPlan::Field field;
    field.abi = abi;
    field.value = builder.stride(0, 0);
    field.isArgument = true;
    field.elementBytes = 2;
    builder.addField(launch, field);
    builder.plan.launches = {launch};
    int64_t size[] = {1}, stride[] = {value};
    expectError(builder.finish(), TensorArgument{0, size, stride}, expected);
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
  LaunchPlanBuilder builder;
  builder.plan.arguments = {getArgument({open, open, 64}, {open, open, open})};
  LaunchPlan::TensorMapRecipe recipe;
  recipe.sizes = {builder.size(0, 0), builder.size(0, 1), builder.size(0, 2)};
  recipe.strides = {builder.stride(0, 0), builder.stride(0, 1),
                    builder.stride(0, 2)};
  recipe.box = {1, 128, 64};
  recipe.swizzleBytes = 128;
  recipe.l2PromotionBytes = 256;
  builder.plan.tensorMaps = {recipe};
  LaunchPlan::Launch launch;
  launch.kernel = "k";
  Register one = builder.constant(1);
  std::fill_n(launch.grid, 3, one);
  std::fill_n(launch.block, 3, one);
  launch.sharedBytes = builder.constant(0);
  for (AbiField abi : {AbiField{AbiType::I32, AbiRole::Scalar},
                       AbiField{AbiType::TensorMap, AbiRole::TensorMap},
                       AbiField{AbiType::I32, AbiRole::Scalar}}) {
    LaunchPlan::Field field;
    field.abi = abi;
    field.operand = launch.fields.size();
    field.isArgument = true;
    field.elementBytes = 2;
    bool isMap = abi.type == AbiType::TensorMap;
    field.value = isMap ? builder.stride(0, 0) : one;
    builder.addField(launch, field);
  }
  builder.plan.launches = {launch};
  LaunchPlan plan = builder.finish();
  check(plan.launches[0].fields[1].byteOffset == 64 &&
            plan.launches[0].fields[2].byteOffset == 192 &&
            plan.launches[0].parameterBytes == 196,
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
    llvm::Error error = plan.prepare(argument, call);
    if (!error)
      error = plan.bind(argument, {}, call, encode);
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
  llvm::SmallVector<const void *> pointers = plan.getPointers(call, 0);
  check(plan.launches[0].hasTensorMaps() && pointers.size() == 3 &&
            pointers[0] == parameters && pointers[1] == parameters + 64 &&
            pointers[2] == parameters + 192,
        "pointers to parameters");
  uint64_t word;
  std::memcpy(&word, parameters + 64 + 120, 8);
  check(word == 0x1000 + 2 * 21312, "the bytes of the map");
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

static void testBuffers() {
  LaunchPlanBuilder builder;
  builder.plan.arguments = {getArgument({open, open}, {open, open})};
  builder.plan.buffers = {
      {"f32", 4, {builder.stride(0, 0), builder.stride(0, 1)}}};
  LaunchPlan plan = builder.finish();
  auto with = [&](int64_t a, int64_t b, StringRef expected) {
    int64_t sizes[] = {0, 0}, strides[] = {a, b};
    expectError(plan, TensorArgument{0, sizes, strides}, expected);
  };
  with(2, 3, "");
  with(-2, 0, "buffer 0: the size of dimension 0 is -2, a negative number");
  with(1LL << 31, 1LL << 31,
       "buffer 0: the number of bytes does not fit in 64 bits");
  with(1LL << 62, 0, "");
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

static void testTime() {
  LaunchPlanBuilder builder;
  llvm::SmallVector<int64_t, 4> unknown(4, open);
  for (unsigned i = 0; i != 4; ++i)
    builder.plan.arguments.push_back(getArgument(unknown, unknown));
  llvm::SmallVector<Register> values;
  for (unsigned i = 0; i != 4; ++i)
    for (unsigned d = 0; d != 4; ++d) {
      values.push_back(builder.size(i, d));
      values.push_back(builder.stride(i, d));
    }
  while (builder.plan.instructions.size() < 60)
    values.push_back(
        builder.create(values.size() % 2 ? Opcode::Add : Opcode::CeilDivS,
                       values.back(), values[values.size() - 8]));
  LaunchPlan::Launch launch;
  Register one = builder.constant(1);
  std::fill_n(launch.grid, 3, one);
  std::fill_n(launch.block, 3, one);
  launch.sharedBytes = one;
  for (Register value : values) {
    LaunchPlan::Field field;
    field.abi = {AbiType::I64, AbiRole::Scalar};
    field.value = value;
    builder.addField(launch, field);
  }
  builder.plan.launches = {launch};
  LaunchPlan plan = builder.finish();

  int64_t sizes[] = {2, 4, 1000, 64}, strides[] = {256000, 64000, 64, 1};
  TensorArgument argument{0x1000, sizes, strides};
  TensorArgument arguments[] = {argument, argument, argument, argument};
  Invocation call;
  double best = 1e9;
  for (int round = 0; round != 200; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i != 100; ++i) {
      llvm::cantFail(plan.prepare(arguments, call));
      llvm::cantFail(plan.bind(arguments, {}, call, nullptr));
    }
    std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / 100);
  }
  llvm::outs() << llvm::formatv("{0} instructions: {1:F2} us a call\n",
                                plan.instructions.size(), best);
  // Far more than the 2 us that are wanted: sanitizers and busy machines.
  check(best < 200, "a call takes too long");
}

int main() {
  testArguments();
  testInstructions();
  testBuilder();
  testLaunches();
  testFields();
  testTensorMaps();
  testBuffers();
  testTime();
  llvm::outs() << numFailures << " failures\n";
  return numFailures != 0;
}
