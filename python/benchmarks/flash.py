"""Runs programs with flash-run, many in one process."""
import dataclasses
import json
import pathlib
import subprocess

import numpy

import oracle
import programs


@dataclasses.dataclass
class Case:
    """A program, its flags, and the arrays that it is called with. Without arrays
    flash-run makes up inputs; with them the result is checked."""
    name: str
    text: str
    flags: tuple = ()
    arrays: tuple = ()
    mask: str = None
    score: str = None


class Arrays:
    """Normal numbers, the same for every shape, as arrays and as files."""

    def __init__(self, folder):
        self.folder, self.numbers, self.files = folder, {}, {}

    def get(self, stream, shape, dtype):
        size = int(numpy.prod(shape))
        known = self.numbers.get((stream, dtype))
        if known is None or known.size < size:
            random = numpy.random.default_rng(stream)
            known = random.standard_normal(size, dtype=numpy.float32).astype(dtype)
            self.numbers[stream, dtype] = known
        return known[:size].reshape(shape)

    def qkv(self, shape, dtype, kv_heads=None, queries=None):
        batch, heads, length, dim = shape
        keys = (batch, kv_heads or heads, length, dim)
        dtype = programs.DTYPES[dtype]
        return self.get(0, (batch, heads, queries or length, dim), dtype), self.get(1, keys, dtype), self.get(2, keys, dtype)

    def file(self, array):
        key = (array.__array_interface__["data"][0], array.shape, str(array.dtype))
        if key not in self.files:
            name = f"array{len(self.files)}.npy"
            numpy.save(self.folder / name, array)
            self.files[key] = name
        return self.files[key]

    def clear(self):
        for name in self.files.values():
            (self.folder / name).unlink()
        self.files.clear()


class Flash:
    def __init__(self, tool, target, folder, seconds, say):
        self.tool, self.target, self.seconds, self.say = pathlib.Path(tool).resolve(), target, seconds, say
        self.folder = pathlib.Path(folder)
        self.arrays = Arrays(self.folder)

    def run(self, cases, bench=True):
        """The report of each case by its name, with `error` where it has none, and with the
        `deviation` from the oracle where it was checked."""
        lines = {}
        for case in cases:
            (self.folder / f"{case.name}.mlir").write_text(case.text)
            line = [f"{case.name}.mlir", *case.flags]
            if case.arrays:
                line.append("--inputs=" + ",".join(map(self.arrays.file, case.arrays)))
                line.append(f"--outputs={case.name}.npy")
            lines[case.name] = " ".join(line)
        reports = self.run_suite(lines, bench)
        for case in cases:
            report = reports.setdefault(case.name, {"error": "flash-run ended before this case"})
            output = self.folder / f"{case.name}.npy"
            if case.arrays and "error" not in report:
                self.check(case, report, output)
            if "error" in report:
                self.say(f"  {case.name}: {report['error'].splitlines()[0][:160]}")
            output.unlink(missing_ok=True)
        self.arrays.clear()
        return reports

    def check(self, case, report, output):
        slopes = case.arrays[3] if len(case.arrays) > 3 else None
        deviation, tolerance = oracle.compare(*case.arrays[:3], numpy.load(output, mmap_mode="r"), case.mask,
                                              case.score, slopes)
        report["deviation"] = deviation
        if not deviation <= tolerance:
            report["error"] = f"WRONG: off by {deviation:.1e}, and {tolerance:.0e} is allowed"

    def run_suite(self, lines, bench):
        """A fault costs the process its device: the cases behind it get a process of their own."""
        reports, left = {}, list(lines)
        while left:
            done = self.run_process([lines[name] for name in left], bench)
            for name, result in zip(left, done):
                report = result.get("report", {})
                if result["outcome"] == "wrong":
                    report["error"] = "WRONG: " + result["message"]
                elif result["outcome"] == "failed":
                    report["error"] = result["message"] or "failed"
                reports[name] = report
            if not done and len(left) == 1:
                reports[left[0]] = {"error": "flash-run crashed"}
            elif not done:
                # A crash leaves no results: each case for itself, then.
                for name in left:
                    reports.update(self.run_suite({name: lines[name]}, bench))
            left = left[len(done):] if done else []
        return reports

    def run_process(self, lines, bench):
        suite, result = self.folder / "suite.txt", self.folder / "suite.json"
        result.unlink(missing_ok=True)
        suite.write_text("\n".join(lines) + "\n")
        command = [str(self.tool), f"--suite={suite}", f"--target={self.target}", f"--json={result}",
                   f"--bench-seconds={self.seconds}", "--timeout=30"] + (["--bench"] if bench else [])
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout:
                if line.startswith(("[", "flash-run:")):
                    self.say("  " + line.rstrip().split(" --inputs")[0])
        return json.loads(result.read_text())["cases"] if result.exists() else []


def milliseconds(report):
    return None if "error" in report else report["bench"]["median_ms"]


def probe(tool, target, folder):
    """Where programs run: the report of a small one."""
    path, result = pathlib.Path(folder, "probe.mlir"), pathlib.Path(folder, "probe.json")
    tensor = "tensor<1x1x64x64xf16>"
    path.write_text(f"func.func @f(%q: {tensor}) -> {tensor} {{\n  %o = flash.attention %q, %q, %q : "
                    f"({tensor}, {tensor}, {tensor}) -> {tensor}\n  return %o : {tensor}\n}}\n")
    done = subprocess.run([tool, path, f"--json={result}", f"--target={target or 'auto'}"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: {tool} does not run here:\n{done.stderr}")
    return json.loads(result.read_text())
