"""Checks the keys and the arithmetic of a flash-run report."""
import json
import sys

report = json.load(open(sys.argv[1]))
assert report["target"] == "cpu" and report["function"] == "attention" and report["dtype"] == "f32"
assert report["inputs"][1] == {"shape": [2, 2, 517, 64], "dtype": "f32"}
assert report["results"] == [{"shape": [2, 8, 333, 48], "dtype": "f32"}, {"shape": [2, 8, 333], "dtype": "f32"}]
check = report["check"]
assert check["ok"] and check["repeatable"] and check["first_bad"] is None and len(check["results"]) == 2
assert 0 < check["rms"] <= check["tolerance"] == 1e-6 and check["max_abs"] > 0 and check["max_rel"] > 0
bench = report["bench"]
assert 0 < bench["min_ms"] <= bench["median_ms"] and bench["runs"] >= 2
# The window keeps 101 keys of every query, since nk - nq is 184.
flops = 2 * (64 + 48) * 2 * 8 * 333 * 101
assert abs(bench["tflops"] * bench["median_ms"] * 1e9 / flops - 1) < 1e-9, bench
assert bench["gbps"] > 0
assert report["baseline"]["peak_bytes"] > report["peak_bytes"] >= 0 and report["baseline"]["speedup"] > 0
assert report["baseline"]["check"]["ok"] and "kernels" not in report["baseline"]
stages = report["compile_ms"]
assert list(sorted(stages)) == sorted(["parse", "front", "backend", "translate", "optimize", "codegen", "link", "total"])
assert abs(sum(v for k, v in stages.items() if k != "total") - stages["total"]) < 1e-6
