"""Draws what `flash-run --bench --json` has measured, a bar for each program.

    flash-run --suite suite.txt --bench --baseline --json=runs.json
    python3 python/benchmarks/plot_runs.py runs.json --out runs.png

Takes reports of single programs and of suites. What the bars show is --metric: milliseconds, or TFLOP/s or GB/s.
Needs matplotlib, which writes the formats that it knows by the name of the picture: .png, .svg, .pdf.
"""
import argparse
import json
import pathlib
import sys

import plots

METRICS = {"ms": ("median_ms", "ms"), "tflops": ("tflops", "TFLOP/s"), "gbps": ("gbps", "GB/s")}


def read(path):
    """The name and the report of each program that a file has timings of."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"plot_runs: cannot read {path}: {error}")
    if not isinstance(content, dict):
        sys.exit(f"plot_runs: {path} is no report of flash-run; expected what --json writes")
    reports = [(case["case"], case.get("report", {})) for case in content["cases"]] if "cases" in content else [
        (content.get("file", path.name), content)]
    timed = [(name, report) for name, report in reports if "bench" in report]
    if len(timed) < len(reports):
        print(f"plot_runs: {path} has no timings of {len(reports) - len(timed)} of {len(reports)} programs", file=sys.stderr)
    return timed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=pathlib.Path, help="what --json has written")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs.png"), help="the picture (runs.png)")
    parser.add_argument("--metric", choices=METRICS, default="ms", help="what the bars show (ms)")
    arguments = parser.parse_args()
    runs = [run for path in arguments.reports for run in read(path)]
    if not runs:
        sys.exit("plot_runs: no program was timed; write the reports with flash-run --bench --json=FILE")
    key, unit = METRICS[arguments.metric]
    speedups = [report.get("baseline", {}).get("speedup") for _, report in runs]
    devices = ", ".join(dict.fromkeys(f"{report['device']}, {report['target']}" for _, report in runs))
    notes = [f"({speedup:.3g} times as fast as naive)" if speedup else "" for speedup in speedups]
    try:
        plots.bars(arguments.out, devices, unit, [name for name, _ in runs], [report["bench"][key] for _, report in runs], notes)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_runs: cannot write {arguments.out}: {error}")
    print(f"plot_runs: {arguments.out}, {len(runs)} programs")


if __name__ == "__main__":
    main()
