//===- CHeader.cpp - Host programs as C headers ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program as C, and what HostCall.cpp does for it in the process: the same
// checks in the same order, but messages without the values.
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/CHeader.h"

#include "CHeaderText.h"
#include "flash/Runtime/LaunchLimits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash;
using namespace flash::runtime;
using llvm::ArrayRef;
using llvm::formatv;
using llvm::StringRef;
using llvm::Twine;

namespace {
class HeaderPrinter : CheckPrinter {
public:
  HeaderPrinter(const HostProgram &program, StringRef name,
                llvm::raw_ostream &os);
  void print(StringRef code, const KernelImage &image,
             const KernelOrigin &origin);

private:
  void printOrigin(const KernelOrigin &origin);
  void printComment(const KernelOrigin &origin);
  void printTypes();
  void printText(StringRef text);
  void printImage(const KernelImage &image);
  void printLoad(const KernelImage &image);
  void printShapes();
  void printPackedParameters(const HostProgram::Launch &launch);
  void printParameterPointers(const HostProgram::Launch &launch);
  bool hasDependentLaunches() const;
  /// Whether a kernel reads the argument by a tensor map.
  bool hasTensorMap(unsigned argument) const;
  void printDependentLaunch();
  void printLaunch(unsigned number);
  void printWorkspace();
  void printLaunchFunction();
  /// The parameters for arguments, with a comma after each, and for results if
  /// they have a type.
  void printParameters(StringRef resultType);
  void printList(StringRef head, ArrayRef<std::string> names);
  static std::string getValue(const HostProgram::Field &field, unsigned first);
  unsigned getFunction(const HostProgram::Launch &launch) {
    return llvm::find(kernels, launch.kernel) - kernels.begin();
  }
  /// The most that its launches are known to need; others request it when they
  /// are made.
  int64_t getSharedBytes(StringRef kernel) {
    int64_t most = 0;
    for (const HostProgram::Launch &launch : program.launches)
      if (launch.kernel == kernel)
        most = std::max(most, launch.sharedBytes);
    return most;
  }
  static bool isText(StringRef image) { return !image.contains('\0'); }

  /// Each kernel once.
  std::vector<StringRef> kernels;
  /// Names of the parameters.
  std::vector<std::string> argumentNames, resultNames;
};
} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Whether something else in the header, in C, C++ or their libraries may have
/// the name.
static bool isTaken(StringRef candidate, StringRef name) {
  static const llvm::StringSet<> taken = {
      // Names in the functions that have parameters of the program's names.
      "arguments", "call", "message", "module", "result", "results", "stream",
      "workspace", "workspaceBytes",
      // Macros of compilers, and of headers.
      "NULL", "i386", "linux", "offsetof", "unix",
      // Keywords.
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
      "bool", "break", "case", "catch", "char", "char16_t", "char32_t",
      "char8_t", "class", "co_await", "co_return", "co_yield", "compl",
      "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
      "continue", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false",
      "float", "for", "friend", "goto", "if", "inline", "int", "long",
      "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
      "operator", "or", "or_eq", "private", "protected", "public", "register",
      "reinterpret_cast", "requires", "restrict", "return", "short", "signed",
      "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
      "template", "this", "thread_local", "throw", "true", "try", "typedef",
      "typeid", "typename", "typeof", "typeof_unqual", "union", "unsigned",
      "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
      "xor_eq"};
  return taken.contains(candidate) ||
         candidate.starts_with((name + "_").str()) ||
         candidate.starts_with("cu") || candidate.starts_with("CU") ||
         candidate.starts_with("INT") || candidate.starts_with("UINT") ||
         candidate.starts_with("SIZE_") || candidate.starts_with("PTRDIFF_") ||
         candidate.ends_with("_t");
}

/// The name of a parameter: that of the program where C allows it.
static std::string getIdentifier(StringRef wanted, StringRef prefix,
                                 unsigned index, StringRef name) {
  std::string result = wanted.str();
  for (char &c : result)
    if (!llvm::isAlnum(c))
      c = '_';
  if (result.empty())
    return (prefix + Twine(index)).str();
  // Names that start with _ may be the compiler's.
  if (!llvm::isAlpha(result.front()))
    result = (prefix + result).str();
  if (isTaken(result, name))
    result += '_';
  return result;
}

HeaderPrinter::HeaderPrinter(const HostProgram &program, StringRef name,
                             llvm::raw_ostream &os)
    : CheckPrinter(program, name, os) {
  for (const HostProgram::Launch &launch : program.launches)
    if (!llvm::is_contained(kernels, launch.kernel))
      kernels.push_back(launch.kernel);
  llvm::StringSet<> seen;
  auto add = [&](std::string identifier) {
    std::string unique = identifier;
    for (unsigned i = 2; !seen.insert(unique).second; ++i)
      unique = (identifier + "_" + Twine(i)).str();
    return unique;
  };
  for (size_t i = 0; i != program.results.size(); ++i)
    resultNames.push_back(add(("result" + Twine(i)).str()));
  for (auto [i, argument] : llvm::enumerate(program.arguments))
    argumentNames.push_back(
        add(getIdentifier(argument.name, "argument", i, name)));
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// A line of a comment: what would end it, or is none of a text, is changed.
static std::string getCommentText(StringRef text) {
  std::string result;
  for (char c : text.rtrim()) {
    char last = result.empty() ? '\0' : result.back();
    if ((last == '*' && c == '/') || (last == '/' && c == '*'))
      result += ' ';
    bool isControl = static_cast<unsigned char>(c) < ' ' && c != '\t';
    result += isControl || c == '\x7f' ? ' ' : c;
  }
  return result;
}

void HeaderPrinter::printOrigin(const KernelOrigin &origin) {
  os << "/* Launches the compiled function '" << name << "'";
  if (!origin.target.empty())
    os << " on " << origin.target;
  os << ". Generated by "
     << (origin.compiler.empty() ? "flash-mlir" : origin.compiler) << ".\n";
  if (!origin.versions.empty())
    os << " * Versions: for calls of " << getCommentText(origin.versions)
       << " and, with the last schedule, for others.\n";
  for (const std::string &schedule : origin.schedules)
    os << " * Schedule: " << getCommentText(schedule) << "\n";
  if (!origin.file.empty())
    os << " * Source: " << getCommentText(origin.file) << "\n";
  if (!origin.program.empty()) {
    os << " *\n";
    for (StringRef text : llvm::split(origin.program.rtrim(), '\n'))
      os << " *     " << getCommentText(text) << "\n";
  }
  os << " *\n";
}

bool HeaderPrinter::hasTensorMap(unsigned argument) const {
  auto isOne = [&](const HostProgram::Field &field) {
    return field.abi.type == AbiType::TensorMap &&
           field.argument == int(argument);
  };
  return llvm::any_of(program.launches, [&](const HostProgram::Launch &launch) {
    return llvm::any_of(launch.fields, isOne);
  });
}

bool HeaderPrinter::hasDependentLaunches() const {
  return llvm::any_of(program.launches, [](const HostProgram::Launch &launch) {
    return launch.isDependent;
  });
}

void HeaderPrinter::printComment(const KernelOrigin &origin) {
  printOrigin(origin);
  line(" * Needs the CUDA driver's header, and libcuda to link. Every function "
       "returns");
  line(" * CUDA_SUCCESS or an error; *message (where message is not NULL) is "
       "then");
  line(" * its description.");
  line(" *");
  line(" * Tensors lie in device memory; strides count elements. Sizes and "
       "strides");
  line(" * ('?': any; '8n': any multiple of 8; strides of dimensions of size "
       "1, and of tensors");
  line(" * without elements, do not matter):");
  auto list = [](llvm::ArrayRef<int64_t> values) {
    std::string text;
    for (int64_t value : values)
      text += (text.empty() ? "" : ", ") +
              (value == HostProgram::dynamic ? "?" : std::to_string(value));
    return "[" + text + "]";
  };
  for (auto [i, argument] : llvm::enumerate(program.arguments)) {
    int64_t alignment = argument.alignment;
    if (hasTensorMap(i))
      alignment = std::max<int64_t>(alignment, tensorMapAlignment);
    std::string strides = list(argument.strides);
    // Copies of more than an element are of rows that begin at a multiple.
    if (alignment > argument.elementBytes && !argument.isDense &&
        !argument.strides.empty()) {
      strides = "[";
      for (int64_t stride : llvm::ArrayRef(argument.strides).drop_back())
        strides +=
            stride == HostProgram::dynamic
                ? std::to_string(alignment / argument.elementBytes) + "n, "
                : std::to_string(stride) + ", ";
      strides += "1]";
    }
    os << formatv(" *   {0}: {1}, sizes {2}, strides {3}{4}, aligned to {5} "
                  "bytes\n",
                  argumentNames[i], argument.elementType, list(argument.sizes),
                  strides, argument.isDense ? ", dense" : "", alignment);
  }
  for (auto [result, parameter] :
       llvm::zip_equal(program.results, resultNames)) {
    os << formatv(" *   {0}: {1}, sizes {2}, strides {3}{4}, aligned to {5} "
                  "bytes\n",
                  parameter, result.elementType, list(result.sizes),
                  list(result.strides), result.isDense ? ", dense" : "",
                  result.alignment);
  }
  line(" * $_shapes says the sizes of the results, and the strides of dense "
       "ones. Their");
  line(" * memory is the caller's, and must not be that of an argument.");
  line(
      formatv(" * So is the workspace, of as many bytes as $_workspace says, 0 "
              "if it needs none,\n * aligned to {0} bytes as cuMemAlloc does. "
              "It is in use until the stream is\n * through with the call.",
              HostProgram::alignment));
  line(" *");
  line(
      " * $_launch neither allocates nor waits, so the stream may be capturing "
      "a graph.");
  line(" * A module belongs to the context that was current when it was "
       "loaded, which has to");
  line(
      " * be current in launches, too; several GPUs need one each. Threads may "
      "share a");
  line(" * module, but not a workspace or results.");
  if (llvm::any_of(program.launches, [&](const HostProgram::Launch &launch) {
        return launch.sharedBytes == HostProgram::dynamic;
      })) {
    line(" * They must not launch at the same time: how much shared memory "
         "kernels have");
    line(" * depends on sizes, and is the module's.");
  }
  if (hasTensorMaps()) {
    line(" *");
    line(" * Kernels take tensor maps: <cuda.h> and the driver must be of CUDA "
         "12.0 or");
    line(" * later, the device of sm_90 or later.");
  }
  line(" */");
}

void HeaderPrinter::printTypes() {
  size_t rank = 1;
  for (const HostProgram::Argument &argument : program.arguments)
    rank = std::max<size_t>(rank, argument.sizes.size());
  for (const HostProgram::Result &result : program.results)
    rank = std::max<size_t>(rank, result.sizes.size());
  line("\ntypedef struct $_tensor {");
  line("  CUdeviceptr address; /* of the first element */");
  line("  int rank;");
  line("  int64_t sizes[" + Twine(rank) + "];");
  line("  int64_t strides[" + Twine(rank) + "];");
  line("} $_tensor;");
  line("\ntypedef struct $_module {");
  line("  CUmodule module;");
  line("  CUfunction functions[" + Twine(std::max<size_t>(kernels.size(), 1)) +
       "];");
  if (hasDependentLaunches())
    line("  int driverVersion;");
  line("} $_module;");
  line("\n/* A call in progress. Of inputs, the first says whether there are "
       "results; then");
  line(" * come the address, sizes and strides of each argument and result. "
       "Outputs are the");
  line(" * bytes, sizes and strides of each result. */");
  line("typedef struct $_call {");
  line("  const $_module *module;");
  line("  CUstream stream;");
  line("  CUdeviceptr workspace;");
  line("  int64_t used, total; /* bytes of the workspace */");
  line("  const char **message;");
  line("  int launches; /* or only checks them */");
  unsigned numResults = program.results.size();
  line("  int64_t inputs[" + Twine(program.getResultInput(numResults)) + "];");
  line("  int64_t outputs[" +
       Twine(std::max(program.getResultOutput(numResults), 1u)) + "];");
  line("} $_call;\n");
}

/// C99 compilers need not take literals of more than 4095 characters, so the
/// text has several, which $_join puts together.
void HeaderPrinter::printText(StringRef text) {
  constexpr size_t longest = 4000;
  line("\nstatic const char *const $_image[] = {");
  auto getNext = [&] {
    size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    return text.take_front(std::min(end, longest));
  };
  size_t length = 0;
  while (!text.empty()) {
    StringRef part = getNext();
    text = text.drop_front(part.size());
    length += part.size();
    os << "    ";
    string(part);
    if (text.empty() || length + getNext().size() > longest) {
      os << ",";
      length = 0;
    }
    os << "\n";
  }
  line("    NULL};");
  line("\nstatic inline char *$_join(void) {");
  line("  size_t i, bytes = 1;");
  line("  char *text, *end;");
  line("  for (i = 0; $_image[i]; ++i)");
  line("    bytes += strlen($_image[i]);");
  line("  text = end = (char *)malloc(bytes);");
  line("  for (i = 0; text && $_image[i]; ++i) {");
  line("    size_t length = strlen($_image[i]);");
  line("    memcpy(end, $_image[i], length);");
  line("    end += length;");
  line("  }");
  line("  if (text)");
  line("    *end = 0;");
  line("  return text;\n}");
}

/// The bytes of a binary, as the words that every host of a GPU makes of them.
static void printWords(StringRef bytes, llvm::raw_ostream &os) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    char word[8] = {};
    StringRef part = bytes.substr(i, 8);
    llvm::copy(part, word);
    os << (i % 32 ? " " : "\n    ")
       << llvm::format_hex(llvm::support::endian::read64le(word), 18) << ",";
  }
}

void HeaderPrinter::printImage(const KernelImage &image) {
  if (!image.isEmbedded)
    return;
  if (isText(image.text))
    return printText(image.text);
  os << "\nstatic const uint64_t " << name << "_image[] = {";
  printWords(image.text, os);
  line("};");
}

void HeaderPrinter::printLoad(const KernelImage &image) {
  line("\n/* Loads the kernels into the current context, which $_launch takes "
       "them from. */");
  line("static inline CUresult $_load($_module *module, const char **message) "
       "{");
  line("  CUresult result;");
  if (image.isEmbedded && isText(image.text))
    line("  char *text;");
  line("  if (message)");
  line("    *message = NULL;");
  if (image.isEmbedded && isText(image.text)) {
    line("  text = $_join();");
    line("  if (!text)");
    line("    return $_fail(message, \"no memory for the kernels\",");
    line("                  CUDA_ERROR_OUT_OF_MEMORY);");
    line("  result = cuModuleLoadData(&module->module, text);");
    line("  free(text);");
  } else if (image.isEmbedded) {
    line("  result = cuModuleLoadData(&module->module, $_image);");
  } else {
    os << "  result = cuModuleLoad(&module->module, ";
    string(image.text);
    line(");");
  }
  line("  if (result != CUDA_SUCCESS)");
  line("    return $_fail(message, \"the kernels cannot be loaded\", result);");
  auto require = [&](const Twine &problem) {
    line("  if (result != CUDA_SUCCESS) {");
    line("    cuModuleUnload(module->module);");
    os << "    return " << name << "_fail(message, ";
    string(problem.str());
    line(", result);\n  }");
  };
  for (auto [i, kernel] : llvm::enumerate(kernels)) {
    os << "  result = cuModuleGetFunction(&module->functions[" << i
       << "], module->module, ";
    string(kernel);
    line(");");
    require("there is no kernel @" + kernel);
    // Here, since launches on several threads would change it for one another.
    int64_t bytes = getSharedBytes(kernel);
    if (bytes <= defaultSharedBytes)
      continue;
    line("  result = cuFuncSetAttribute(");
    line(formatv("      module->functions[{0}], "
                 "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,",
                 i));
    line("      " + Twine(bytes) + ");");
    require("the device has not the shared memory that @" + kernel + " needs");
  }
  if (hasDependentLaunches()) {
    line("  result = cuDriverGetVersion(&module->driverVersion);");
    require("the driver does not report its version");
  }
  line("  return CUDA_SUCCESS;\n}");
  line("\nstatic inline CUresult $_unload($_module *module) {");
  line("  return cuModuleUnload(module->module);\n}");
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void HeaderPrinter::printParameters(StringRef resultType) {
  for (const std::string &argument : argumentNames)
    line("    const $_tensor *" + argument + ",");
  if (!resultType.empty())
    for (const std::string &result : resultNames)
      line("    " + resultType + " *" + result + ",");
}

void HeaderPrinter::printList(StringRef head, ArrayRef<std::string> names) {
  line(head + "[" + Twine(std::max<size_t>(names.size(), 1)) + "] = {" +
       (names.empty() ? "NULL" : llvm::join(names, ", ")) + "};");
}

void HeaderPrinter::printShapes() {
  line("\n/* Sets rank, sizes and dense strides of the results; addresses are "
       "not looked at. */");
  line("static inline CUresult $_shapes(");
  printParameters("$_tensor");
  line("    const char **message) {");
  printList("  const $_tensor *arguments", argumentNames);
  printList("  $_tensor *results", resultNames);
  line("  $_call call;");
  line("  CUresult result = $_begin(&call, arguments, NULL, message);");
  line("  (void)results;");
  line("  if (result == CUDA_SUCCESS)");
  line("    result = $_program(&call);");
  line("  if (result != CUDA_SUCCESS)");
  line("    return result;");
  for (auto [i, result] : llvm::enumerate(program.results)) {
    size_t rank = result.sizes.size();
    // Behind the bytes.
    unsigned output = program.getResultOutput(i) + 1;
    line(formatv("  results[{0}]->rank = {1};", i, rank));
    for (size_t d = 0; d != rank; ++d) {
      line(formatv("  results[{0}]->sizes[{1}] = call.outputs[{2}];", i, d,
                   output + d));
      line(formatv("  results[{0}]->strides[{1}] = call.outputs[{2}];", i, d,
                   output + rank + d));
    }
  }
  line("  return CUDA_SUCCESS;\n}");
}

void HeaderPrinter::printWorkspace() {
  line("\n/* Sets the bytes of the workspace that a call with such arguments "
       "needs. */");
  line("static inline CUresult $_workspace(");
  printParameters("");
  line("    size_t *workspaceBytes, const char **message) {");
  printList("  const $_tensor *arguments", argumentNames);
  line("  $_call call;");
  line("  CUresult result = $_begin(&call, arguments, NULL, message);");
  line("  if (result == CUDA_SUCCESS)");
  line("    result = $_program(&call);");
  line("  *workspaceBytes = (size_t)call.total;");
  line("  return result;\n}");
}

static StringRef getCType(AbiType type) {
  switch (type) {
  case AbiType::Pointer:
    return "CUdeviceptr";
  case AbiType::I32:
    return "int32_t";
  case AbiType::I64:
    return "int64_t";
  case AbiType::F32:
    return "uint32_t";
  case AbiType::F64:
    return "uint64_t";
  case AbiType::TensorMap:
    return "CUtensorMap";
  }
  llvm_unreachable("all types are handled");
}

std::string HeaderPrinter::getValue(const HostProgram::Field &field,
                                    unsigned first) {
  if (field.abi.type == AbiType::Pointer)
    return getAddress(field, first);
  return formatv("({0})v[{1}]", getCType(field.abi.type), first);
}

/// All parameters in one buffer, named `extra`.
void HeaderPrinter::printPackedParameters(const HostProgram::Launch &launch) {
  line("  struct {");
  for (auto [i, field] : llvm::enumerate(launch.fields))
    line("    " + getCType(field.abi.type) + " p" + Twine(i) + ";");
  line("  } parameters;");
  line("  size_t size = " + Twine(launch.parameterBytes) + ";");
  line("  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters,");
  line("                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size,");
  line("                   CU_LAUNCH_PARAM_END};");
  line("  memset(&parameters, 0, sizeof parameters);");
  unsigned first = 7;
  for (auto [i, field] : llvm::enumerate(launch.fields)) {
    line(formatv("  parameters.p{0} = {1};", i, getValue(field, first)));
    first += field.numValues;
  }
}

/// A pointer to each, named `parameters`.
void HeaderPrinter::printParameterPointers(const HostProgram::Launch &launch) {
  std::string pointers;
  unsigned first = 7;
  for (auto [i, field] : llvm::enumerate(launch.fields)) {
    bool isMap = field.abi.type == AbiType::TensorMap;
    if (isMap)
      printTensorMap(launch, i, first);
    else
      line(formatv("  {0} p{1} = {2};", getCType(field.abi.type), i,
                   getValue(field, first)));
    pointers += formatv("{0}{1}p{2}", i ? ", " : "", isMap ? "" : "&", i);
    first += field.numValues;
  }
  line("  void *parameters[] = {" + pointers + "};");
}

/// What launches a kernel that waits itself. In C as in the process, an
/// ordinary launch does where graphs could not capture another: the driver must
/// be as new, whatever its header was.
void HeaderPrinter::printDependentLaunch() {
  if (!hasDependentLaunches())
    return;
  line(
      "\n/* Queues a kernel that may start before the one before it has ended: "
      "it waits itself. */");
  line("static inline CUresult $_launch_dependent(");
  line("    const $_module *module, CUfunction function, const int64_t *v,");
  line("    CUstream stream, void **parameters, void **extra) {");
  line("#if CUDA_VERSION >= 12030");
  line("  if (module->driverVersion >= 12030) {");
  line("    CUlaunchAttribute attribute;");
  line("    CUlaunchConfig config;");
  line("    memset(&attribute, 0, sizeof attribute);");
  line("    memset(&config, 0, sizeof config);");
  line("    attribute.id = "
       "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;");
  line("    attribute.value.programmaticStreamSerializationAllowed = 1;");
  line("    config.gridDimX = (unsigned)v[0];");
  line("    config.gridDimY = (unsigned)v[1];");
  line("    config.gridDimZ = (unsigned)v[2];");
  line("    config.blockDimX = (unsigned)v[3];");
  line("    config.blockDimY = (unsigned)v[4];");
  line("    config.blockDimZ = (unsigned)v[5];");
  line("    config.sharedMemBytes = (unsigned)v[6];");
  line("    config.hStream = stream;");
  line("    config.attrs = &attribute;");
  line("    config.numAttrs = 1;");
  line("    return cuLaunchKernelEx(&config, function, parameters, extra);");
  line("  }\n#else\n  (void)module;\n#endif");
  line("  return cuLaunchKernel(function, (unsigned)v[0], (unsigned)v[1], "
       "(unsigned)v[2],");
  line(
      "                        (unsigned)v[3], (unsigned)v[4], (unsigned)v[5], "
      "(unsigned)v[6],");
  line("                        stream, parameters, extra);\n}");
}

void HeaderPrinter::printLaunch(unsigned number) {
  const HostProgram::Launch &launch = program.launches[number];
  unsigned function = getFunction(launch);
  bool hasMaps = launch.hasTensorMaps();
  line("\n/* Checks and queues a kernel; v has grid, block and shared memory, "
       "then what the");
  line(" * parameters are made of. */");
  line("static inline CUresult $_launch_" + Twine(number) +
       "(const $_call *call, const int64_t *v) {");
  line("  const char **message = call->message;");
  line("  CUresult result = CUDA_SUCCESS;");
  os << "  const char *failure = ";
  string("@" + launch.kernel + " cannot be launched");
  line(";");
  line("  int64_t unused = 0;");
  line("  (void)unused;");
  printLaunchChecks(launch);
  line("  if (!call->launches)");
  line("    return CUDA_SUCCESS;");
  if (hasMaps)
    printParameterPointers(launch);
  else if (!launch.fields.empty())
    printPackedParameters(launch);
  if (launch.sharedBytes == HostProgram::dynamic) {
    line(formatv(
        "  if (result == CUDA_SUCCESS && v[6] > {0})",
        std::max<int64_t>(defaultSharedBytes, getSharedBytes(launch.kernel))));
    line("    result = cuFuncSetAttribute(");
    line(formatv("        call->module->functions[{0}],", function));
    line(
        "        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)v[6]);");
  }
  std::string given =
      formatv("{0}, {1}", hasMaps ? "parameters" : "NULL",
              hasMaps || launch.fields.empty() ? "NULL" : "extra");
  line("  if (result == CUDA_SUCCESS)");
  if (launch.isDependent) {
    line(formatv("    result = {0}_launch_dependent(", name));
    line(formatv("        call->module, call->module->functions[{0}], v, "
                 "call->stream, {1});",
                 function, given));
  } else {
    line("    result = cuLaunchKernel(");
    line(formatv("        call->module->functions[{0}], (unsigned)v[0], "
                 "(unsigned)v[1],",
                 function));
    line("        (unsigned)v[2], (unsigned)v[3], (unsigned)v[4], "
         "(unsigned)v[5],");
    line("        (unsigned)v[6], call->stream, " + given + ");");
  }
  line("  return result == CUDA_SUCCESS ? result : $_fail(message, failure, "
       "result);\n}");
}

void HeaderPrinter::printLaunchFunction() {
  line("\n/* Runs the function on a stream. After an error of the driver, some "
       "kernels may");
  line(" * have been launched. */");
  line("static inline CUresult $_launch(");
  line("    const $_module *module, CUstream stream, CUdeviceptr workspace,");
  line("    size_t workspaceBytes,");
  printParameters("const $_tensor");
  line("    const char **message) {");
  printList("  const $_tensor *arguments", argumentNames);
  printList("  const $_tensor *results", resultNames);
  line("  $_call call;");
  line("  CUresult result = $_begin(&call, arguments, results, message);");
  line("  if (result != CUDA_SUCCESS)");
  line("    return result;");
  line("  call.module = module;");
  line("  call.stream = stream;");
  line("  call.workspace = workspace;");
  line("  result = $_program(&call);");
  line("  if (result == CUDA_SUCCESS)");
  line("    result = $_accept(&call, arguments, results, message);");
  line("  if (result != CUDA_SUCCESS)");
  line("    return result;");
  line("  if ((uint64_t)call.total > workspaceBytes)");
  returnFailure("    ", formatv("the workspace has fewer bytes than "
                                "{0}_workspace says",
                                name));
  line(formatv("  if (workspace % {0} != 0)", HostProgram::alignment));
  returnFailure("    ", formatv("the workspace's address is not a multiple of "
                                "{0}",
                                HostProgram::alignment));
  line("  if (call.total > 0 && !workspace)");
  returnFailure("    ", "the workspace is null");
  line("  call.used = 0;");
  line("  call.launches = 1;");
  line("  return $_program(&call);\n}");
}

void HeaderPrinter::print(StringRef code, const KernelImage &image,
                          const KernelOrigin &origin) {
  // Names that differ in case only are two.
  std::string guard = ("FLASH_" + name + "_H").str();
  printComment(origin);
  line("#ifndef " + guard + "\n#define " + guard);
  line("\n#include <cuda.h>\n#include <stdbool.h>\n#include "
       "<stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include "
       "<string.h>");
  printTypes();
  printHelpers();
  printTensorMapHelpers();
  printImage(image);
  printLoad(image);
  printDependentLaunch();
  for (unsigned i = 0; i != program.launches.size(); ++i)
    printLaunch(i);
  line("\n/* The program: sizes, memory and launches of a call. */");
  os << code.ltrim();
  printBegin();
  printAccept();
  printShapes();
  printWorkspace();
  printLaunchFunction();
  line("\n#endif /* " + guard + " */");
}

static bool isIdentifier(StringRef name) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, isWord);
}

llvm::Error flash::runtime::printCHeader(const HostProgram &program,
                                         StringRef name, StringRef code,
                                         const KernelImage &image,
                                         const KernelOrigin &origin,
                                         llvm::raw_ostream &os) {
  if (!isIdentifier(name))
    return llvm::createStringError(
        formatv("'{0}' cannot start the names of a C header: use letters, "
                "digits and underscores",
                name));
  for (const HostProgram::Launch &launch : program.launches)
    if (launch.module != program.launches.front().module)
      return llvm::createStringError(
          formatv("the kernels lie in @{0} and @{1}, but a C header loads one "
                  "module: put them into one gpu.module",
                  program.launches.front().module, launch.module));
  HeaderPrinter(program, name, os).print(code, image, origin);
  return llvm::Error::success();
}
