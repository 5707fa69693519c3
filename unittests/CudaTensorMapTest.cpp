//===- CudaTensorMapTest.cpp - Limits and order of tensor maps ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRuntimeTest.h"
#include "flash/Runtime/Cuda/TensorMap.h"
#include "flash/Runtime/HostCall.h"

using namespace cudatest;
using namespace flash::cuda;
using llvm::StringRef;

/// A program whose kernel takes a map and no bytes to fill: encoded when
/// addresses are bound, not when it is launched.
static void testProgram(const Device &device) {
  using flash::AbiRole;
  using flash::AbiType;
  flash::runtime::HostProgram program;
  program.arguments.resize(1);
  flash::runtime::HostProgram::Launch launch;
  launch.kernel = "fill";
  flash::runtime::HostProgram::Field field;
  field.abi = {AbiType::TensorMap, AbiRole::TensorMap};
  field.owner = "operand 0";
  flash::runtime::HostProgram::TensorMapRecipe recipe;
  recipe.box = {8, 64};
  launch.addTensorMap(field, recipe);
  field.abi = {AbiType::I64, AbiRole::Scalar};
  launch.addField(field);
  field.abi = {AbiType::I32, AbiRole::Scalar};
  launch.addField(field);
  program.launches = {launch};
  program.function = [](flash::runtime::HostCall *call) {
    // Grid, block, no shared memory; address, sizes and strides; two scalars.
    const int64_t values[] = {1, 1,   1,  1,  1, 1, 0, call->inputs[1],
                              0, 100, 64, 64, 1, 0, 0};
    return flash_host_launch(call, 0, values);
  };

  flash::runtime::TensorArgument argument;
  flash::runtime::Invocation call;
  auto bind = [&](uint64_t address) {
    argument.address = address;
    return program.bind(
        argument, {}, {}, call,
        [&](const llvm::Twine &name, const TensorMapOptions &options) {
          return encodeTensorMap(device, name, options);
        });
  };
  checkSuccess(program.prepare(argument, call), "prepare");
  unsigned &count = getFake().calls["cuTensorMapEncodeTiled"];
  count = 0;
  checkSuccess(bind(0x4560), "bind");
  uint64_t words[3];
  std::memcpy(words, call.parameters.data(), sizeof(words));
  check(words[0] == 6 && words[2] == 0x4560, "the map among the parameters");
  Function function = getFunction(device, "fill");
  for (int i = 0; i != 2; ++i)
    checkSuccess(function.launch({}, program.getPointers(call, 0)), "launch");
  check(count == 1, "encoded once");
  Failing failing("cuTensorMapEncodeTiled", 1);
  checkError(bind(0x10), ErrorKind::DriverFailure,
             {"cannot make the tensor map '@fill, operand 0': "});
}

void cudatest::testTensorMap() {
  Device device = openDevice();
  testProgram(device);
  std::vector<int64_t> sizes = {4, 333, 128}, strides = {85248, 256},
                       box = {1, 64, 64};
  TensorMapOptions options;
  options.element = TensorMapElement::BF16;
  options.address = 0x1230;
  options.swizzleBytes = 128;
  auto encode = [&] {
    options.sizes = sizes;
    options.byteStrides = strides;
    options.box = box;
    return encodeTensorMap(device, "k", options);
  };
  TensorMap map = get(encode());
  uint64_t expected[] = {9,     3,  0x1230, 128, 333, 4, 256,
                         85248, 64, 64,     1,   1,   1, 1};
  check(std::equal(std::begin(expected), std::end(expected), map.words),
        "what the driver is given");

  auto refuse = [&](auto &member, auto value, StringRef why) {
    auto old = std::exchange(member, value);
    checkError(encode(), ErrorKind::InvalidRequest,
               {"cannot make the tensor map 'k': ", why});
    member = old;
  };
  using List = std::vector<int64_t>;
  refuse(sizes, List(), "it has 0 dimensions; 1 to 5 are possible");
  refuse(sizes, List(6, 16), "it has 6 dimensions");
  refuse(strides, List(1, 16), "3 sizes need 2 strides and 3 sizes of the box");
  refuse(box, List(2, 16), "3 sizes need 2 strides");
  refuse(options.address, uint64_t(8), "its address 0x8 is no multiple of 16");
  refuse(sizes, List{0, 1, 1}, "the size of dimension 0 is 0; 1 to 2^32");
  refuse(sizes, List{(int64_t(1) << 32) + 1, 1, 1},
         "size of dimension 0 is 4294967297");
  refuse(strides, List{16, 24}, "the stride of dimension 1 is 24 bytes");
  refuse(strides, List{-16, 16}, "the stride of dimension 0 is -16 bytes");
  refuse(strides, List{int64_t(1) << 40, 16}, "below 2^40");
  refuse(box, List{1, 257, 64}, "has a size of 257 in dimension 1; 1 to 256");
  refuse(box, List{0, 1, 64}, "the box has a size of 0 in dimension 0");
  refuse(options.swizzleBytes, 48, "there is no swizzle of 48 bytes");
  refuse(options.l2PromotionBytes, 32, "there is no L2 promotion of 32 bytes");
  refuse(box, List{1, 64, 4}, "a row of the box has 8 bytes; it must be a");
  refuse(box, List{1, 64, 72}, "has 144 bytes, more than the swizzle's 128");
  {
    Failing failing("cuTensorMapEncodeTiled", 999);
    checkError(encode(), ErrorKind::DriverFailure,
               {"cannot make the tensor map 'k': cuTensorMapEncodeTiled"});
  }
  getFake().major = 8;
  device = openDevice();
  getFake().major = 9;
  checkError(encode(), ErrorKind::InvalidRequest,
             {"Fake GPU (sm_80) has none; sm_90 and later do"});
  device = get(Device::open(get(Driver::load(FAKE_CUDA_BEFORE12_PATH))));
  checkError(encode(), ErrorKind::DriverTooOld,
             {"the driver (CUDA 12.8) is too old; update it to 12.0"});
}
