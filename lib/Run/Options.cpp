//===- Options.cpp - The command line of flash-run ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Options.h"
#include "flash/Compile/AheadOfTime.h"

#include "flash/Machine/Machine.h"
#include "flash/Run/OptionValues.h"
#include "flash/Runtime/Cpu.h"
#include "flash/Target/Nvptx/Ptx.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/StringSaver.h"

using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;
using llvm::SmallVector;
using llvm::StringRef;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview =
    "flash-run: compile an attention program, run it, check it, time it\n\n"
    "  flash-run examples/causal.mlir --check --bench\n"
    "  flash-run examples/softcap_alibi.mlir --check --shape 0=2x4x333x128 \\\n"
    "      --shape 1=2x4x517x128 --shape 2=2x4x517x128 --shape 3=4\n"
    "  flash-run f.mlir --inputs q.npy,k.npy,v.npy --outputs o.npy\n\n"
    "Inputs are random unless files are given. The exit status is 0 if the\n"
    "program ran and, with --check, agreed with the fp64 reference.\n";

namespace {

/// The flags. They live in a function's scope so that only a process that
/// parses them has them registered.
struct Flags {
  cl::OptionCategory category{"flash-run options"};
  cl::opt<std::string> file{cl::Positional,
                            cl::desc("<program.mlir, or - for stdin>"),
                            cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::init("auto"), cl::value_desc("name,..."),
      cl::desc("auto (default), cpu, emulate, a GPU of --targets, or "
               "emulate: with one, such as emulate:sm_90a; several for "
               "--check, which share the reference"),
      cl::cat(category)};
  cl::opt<bool> targets{"targets", cl::cat(category),
                        cl::desc("List the GPUs that are described")};
  cl::opt<bool> strictTarget{
      "strict-target", cl::cat(category),
      cl::desc("Refuse a GPU that is not described, instead of running the "
               "kernels of the nearest GPU that is")};
  cl::opt<std::string> function{
      "function", cl::value_desc("name"), cl::cat(category),
      cl::desc("The function to run (default: the only public one)")};
  cl::opt<uint64_t> seed{"seed", cl::init(0), cl::cat(category),
                         cl::desc("Seed of the random inputs (default 0)")};
  cl::opt<unsigned> threads{
      "threads", cl::init(0), cl::cat(category),
      cl::desc("Number of threads (default: OMP_NUM_THREADS, or one per "
               "processor that the process may use)")};
  cl::opt<std::string> inputs{
      "inputs", cl::value_desc("q.npy,k.npy,..."), cl::cat(category),
      cl::desc("Files with the arguments, in their order")};
  cl::opt<std::string> outputs{
      "outputs", cl::value_desc("o.npy,..."), cl::cat(category),
      cl::desc("Files for the results, in their order")};
  cl::list<std::string> shapes{
      "shape", cl::value_desc("INDEX=2x16x1000x128"), cl::cat(category),
      cl::desc("Sizes of an argument with dynamic dimensions; repeatable")};
  cl::opt<bool> check{
      "check", cl::cat(category),
      cl::desc("Compare with the fp64 reference; status 1 if they disagree")};
  cl::opt<bool> bench{"bench", cl::cat(category), cl::desc("Time the program")};
  cl::opt<bool> baseline{
      "baseline", cl::cat(category),
      cl::desc("Also time the naive program, which stores all scores")};
  cl::opt<bool> countTiles{"count-tiles", cl::cat(category),
                           cl::desc("Count the tiles that the program visits")};
  cl::opt<std::string> events{
      "events", cl::value_desc("file"), cl::cat(category),
      cl::desc("Write what the roles of each kernel's first block do, in their "
               "order; of --target=emulate")};
  cl::opt<std::string> json{"json", cl::value_desc("file"), cl::cat(category),
                            cl::desc("Write what was measured to a file")};
  cl::opt<std::string> dump{
      "dump", cl::value_desc("l0,l1,l2,l3,linalg,llvm,asm,ptx"),
      cl::cat(category),
      cl::desc("Print the program after these stages; alone, do not run it")};
  cl::opt<std::string> schedule{
      "schedule", cl::value_desc("query_tile=64,key_tile=128"),
      cl::cat(category),
      cl::desc("Keys of #flash.schedule, instead of the program's or the "
               "model's choice")};
  cl::opt<std::string> versions{
      "versions", cl::value_desc("1x32x1x128,1x8x1..4096x128;..."),
      cl::cat(category),
      cl::desc("Sizes of the arguments in calls that are to have a version of "
               "the program; the sizes of each call choose one")};
  cl::opt<bool> tune{
      "tune", cl::cat(category),
      cl::desc("Look for the schedule with which the program is fastest")};
  cl::opt<double> tuneSeconds{"tune-seconds", cl::init(150),
                              cl::value_desc("seconds"), cl::cat(category),
                              cl::desc("How long to look (default 150)")};
  cl::opt<std::string> tuningFile{
      "tuning-file", cl::value_desc("file"), cl::cat(category),
      cl::desc("Measured schedules; --tune adds to them")};
  cl::opt<std::string> device{
      "device", cl::value_desc("name"), cl::cat(category),
      cl::desc("Whose schedules in the tuning file to take (default: the "
               "device that runs; none for -o)")};
  cl::opt<int64_t> multiprocessors{
      "multiprocessors", cl::value_desc("number"), cl::cat(category),
      cl::desc("How many the GPU has (default: as many as the device that "
               "runs; 132 where none does)")};
  cl::opt<double> benchSeconds{
      "bench-seconds", cl::init(1), cl::value_desc("seconds"),
      cl::cat(category), cl::desc("How long to measure at least (default 1)")};
  cl::list<std::string> fills{
      "fill", cl::value_desc("INDEX=VALUE@ROW"), cl::cat(category),
      cl::desc("Set a row of an argument, or all, to a number, nan or inf; "
               "x2.5 multiplies; repeatable")};
  cl::opt<std::string> layout{
      "layout", cl::init("bhnd"), cl::value_desc("name"), cl::cat(category),
      cl::desc("How arguments lie in device memory: bhnd (default) or bnhd, "
               "with the heads inside the positions")};
  cl::opt<bool> ptxas{"ptxas", cl::cat(category),
                      cl::desc("Assemble with the ptxas in the PATH, not with "
                               "the driver")};
  cl::opt<double> timeout{"timeout", cl::init(60), cl::value_desc("seconds"),
                          cl::cat(category),
                          cl::desc("How long a kernel may run (default 60)")};
  cl::opt<std::string> output{
      "o", cl::value_desc("file.ptx|file.cubin"), cl::cat(category),
      cl::desc("Write the kernels and a C header that launches them")};
  cl::opt<std::string> header{
      "header", cl::value_desc("file.h"), cl::cat(category),
      cl::desc("The header's name (default: that of -o, with .h)")};
  cl::opt<std::string> suite{
      "suite", cl::value_desc("file"), cl::cat(category),
      cl::desc("Run the cases of a file, one in each line: program and flags")};
  cl::opt<unsigned> firstCase{
      "first", cl::init(1), cl::value_desc("number"), cl::cat(category),
      cl::desc("The suite's first case to run (default 1)")};
  cl::opt<std::string> cudaDriver{
      "cuda-driver", cl::value_desc("path"), cl::Hidden, cl::cat(category),
      cl::desc("The CUDA driver to load; for tests")};
};

/// LLVM's libraries register hundreds of flags, among them a `--threads`; which
/// of them exist depends on how this tool is linked. None is of use here.
void removeForeignFlags() {
  SmallVector<cl::Option *> foreign;
  for (auto [name, option] : cl::getRegisteredOptions())
    if (!name.starts_with("help") && name != "version")
      foreign.push_back(option);
  for (cl::Option *option : foreign)
    option->removeArgument();
}

/// The flags of this process, registered at the first call.
Flags &getFlags() {
  static Flags &flags = []() -> Flags & {
    // Sets one of the flags that go.
    flash::initializeNvptx();
    removeForeignFlags();
    static Flags flags;
    return flags;
  }();
  return flags;
}

/// Which dumps a target has. `--target=auto` settles for the CPU where only
/// stages of the CPU are wanted.
llvm::Error checkDumps(const Options &options) {
  bool cpu = options.has(Dump::Linalg) || options.has(Dump::LLVM) ||
             options.has(Dump::Asm);
  for (Dump stage : {Dump::L3, Dump::Ptx})
    if (options.has(stage) && !options.isGpu())
      return createStringError(
          formatv("--dump: {0} is a stage of GPU targets; use "
                  "--target=sm_90a or another of --targets",
                  getName(stage)));
  if (options.has(Dump::L2) && !options.isGpu() &&
      options.target != Target::Emulate)
    return createStringError("the CPU target has no level 2 to dump; use "
                             "--target=emulate or a GPU target");
  if (cpu && options.isGpu())
    return createStringError("--dump: linalg, llvm and asm are stages of the "
                             "CPU target; use --target=cpu");
  return llvm::Error::success();
}

/// Which options several targets have: what else a run prints or writes is of
/// one of them.
llvm::Error checkTargets(const Options &options) {
  if (options.targets.size() == 1)
    return llvm::Error::success();
  for (auto [isGiven, name] :
       {std::pair(options.bench, "bench"), std::pair(options.tune, "tune"),
        std::pair(options.dumps != 0, "dump"),
        std::pair(!options.json.empty(), "json"),
        std::pair(!options.outputs.empty(), "outputs"),
        std::pair(!options.events.empty(), "events"),
        std::pair(!options.output.empty(), "o"),
        std::pair(!options.suite.empty(), "suite")})
    if (isGiven)
      return createStringError(
          formatv("--{0} is of one target; name one with --target", name));
  if (!options.check)
    return createStringError("--target names several targets, which are for "
                             "--check; name one, or give --check too");
  if (options.file == "-")
    return createStringError("--target names several targets, and stdin can "
                             "be read for one only; name a file");
  return llvm::Error::success();
}

/// Which options a target has.
llvm::Error checkTarget(const Options &options) {
  if (llvm::Error error = checkDumps(options))
    return error;
  bool isCpu = options.target == Target::Cpu || options.target == Target::Auto;
  if (!isCpu && options.countTiles)
    return createStringError("--count-tiles counts the tiles of the CPU "
                             "target; use --target=cpu");
  if (options.target != Target::Emulate && !options.events.empty())
    return createStringError("--events records block programs on the CPU; use "
                             "--target=emulate:sm_90a or another emulation");
  if (!options.isGpu() && !options.output.empty())
    return createStringError("-o writes kernels for GPUs; use --target=sm_90a "
                             "or another of --targets");
  if (options.isGpu() || options.target == Target::Auto)
    return llvm::Error::success();
  if (options.target == Target::Cpu && options.schedule.isOfBlocks())
    return createStringError("--schedule: the CPU target has query_tile, "
                             "key_tile and products; the other keys are of "
                             "block programs; use a GPU target or "
                             "--target=emulate");
  if (options.target == Target::Cpu && options.multiprocessors)
    return createStringError("--multiprocessors is of GPUs; use a GPU target "
                             "or --target=emulate");
  if (options.layout != Layout::Dense)
    return createStringError(
        "--layout=bnhd arranges arguments in device memory; "
        "the CPU target takes dense tensors only");
  if (options.ptxas)
    return createStringError("--ptxas assembles kernels for GPUs; use "
                             "--target=sm_90a or another of --targets");
  return llvm::Error::success();
}

/// Reads the flags that were given into `options`.
llvm::Error readFlags(Flags &flags, Options &options) {
  // LLVM takes the last of several values, which hides mistakes.
  for (auto [name, option] : cl::getRegisteredOptions())
    if (option->getNumOccurrences() > 1 && name != flags.shapes.ArgStr &&
        name != flags.fills.ArgStr)
      return createStringError(formatv("--{0} is given twice", name));

  auto take = [](auto &flag, auto &field) {
    if (flag.getNumOccurrences())
      field = flag;
  };
  take(flags.file, options.file);
  take(flags.function, options.function);
  take(flags.seed, options.seed);
  take(flags.threads, options.threads);
  take(flags.check, options.check);
  take(flags.bench, options.bench);
  take(flags.baseline, options.baseline);
  take(flags.versions, options.versions);
  take(flags.tune, options.tune);
  take(flags.tuneSeconds, options.tuneSeconds);
  take(flags.tuningFile, options.tuningFile);
  take(flags.device, options.device);
  take(flags.multiprocessors, options.multiprocessors);
  take(flags.benchSeconds, options.benchSeconds);
  options.bench |= options.baseline;
  take(flags.countTiles, options.countTiles);
  take(flags.json, options.json);
  take(flags.events, options.events);
  take(flags.suite, options.suite);
  take(flags.firstCase, options.firstCase);
  take(flags.ptxas, options.ptxas);
  take(flags.targets, options.listsTargets);
  take(flags.strictTarget, options.isStrict);
  take(flags.timeout, options.timeout);
  take(flags.cudaDriver, options.cudaDriver);

  if (flags.threads.getNumOccurrences() &&
      (options.threads < 1 || options.threads > flash::runtime::maxThreadCount))
    return createStringError(formatv("--threads={0} is not from 1 to {1}",
                                     options.threads,
                                     flash::runtime::maxThreadCount));
  if (flags.multiprocessors.getNumOccurrences() &&
      (options.multiprocessors < 1 ||
       options.multiprocessors > flash::mostMultiprocessors))
    return createStringError(
        formatv("--multiprocessors={0} is not from 1 to {1}",
                options.multiprocessors, flash::mostMultiprocessors));
  if (!(options.timeout > 0 && options.timeout <= 86400))
    return createStringError(
        formatv("--timeout={0} is not a number of seconds from 0 to 86400",
                options.timeout));
  for (auto [name, seconds] :
       {std::pair("tune-seconds", options.tuneSeconds),
        std::pair("bench-seconds", options.benchSeconds)})
    if (!(seconds >= 0 && seconds <= 86400))
      return createStringError(
          formatv("--{0}={1} is not a number of seconds from 0 to 86400", name,
                  seconds));
  if (flags.tuneSeconds.getNumOccurrences() && !options.tune)
    return createStringError("--tune-seconds says how long --tune takes; give "
                             "--tune too");
  if (flags.tuningFile.getNumOccurrences() && options.tuningFile.empty())
    return createStringError("--tuning-file needs a file name");
  if (flags.json.getNumOccurrences() && options.json.empty())
    return createStringError("--json needs a file name");
  if (flags.events.getNumOccurrences() && options.events.empty())
    return createStringError("--events needs a file name");
  if (flags.target.getNumOccurrences())
    if (llvm::Error error = parseTargets(flags.target, options))
      return error;
  if (flags.layout.getNumOccurrences())
    if (llvm::Error error = parseLayout(flags.layout, options))
      return error;
  for (StringRef shape : flags.shapes)
    if (llvm::Error error = parseShape(shape, options))
      return error;
  for (StringRef fill : flags.fills)
    if (llvm::Error error = parseFill(fill, options))
      return error;
  if (flags.header.getNumOccurrences() && !flags.output.getNumOccurrences())
    return createStringError("--header names the header that -o writes; give "
                             "-o too");
  if (flags.output.getNumOccurrences()) {
    auto names = parseOutput(flags.output, flags.header);
    if (!names)
      return names.takeError();
    options.output = names->image;
    options.header = names->header;
  }
  if (flags.dump.getNumOccurrences())
    if (llvm::Error error = parseDump(flags.dump, options))
      return error;
  if (options.target == Target::Cpu && options.has(Dump::L2))
    return createStringError("the CPU target has no level 2 to dump; use "
                             "--target=emulate");
  if (options.target == Target::Emulate && options.countTiles)
    return createStringError(
        "--count-tiles counts the tiles of the CPU target; "
        "use --target=cpu");
  if (flags.schedule.getNumOccurrences())
    if (llvm::Error error = parseSchedule(flags.schedule, options))
      return error;
  for (auto [flag, list] : {std::pair(&flags.inputs, &options.inputs),
                            std::pair(&flags.outputs, &options.outputs)})
    if (flag->getNumOccurrences()) {
      auto items = splitList(flag->ArgStr, *flag);
      if (!items)
        return items.takeError();
      *list = std::move(*items);
    }
  if (options.tune && !options.schedule.isEmpty())
    return createStringError("--tune looks for the schedule; leave out "
                             "--schedule");
  if (options.tune && !options.versions.empty())
    return createStringError("--tune looks for one schedule; leave out "
                             "--versions");
  if (flags.versions.getNumOccurrences() && options.versions.empty())
    return createStringError("--versions needs sizes, for example "
                             "--versions=1x32x1x128,1x8x1..4096x128");
  if (options.tune && options.baseline)
    return createStringError("--tune compares schedules; run the program once "
                             "more with --baseline");
  for (const Target &target : options.targets) {
    options.target = target;
    if (llvm::Error error = checkTarget(options))
      return error;
  }
  return checkTargets(options);
}

} // namespace

llvm::Expected<Options> flash::run::parseOptions(int argc, char **argv) {
  Flags &flags = getFlags();
  cl::ParseCommandLineOptions(argc, argv, overview);
  Options options;
  if (llvm::Error error = readFlags(flags, options))
    return std::move(error);
  if (options.listsTargets) {
    if (options.file.empty() && options.suite.empty())
      return options;
    return createStringError("--targets lists targets and runs no program");
  }
  if (options.file.empty() == options.suite.empty())
    return createStringError(
        options.file.empty()
            ? "there is no program; name a file, - for stdin, or --suite"
            : "--suite names the programs; leave out '" + options.file + "'");
  if (flags.firstCase.getNumOccurrences() &&
      (options.suite.empty() || options.firstCase == 0))
    return createStringError("--first is the number of a case of --suite, "
                             "counted from 1");
  // Each case would overwrite the files of the one before.
  if (!options.suite.empty() &&
      (!options.inputs.empty() || !options.outputs.empty() ||
       !options.output.empty() || !options.shapes.empty()))
    return createStringError("--inputs, --outputs, --shape and -o belong to "
                             "one program; write them into the suite's lines");
  return options;
}

/// Whether every quote of a line is closed and every backslash has something to
/// quote, which llvm::cl::TokenizeGNUCommandLine does not report.
static bool isComplete(StringRef line) {
  char quote = '\0';
  for (size_t i = 0; i != line.size(); ++i) {
    char c = line[i];
    if (c == '\\') {
      if (++i == line.size())
        return false;
    } else if (quote) {
      if (c == quote)
        quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    }
  }
  return !quote;
}

llvm::Expected<Options> flash::run::parseCase(StringRef line,
                                              const Options &defaults) {
  if (!isComplete(line))
    return createStringError("a quote is not closed, or a backslash ends the "
                             "line");
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  SmallVector<const char *> arguments = {"flash-run"};
  cl::TokenizeGNUCommandLine(line, saver, arguments);
  for (StringRef argument : llvm::ArrayRef(arguments).drop_front()) {
    StringRef name = argument.ltrim('-').split('=').first;
    if (argument.starts_with("-") &&
        (name == "suite" || name == "first" || name == "json" ||
         name == "targets" || name == "version" || name.starts_with("help")))
      return createStringError(
          formatv("a case of a suite cannot have '{0}'", argument));
  }

  Flags &flags = getFlags();
  cl::ResetAllOptionOccurrences();
  std::string message;
  llvm::raw_string_ostream os(message);
  if (!cl::ParseCommandLineOptions(arguments.size(), arguments.data(), "", &os))
    // Messages about malformed values go to stderr, not to the stream.
    return createStringError(message.empty() ? "a flag's value is malformed"
                                             : StringRef(message).trim());
  Options options = defaults;
  options.suite.clear();
  options.json.clear();
  if (llvm::Error error = readFlags(flags, options))
    return std::move(error);
  if (options.file.empty())
    return createStringError("the case names no program");
  if (options.targets.size() > 1)
    return createStringError("a case of a suite has one target; write a line "
                             "for each");
  return options;
}
