"""Timelines of kernels: which warps do what, in which order."""

import collections
import json
import math

from .plot import escape, make_svg

_WORK = {"tile.fold max": "maxima", "math.exp2": "exponentials", "tile.store": "store"}
_RING_COLORS = "#c9b458", "#2f6f9f", "#d98c3f", "#8d6ab8", "#b85c6e", "#5fa59a"
_WORK_COLORS = {"maxima": "#a8c48c", "exponentials": "#6f9e4a", "store": "#9a9a9a"}

#: Work of a `Timeline`: which lane has it, from which column to before which other, and the ring and the step of what
#: it copies or reads, or None.
Work = collections.namedtuple("Work", "lane kind start end ring step")


def name_argument(number, names):
    return names[number] if number < len(names) else f"argument {number}"


class _Actor:
    """A warpgroup with its own pace, or a role that has no products."""

    def __init__(self, name, index, events):
        self.name, self.index, self.events = name, index, collections.deque(events)
        self.time, self.products = 0, []


class Timeline:
    """What the warps of a thread block do, column by column.

    Shows itself in notebooks; `save` writes it as SVG.

    Attributes:
      work: A list of `Work`.
      rings: For each ring of shared memory its name, stages, rows and bytes of a row.
      roles: For each role its warps and the registers of a thread; empty where warps have no roles.
      end: How many columns there are.
    """

    def __init__(self, events, names, units):
        self._units = units
        self.work, self.rings, self.roles, self._colors = [], {}, {}, {}
        by_role, sources = collections.defaultdict(list), {}
        for event in events:
            if event["event"] == "ring":
                self.rings[event["ring"]] = f"ring {event['ring']}", event["stages"], event["rows"], event["row_bytes"]
            elif event["event"] == "role":
                self.roles[event["role"]] = event["warps"], event["registers"]
            else:
                by_role[event["role"]].append(event)
                if "argument" in event:
                    sources[event["ring"]] = event["argument"]
        self._order = sorted(self.rings, key=lambda ring: (sources.get(ring, math.inf), ring))
        for ring in self._order:
            source = sources.get(ring)
            self._colors[ring] = _RING_COLORS[len(self._colors) % len(_RING_COLORS)]
            if source is not None:
                self.rings[ring] = name_argument(source, names), *self.rings[ring][1:]
        self._actors, self._turns, self._readers = [], {}, collections.Counter()
        self._is_made_finite = set()
        # A tile is there when all of its parts are.
        self._missing = collections.Counter((event["ring"], event["step"]) for event in events if event["event"] == "copy")
        for role, its_events in sorted(by_role.items()):
            multiplies = any(event["op"] == "tile.mma_async" for event in its_events)
            groups = max(self.roles[role][0] // 4, 1) if multiplies and role else 1
            for index in range(groups):
                name = (role or "block") + (f" {index}" if groups > 1 else "")
                self._actors.append(_Actor(name, index, its_events))
            # Which warpgroup may run, and since when.
            self._turns[role] = [0, 0, groups]
            for ring in {event["ring"] for event in its_events if event["event"] == "release"}:
                self._readers[ring] += groups
            self._is_made_finite |= {event["ring"] for event in its_events if event["op"] == "tile.ring.make_finite"}
        self._run()
        self.end = max((each.end for each in self.work), default=0)

    def _run(self):
        """Lets each actor do its events in their order, each as early as the others allow."""
        self._copied, self._checked, self._freed = {}, {}, collections.defaultdict(list)
        self._acquired, self._channels = {}, collections.Counter()
        while any(actor.events for actor in self._actors):
            ready = [(start, number) for number, actor in enumerate(self._actors)
                     if actor.events and (start := self._find_start(actor)) is not None]
            if not ready:
                raise ValueError("the events do not make up a whole run: all roles wait")
            start, number = min(ready)
            actor = self._actors[number]
            actor.time = start
            self._do(actor, actor.events.popleft())

    def _find_start(self, actor):
        """The column from which on the actor's next event may be, or None while it waits for another actor."""
        event = actor.events[0]
        key = event.get("ring"), event.get("step")
        time = actor.time
        if event["event"] == "acquire":
            stages = self.rings[key[0]][1]
            freed = self._freed[key[0], key[1] - stages]
            if key[1] >= stages and len(freed) < self._readers[key[0]]:
                return None
            return max([time, *freed])
        if event["event"] == "wait":
            is_checked = event["op"] == "tile.ring.is_finite" or (
                key[0] in self._is_made_finite and event["op"] != "tile.ring.make_finite")
            done = (self._checked if is_checked else self._copied).get(key)
            return None if done is None or self._missing[key] else max(time, done)
        if event["op"] == "tile.ping_pong.wait":
            turn, since, _ = self._turns[event["role"]]
            return max(time, since) if turn == actor.index else None
        return time

    def _add(self, actor, lane, kind, event, channel=None):
        start = max(actor.time, self._channels[channel]) if channel else actor.time
        end = start + self._units[kind]
        if channel:
            self._channels[channel] = end
        self.work.append(Work(f"{actor.name}: {lane}", kind, start, end, event.get("ring"), event.get("step")))
        return end

    def _do(self, actor, event):
        key = event.get("ring"), event.get("step")
        kind, op = event["event"], event["op"]
        if kind == "acquire":
            self._acquired[key] = actor.time
        elif kind == "copy":
            # Copies share the way to memory, products the tensor cores.
            self._copied[key] = self._add(actor, "copies", "copy", event, "memory")
            self._missing[key] -= 1
        elif kind == "put":
            self._copied[key] = actor.time
        elif kind == "check":
            self._checked[key] = actor.time
        elif kind == "release":
            self._freed[key].append(actor.time)
        elif op == "tile.mma_async":
            actor.products.append((key, self._add(actor, "products", "product", event, "tensor cores")))
        elif op == "tile.mma_wait":
            found = next(each for each in actor.products if each[0] == key)
            actor.products.remove(found)
            actor.time = max(actor.time, found[1])
        elif op == "tile.ping_pong.arrive":
            turn = self._turns[event["role"]]
            turn[:2] = (actor.index + 1) % turn[2], actor.time
        elif op in _WORK:
            actor.time = self._add(actor, "softmax, store", _WORK[op], event)

    def count_products(self):
        """In how many columns the tensor cores have a product."""
        return len({column for each in self.work if each.kind == "product" for column in range(each.start, each.end)})

    def stages(self):
        """For each stage of a ring, when it is filled and held: (ring, stage, step, acquired, copied, freed)."""
        found = []
        for (ring, step), start in self._acquired.items():
            freed = self._freed.get((ring, step)) or [self.end]
            found.append((ring, step % self.rings[ring][1], step, start, self._copied.get((ring, step), start), max(freed)))
        return found

    def draw(self, until=None, stages=False):
        """The picture as SVG, of the columns before `until`, and with what the stages of rings hold."""
        end = self.end if until is None else min(until, self.end)
        cell, height, left = max(3, min(16, 880 // max(end, 1))), 18, 170
        lanes = sorted({each.lane for each in self.work}, key=lambda lane: ("copies" not in lane, lane))
        boxes = [(lanes.index(each.lane), each.start, each.end, self._find_color(each), each.step, 1) for each in self.work]
        if stages:
            held = self.stages()
            rows = sorted({(ring, stage) for ring, stage, *_ in held}, key=lambda row: (self._order.index(row[0]), row))
            for ring, stage, step, start, copied, freed in held:
                row, color = len(lanes) + rows.index((ring, stage)), self._colors[ring]
                boxes += [(row, start, copied, color, None, 0.35), (row, copied, freed, color, step, 1)]
            lanes += [f"stage {stage} of {self.rings[ring][0]}" for ring, stage in rows]
        width = left + end * cell
        used = {each.kind for each in self.work}
        legend = [(self._colors[ring], self.rings[ring][0]) for ring in self._order]
        legend += [(color, kind) for kind, color in _WORK_COLORS.items() if kind in used]
        parts = []
        for row, lane in enumerate(lanes):
            y = 2 + row * height
            parts.append(f'<text x="1" y="{y + 12}">{escape(lane)}</text>')
            parts.append(f'<rect x="{left}" y="{y}" width="{end * cell}" height="{height - 3}" fill="#f2f2f2"/>')
        for row, start, stop, color, step, opacity in boxes:
            if start >= end or stop <= start:
                continue
            x, y, stop = left + start * cell, 2 + row * height, min(stop, end)
            faint = f' fill-opacity="{opacity}"' if opacity < 1 else ""
            parts.append(f'<rect x="{x}" y="{y}" width="{(stop - start) * cell}" height="{height - 3}" fill="{color}"{faint} '
                         'stroke="#fff"/>')
            if step is not None and (stop - start) * cell >= 7 * len(str(step)):
                parts.append(f'<text x="{x + (stop - start) * cell / 2:g}" y="{y + 12}" fill="#fff" '
                             f'text-anchor="middle">{step}</text>')
        x, y = 1, len(lanes) * height + 10
        for color, name in legend:
            parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{color}"/>')
            parts.append(f'<text x="{x + 14}" y="{y + 9}">{escape(name)}</text>')
            x += 26 + 7 * len(name)
        parts.append(f'<text x="1" y="{y + 26}">{self.count_products()} of {self.end} columns have a product</text>')
        return make_svg(max(width + 2, 560), len(lanes) * height + 44, parts)

    def _find_color(self, each):
        if each.kind in _WORK_COLORS:
            return _WORK_COLORS[each.kind]
        return self._colors.get(each.ring, "#666")

    def _repr_svg_(self):
        return self.draw()

    def save(self, path, until=None, stages=False):
        """Writes the picture to a file, as SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.draw(until, stages))


def timeline(path, launch=0, names=(), copy=1, product=2, maxima=1, exponentials=2, store=1):
    """The timeline of a kernel that `flash-run --target=emulate:sm_90a --events=PATH` has run.

    The order of what a warpgroup does is that of the run, and so is what waits for what: a copy for a free stage of
    its ring, a product for its copies, a warpgroup for the one before it. How long each takes is not measured: it is a number of
    columns for each kind of work. Everything is as early as it can be; one copy is under way at a time, and one product.

    Args:
      path: The file of events.
      launch: Which launch of a kernel, of all in the run.
      names: Names of the arguments of the program, such as ("queries", "keys", "values").
      copy, product, maxima, exponentials, store: How many columns each takes, of one tile.

    Returns:
      `Timeline`, which has an SVG.

    Raises:
      ValueError: There is no such launch, or the file ends before the kernel does.
    """
    with open(path, encoding="utf-8") as file:
        events = [event for event in map(json.loads, file) if event["launch"] == launch]
    if not events:
        raise ValueError(f"{path} has no events of launch {launch}")
    units = dict(copy=copy, product=product, maxima=maxima, exponentials=exponentials, store=store)
    return Timeline(events, tuple(names), units)
