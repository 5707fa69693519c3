"""What an experiment found: JSON, Markdown."""
import dataclasses
import json
import pathlib


def cell(value):
    """Numbers with three digits that count."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if value and abs(value) < 1e-3:
        return f"{value:.1e}"
    if abs(value) >= 100 or isinstance(value, int):
        return f"{value:.0f}"
    return f"{value:.3g}"


@dataclasses.dataclass
class Table:
    columns: list
    rows: list
    title: str = ""

    def markdown(self):
        # A column without any value is of somebody who is not there.
        used = [i for i in range(len(self.columns)) if any(row[i] is not None for row in self.rows)]
        lines = [[self.columns[i] for i in used], ["---"] * len(used)]
        lines += [[cell(row[i]) for i in used] for row in self.rows]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return (f"**{self.title}**\n\n" if self.title else "") + text


@dataclasses.dataclass
class Result:
    title: str
    what: str
    tables: list = dataclasses.field(default_factory=list)
    plots: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    # Set by who runs it.
    seconds: float = 0
    error: str = ""

    def save(self, path):
        pathlib.Path(path).write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")

    @staticmethod
    def load(path):
        fields = json.loads(pathlib.Path(path).read_text())
        fields["tables"] = [Table(**table) for table in fields["tables"]]
        return Result(**fields)

    def markdown(self):
        parts = [f"## {self.title}", self.what]
        if self.error:
            parts.append(f"**This experiment failed:** {self.error}")
        parts += [table.markdown() for table in self.tables]
        parts += [f"![{self.title}]({plot})" for plot in self.plots]
        parts += self.notes
        parts.append(f"({self.seconds:.0f} s)")
        return "\n\n".join(parts)


FAULT = "**Fault**, "


def faults(reports):
    """A note for every case that did not run or was wrong."""
    return [f"{FAULT}{name}: {report['error'].splitlines()[0][:200]}" for name, report in reports.items() if "error" in report]


def divide(value, by):
    return value / by if value and by else None


def summarize(what, ratios):
    """A note on those that are there; none if none is."""
    ratios = [ratio for ratio in ratios if ratio]
    return [f"{what}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}."] if ratios else []


def geometric_mean(values):
    product, count = 1.0, 0
    for value in values:
        if value:
            product, count = product * value, count + 1
    return product ** (1 / count) if count else None
