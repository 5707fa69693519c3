//===- CudaModuleTest.cpp - Programs, kernels, launches -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRuntimeTest.h"

#include "llvm/BinaryFormat/ELF.h"
#include <cstring>
#include <thread>

using namespace cudatest;
using namespace flash::cuda;
using llvm::StringRef;

/// A cubin's header with one section.
static std::string makeCubin() {
  llvm::ELF::Elf64_Ehdr header = {};
  std::copy_n(llvm::ELF::ElfMagic, 4, header.e_ident);
  header.e_ident[llvm::ELF::EI_CLASS] = llvm::ELF::ELFCLASS64;
  header.e_shoff = sizeof(header);
  header.e_shnum = 1;
  header.e_shentsize = sizeof(llvm::ELF::Elf64_Shdr);
  llvm::ELF::Elf64_Shdr section = {};
  section.sh_type = llvm::ELF::SHT_PROGBITS;
  section.sh_offset = sizeof(header) + sizeof(section);
  section.sh_size = 16;
  std::string cubin(reinterpret_cast<char *>(&header), sizeof(header));
  cubin.append(reinterpret_cast<char *>(&section), sizeof(section));
  return cubin + std::string(16, 'x');
}

static void testImages(const Device &device) {
  auto refuse = [&](StringRef image, StringRef why) {
    checkError(Module::load(device, image, "a"), ErrorKind::InvalidProgram,
               {"cannot load 'a': ", why});
  };
  refuse("", "it is empty");
  refuse("no program", "neither PTX text (there is no .version) nor a cubin");
  refuse(StringRef(".version\0", 9), "a zero byte, as this does at offset 8");
  std::string cubin = makeCubin();
  get(Module::load(device, cubin, "whole"));
  for (size_t size = 4; size < cubin.size(); ++size)
    refuse(StringRef(cubin).take_front(size), "truncated or damaged");
  for (size_t byte : {4, 40, 58, 60}) { // class, e_shoff, e_shentsize, e_shnum
    std::string damaged = cubin;
    damaged[byte] = 0x7f;
    refuse(damaged, "truncated or damaged");
  }
}

void cudatest::testModule() {
  Device device = openDevice();
  testImages(device);
  auto refuse = [&](int result, StringRef log, ErrorKind kind,
                    llvm::ArrayRef<StringRef> parts, StringRef image = ptx) {
    getFake().errorLog = log.str();
    Failing failing("cuModuleLoadDataEx", result);
    checkError(Module::load(device, image, "a.ptx"), kind, parts);
  };
  refuse(222, "", ErrorKind::DriverTooOld,
         {"cannot load 'a.ptx': the driver (CUDA 12.8) is too old for PTX 8.7; "
          "update it, or make a cubin with ptxas --gpu-name=sm_90a; "
          "cuModuleLoadDataEx failed with CUDA_ERROR_UNSUPPORTED_PTX_VERSION"});
  refuse(218, "fatal : Unsupported .version 8.7", ErrorKind::DriverTooOld,
         {"too old for PTX 8.7", "218:\nfatal : Unsupported"});
  refuse(218, "line 3; error\n\n", ErrorKind::InvalidProgram,
         {"finds errors in the PTX", ":\nline 3; error"});
  refuse(209, "", ErrorKind::InvalidProgram,
         {"PTX for sm_90a does not run on Fake GPU (sm_90)"});
  refuse(209, "", ErrorKind::InvalidProgram, {"this cubin does not run on"},
         makeCubin());
  refuse(200, "", ErrorKind::InvalidProgram, {"does not know this format"});
  for (int result : {221, 223})
    refuse(result, "", ErrorKind::DriverFailure,
           {"libnvidia-ptxjitcompiler.so.1", "ptxas --gpu-name=sm_90a"});
  refuse(2, "", ErrorKind::OutOfMemory, {"cannot load 'a.ptx'"});
  refuse(999, "", ErrorKind::DriverFailure, {"CUDA_ERROR_UNKNOWN"});
  refuse(222, "", ErrorKind::DriverTooOld, {"too old for PTX ;"}, ".version");

  Module module = get(Module::load(device, ptx, "a.ptx"));
  check(module.getLog() == "ptxas info    : Used 168 registers", "log");
  checkError(module.getFunction("no"), ErrorKind::InvalidRequest,
             {"'a.ptx' has no kernel 'no'"});
  for (const char *call :
       {"cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncGetParamInfo"}) {
    Failing failing(call, 999);
    checkError(module.getFunction("fill"), ErrorKind::DriverFailure,
               {"cannot get kernel 'fill' of 'a.ptx'", call});
  }
}

void cudatest::testFunction() {
  Device device = openDevice();
  // The function outlives its module.
  getFake().calls.clear();
  Function function = getFunction(device, "fill");
  check(getFake().modules == 1, "the kernel keeps its module");
  const FunctionInfo &info = function.getInfo();
  check(info.name == "fill" && info.registers == 168 && info.localBytes == 8 &&
            info.staticSharedBytes == 1024 && info.constantBytes == 16 &&
            info.maxThreads == 384 && info.binaryVersion == 90 &&
            info.ptxVersion == 80 && info.parameters == 3 &&
            info.parameterBytes == 17,
        "attributes");
  // One past the last would be an error to a tool that watches the driver.
  check(getFake().calls["cuFuncGetParamInfo"] == 1, "only the last parameter");

  LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.dynamicSharedBytes = 100000;
  checkError(function.getOccupancy(shape), ErrorKind::InvalidRequest,
             {"kernel 'fill': it has 100000 bytes of dynamic shared memory",
              "0 to 48128 are allowed (setDynamicSharedLimit)"});
  checkError(function.setDynamicSharedLimit(231425), ErrorKind::InvalidRequest,
             {"kernel 'fill' needs 232449 bytes of shared memory (1024 static, "
              "231425 dynamic), but Fake GPU has 232448 for a block"});
  checkError(function.setDynamicSharedLimit(INT64_MAX - 2000),
             ErrorKind::InvalidRequest, {"smaller tiles"});
  checkError(function.setDynamicSharedLimit(-1), ErrorKind::InvalidRequest,
             {"-1 bytes"});
  {
    Failing failing("cuFuncSetAttribute", 999);
    checkError(function.setDynamicSharedLimit(1), ErrorKind::DriverFailure,
               {"cannot set the shared memory of kernel 'fill'"});
  }
  checkSuccess(function.setDynamicSharedLimit(231424), "the whole block");
  check(get(function.getOccupancy(shape)) == 2, "occupancy");
  {
    Failing failing("cuOccupancyMaxActiveBlocksPerMultiprocessor", 999);
    checkError(function.getOccupancy(shape), ErrorKind::DriverFailure,
               {"cannot query the occupancy of kernel 'fill'"});
  }
}

void cudatest::testLaunch() {
  Device device = openDevice();
  Function fill = getFunction(device, "fill");
  int64_t value = 0;
  auto refuse = [&](const LaunchShape &shape, StringRef why) {
    checkError(fill.launch(shape, {&value, &value, &value}),
               ErrorKind::InvalidRequest,
               {"cannot launch kernel 'fill': ", why});
  };
  refuse({{0, 1, 1}, {1, 1, 1}, 0},
         "its grid has 0 blocks along x; Fake GPU takes 1 to 2147483647");
  refuse({{1, 65536, 1}, {1, 1, 1}, 0}, "65536 blocks along y");
  refuse({{1, 1, INT64_MAX}, {1, 1, 1}, 0}, "9223372036854775807 blocks");
  refuse({{1, 1, 1}, {1, 1, 65}, 0},
         "its blocks have 65 threads along z; Fake GPU takes 1 to 64");
  refuse({{1, 1, 1}, {-1, 1, 1}, 0}, "-1 threads along x");
  refuse({{1, 1, 1}, {385, 1, 1}, 0},
         "385 threads; with 168 registers per thread and its declared bounds "
         "it takes up to 384");
  refuse({{1, 1, 1}, {1, 1, 1}, -1}, "-1 bytes of dynamic shared memory");
  checkError(fill.launch({}, {}), ErrorKind::InvalidRequest,
             {"it has 3 parameters, 0 arguments are given"});
  checkError(fill.launch({}, {&value, nullptr, &value}),
             ErrorKind::InvalidRequest, {"argument 1 is null"});
  {
    Failing failing("cuLaunchKernel", 999);
    checkError(launchFill(fill, 0, 0, 0), ErrorKind::DriverFailure,
               {"cannot launch kernel 'fill': cuLaunchKernel failed"});
  }

  DeviceBuffer buffer = get(DeviceBuffer::allocate(device, "b", 16));
  checkSuccess(launchFill(fill, buffer.getAddress(), 16, 7), "launch");
  std::vector<char> bytes(16);
  checkSuccess(buffer.copyToHost(bytes), "copy");
  check(bytes == std::vector<char>(16, 7), "the kernel's work");

  std::vector<char> packed(17, 9);
  uint64_t address = buffer.getAddress(), count = 16;
  std::memcpy(packed.data(), &address, 8);
  std::memcpy(packed.data() + 8, &count, 8);
  checkSuccess(fill.launchPacked({}, packed), "launch");
  checkSuccess(buffer.copyToHost(bytes), "copy");
  check(bytes == std::vector<char>(16, 9), "parameters in a buffer");
  packed.pop_back();
  checkError(fill.launchPacked({}, packed), ErrorKind::InvalidRequest,
             {"cannot launch kernel 'fill': its parameters fill 17 bytes, 16 "
              "are given"});
  checkError(fill.launchPacked({{0, 1, 1}}, packed), ErrorKind::InvalidRequest,
             {"0 blocks along x"});

  // In either way to pass parameters.
  getFake().dependents.clear();
  LaunchShape dependent{{2, 3, 4}, {5, 6, 7}, 0, /*isDependent=*/true};
  packed.push_back(0);
  checkSuccess(fill.launchPacked(dependent, packed), "a dependent launch");
  uint8_t byte = 5;
  checkSuccess(fill.launch(dependent, {&address, &count, &byte}), "another");
  std::pair<std::string, std::vector<unsigned>> asked = {"fill",
                                                         {2, 3, 4, 5, 6, 7, 0}};
  check(getFake().dependents == std::vector{asked, asked},
        "both are dependent");
  checkSuccess(buffer.copyToHost(bytes), "copy");
  check(bytes == std::vector<char>(16, 5), "the dependent kernel's work");
  {
    Failing failing("cuLaunchKernelEx", 999);
    checkError(fill.launchPacked(dependent, packed), ErrorKind::DriverFailure,
               {"cannot launch kernel 'fill': cuLaunchKernelEx failed"});
  }

  // Another thread has no current context until the runtime sets it.
  std::thread([&] {
    checkSuccess(launchFill(fill, buffer.getAddress(), 16, 8), "thread");
  }).join();
}

void cudatest::testDriverBefore12() {
  auto driver = get(Driver::load(FAKE_CUDA_BEFORE12_PATH));
  Device device = get(Device::open(driver));
  Function fill = getFunction(device, "fill");
  check(fill.getInfo().parameters == 3 && !fill.getInfo().parameterBytes,
        "parameters of unknown size");
  Function function = getFunction(device, "nop");
  checkSuccess(function.launch({}, {}), "launch");
  checkSuccess(function.launchPacked({}, {}), "the same");
  checkSuccess(
      function.launch({{1, 1, 1}, {1, 1, 1}, 0, /*isDependent=*/true}, {}),
      "an ordinary launch in place of a dependent one");
  BufferOptions options;
  options.redZoneBytes = 256;
  options.guard = Guard::Start;
  DeviceBuffer buffer = get(DeviceBuffer::allocate(device, "b", 8, options));
  checkSuccess(buffer.checkRedZones(), "an ordinary buffer for a guarded one");
}
