"""The text of an attention program at level 0 (docs/language.md)."""

import contextlib
import functools
import json
import re
import sys
import threading

from . import _core, cache, compilation, lowering
from .compiler import get_machine
from .errors import CompileError, TraceError
from .expressions import SCORE
from .operands import round_dim
from .packing import Packing, get_kind_of_keys, is_paged, list_captures
from .quantization import Quantization

# As many as a call of the kernel has room for.
MAX_CAPTURES = 24
THREAD_OF_GRADIENTS = "flash_mlir gradients"

_INTEGERS = {4: "int8", 5: "int16", 6: "int32", 7: "int64"}
# An array of a plan, which is among the captured tensors and described like them.
_OF_PLAN = ("the plan", 6, False, False, 4, [])
# The same, for lists of blocks.
_OF_BLOCKS = ("blocks", *_OF_PLAN[1:])
# The numbers of the element types of offsets, tables of pages and lengths.
_OF_SEQUENCES = {"i32": 6, "i64": 7}
# How many arrays the map of an attention has; maps of gradients have as many as they say.
_ARRAYS_OF_MAP = 2
_ARRAYS_OF_BLOCKS = 4


def _get_types(element, rank, head_dim, value_dim):
    """The types of query and key, of value and output, and of the log-sum-exp; all sizes but the last are open.

    In a program for f64 they are of f32, which the reference replaces by f64.
    """
    open_sizes = "?x" * (rank - 1)
    element = "f32" if element == "f64" else element
    head_dim, value_dim = round_dim(head_dim), round_dim(value_dim)
    return f"tensor<{open_sizes}{head_dim}x{element}>", f"tensor<{open_sizes}{value_dim}x{element}>", f"tensor<{open_sizes}f32>"


class Variant:
    """A variant of attention: the tensors that its functions read, and its configuration.

    That is a text, which operators take for an argument: all that the variant's programs have beside the types of
    arguments. It is short, since PyTorch copies it in each call of an operator.
    """

    def __init__(self, mask, condition, score, scale, has_lengths, has_sink, return_lse):
        result = SCORE if score is None else lowering.check_score(score)
        region = lowering.Region()
        if result is not SCORE or condition is not None:
            # The mask is said, and not written as -inf: a plan is of it alone, and scores may have an -inf of their own.
            kept = "" if condition is None else f" keep {region.emit(condition)}"
            region.lines.append(f"flash.yield {region.emit(result)}{kept} : f32")
        self.captures = region.captures
        if len(self.captures) > MAX_CAPTURES:
            raise TraceError(f"the functions read {len(self.captures)} arrays; up to {MAX_CAPTURES} are possible")
        clauses, aliases = [], {}
        if scale is not None:
            clauses.append(f"scale({scale:.17e})")
        if mask is not None:
            clauses.append(f"mask({lowering.print_mask(mask, aliases)})")
        all_are_read = mask is None and not has_lengths
        parts = {
            "aliases": [f"#{name} = {text}" for text, name in aliases.items()],
            "clauses": clauses,
            "lengths": has_lengths,
            "sink": has_sink,
            "score": region.lines,
            "captures": [
                (tensor.name, tensor.dtype, tensor.is_bool, tensor.is_unsigned, tensor.rank, _limit(ranges, all_are_read))
                for tensor, ranges in zip(self.captures, region.get_ranges())
            ],
            "lse": return_lse,
        }
        self.config = json.dumps({name: part for name, part in parts.items() if part})


def _limit(ranges, all_are_read):
    """The ranges that hold for all that is read: not the ranges of distances, where some of these are left out."""
    if all_are_read:
        return ranges
    return [(dimension, steps, text) for dimension, steps, text in ranges if not {"q", "k"} <= set(steps)]


def _read(config, element, head_dim):
    """The parts of a configuration, with what depends on the types."""
    parts = json.loads(config)
    clauses = parts.get("clauses", [])
    if head_dim != round_dim(head_dim) and not any(clause.startswith("scale(") for clause in clauses):
        parts["clauses"] = [f"scale({head_dim**-0.5:.17e})", *clauses]
    if element == "f64":
        # These stay f64, as all others become.
        if "score" in parts:
            parts["score"] = _without_f64(parts["score"])
        parts["captures"] = [(name, 2 if dtype == 3 else dtype, *more) for name, dtype, *more in parts.get("captures", ())]
    return parts


def _without_f64(lines):
    """The lines of a region that reads captured tensors of f64 like captured tensors of f32."""
    text = "\n".join(lines).replace("xf64>", "xf32>").replace("tensor<f64>", "tensor<f32>")
    for name, loaded in re.findall(r"(%\w+) = arith\.truncf (%\w+) : f64 to f32", text):
        text = re.sub(rf"{name}\b", loaded, text)
    return [line for line in text.split("\n") if not line.endswith(": f64 to f32")]


def print_program(config, element, rank, head_dim, value_dim):
    """The program of a variant for these types."""
    parts = _read(config, element, head_dim)
    query, value, lse = _get_types(element, rank, head_dim, value_dim)
    results = [("output", value)]
    if parts.get("lse"):
        results.append(("lse", lse))
    arguments, clauses = _get_blocks(parts, ("blocks",))
    clauses += _get_schedule_clauses(parts, "schedule")
    operands = [("query", query), ("key", query), ("value", value)]
    return _print(parts, "attention", rank, operands, results, arguments, clauses)


def print_gradient_program(config, element, rank, head_dim, value_dim, has_lse_grad, wrt):
    """The program of the gradients; `wrt` are the numbers of captured tensors whose gradients it computes, too."""
    parts = _read(config, element, head_dim)
    query, value, lse = _get_types(element, rank, head_dim, value_dim)
    operands = [("query", query), ("key", query), ("value", value), ("output", value), ("lse", lse)]
    operands.append(("output_grad", value))
    results = [("query_grad", query), ("key_grad", query), ("value_grad", value)]
    if parts.get("sink"):
        results.append(("sink_grad", "tensor<?xf32>"))
    of_blocks, clauses = _get_blocks(parts, ("blocks", "query_blocks"))
    clauses += _get_schedule_clauses(parts, "gradient_schedule")
    arguments = []
    if has_lse_grad:
        arguments.append(("lse_grad", lse))
        clauses.append(f"lse_grad({Packing(parts.get('packed')).name('lse_grad')} : {lse})")
    if wrt:
        types = [_get_capture_type(parts["captures"][number]) for number in wrt]
        clauses.append(f"wrt({', '.join(f'%capture{number}' for number in wrt)} : {', '.join(types)})")
        results += [(f"capture{number}_grad", type) for number, type in zip(wrt, types)]
    return _print(parts, "attention_grad", rank, operands, results, arguments + of_blocks, clauses)


def _get_blocks(parts, names):
    """The arguments and the clauses of lists of blocks, if there are any."""
    if "blocks" not in parts:
        return [], []
    queries, keys, has_queries = parts["blocks"]
    if "query_blocks" in names and not has_queries:
        raise ValueError("gradients need the blocks of queries of each block of keys, too: query_indices and query_counts of Blocks")
    types = "tensor<?x?x?x?xi32>", "tensor<?x?x?x2xi32>"
    arguments, clauses = [], []
    for name in names:
        arguments += [(name, types[0]), (f"{name}_counts", types[1])]
        clauses.append(f"{name}(%{name}, %{name}_counts : {', '.join(types)})")
    return arguments, [*clauses, f"of [{queries}, {keys}]"]


def _get_schedule_clauses(parts, name):
    return [f"schedule(<{parts[name]}>)"] if name in parts else []


def _get_capture_type(capture):
    _, dtype, _, _, rank, _ = capture
    return lowering.get_capture_type(dtype, rank)


def _print(parts, op, rank, operands, results, more_arguments=(), more_clauses=()):
    """A function of one op, whose arguments are the operands, then the arguments of clauses and of the region, and more."""
    packing = Packing(parts.get("packed"))
    quantization = Quantization(parts.get("quantized"), packing)
    arguments, clauses = list(operands), list(parts.get("clauses", ()))
    if parts.get("lengths"):
        arguments.append(("lengths", "tensor<?xi32>"))
        clauses.append("lengths(%lengths : tensor<?xi32>)")
    clauses += packing.get_clauses()
    if parts.get("sink"):
        arguments.append(("sink", "tensor<?xf32>"))
        clauses.append("sink(%sink : tensor<?xf32>)")
    arguments += [(f"capture{i}", _get_capture_type(each)) for i, each in enumerate(parts.get("captures", ()))]
    arguments += more_arguments
    clauses += quantization.get_clauses()
    clauses += more_clauses
    names = ", ".join(packing.name(name) for name, _ in results)
    in_memory = [packing.get_type(*result) for result in results]
    arguments = [(name, quantization.get_type(name, type)) for name, type in arguments]
    parameters = [(name, packing.get_type(name, type)) for name, type in arguments] + packing.get_arguments() + quantization.get_arguments()
    parameters = ", ".join(f"%{name}: {type}" for name, type in parameters)
    taken = {name: quantization.name(name) for name, _ in operands}
    of_keys = []
    if parts.get("values_of_keys"):
        of_keys, taken["value"] = _take_columns(taken["key"], dict(operands)["key"], dict(operands)["value"])
    head = " ".join([f"  {names} = flash.{op} {', '.join(taken.values())}", *clauses])
    types = f": ({', '.join(type for _, type in operands)}) -> {_join_types([type for _, type in results])}"
    lines = [*parts.get("aliases", ()), f"func.func @{op}({parameters}) -> {_join_types(in_memory)} {{"]
    lines += ["  " + line for line in packing.unpack(arguments)]
    lines += ["  " + line for line in quantization.dequantize(operands) + of_keys]
    if "score" in parts:
        lines.append(head + " score {")
        lines.append("  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):")
        region = quantization.fill_region(packing.fill_region(parts["score"]))
        lines += ["    " + lowering.fill_region(line, operands[0][1], rank) for line in region]
        lines.append("  } " + types)
    else:
        lines.append(f"{head} {types}")
    lines += ["  " + line for line in packing.pack(results, operands)]
    lines.append(f"  return {', '.join(f'%{name}' for name, _ in results)} : {', '.join(in_memory)}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _take_columns(key, type, value_type):
    """The lines that make values of the first columns of keys, and the name of these."""
    lines, sizes = [], type[len("tensor<") :].split("x")[:-2]
    for dim in range(len(sizes)):
        lines.append(f"%key_dim{dim} = arith.constant {dim} : index")
        lines.append(f"%key_size{dim} = tensor.dim {key}, %key_dim{dim} : {type}")
        sizes[dim] = f"%key_size{dim}"
    columns = value_type.split("x")[-2]
    zeros, ones = (", ".join([number] * (len(sizes) + 1)) for number in "01")
    lines.append(f"%key_columns = tensor.extract_slice {key}[{zeros}] [{', '.join(sizes)}, {columns}] [{ones}] : {type} to {value_type}")
    return lines, "%key_columns"


def _join_types(types):
    return f"({', '.join(types)})" if len(types) > 1 else types[0]


def print_block_map(config, tile):
    """A program that lists the tiles, of so many queries and keys, that the mask of a variant leaves; its first arguments
    have the sizes of query and key.
    """
    parts = json.loads(config)
    query = "tensor<?x?x?x0xf32>"
    arguments = [("query", query), ("key", query)]
    arguments += [(f"capture{i}", _get_capture_type(each)) for i, each in enumerate(parts.get("captures", ()))]
    parameters = ", ".join(f"%{name}: {type}" for name, type in arguments)
    results = "tensor<?x?x?x?xi32>, tensor<?x?x?x2xi32>"
    lines = [*parts.get("aliases", ()), f"func.func @blocks({parameters}) -> ({results}) {{"]
    for i, tensor in enumerate(("query", "query", "query", "key")):
        lines.append(f"  %dim{i} = arith.constant {min(i, 2)} : index")
        lines.append(f"  %size{i} = tensor.dim %{tensor}, %dim{i} : {query}")
    head = ["  %tiles, %counts = flash.block_map of[%size0, %size1, %size2, %size3]", f"tiles([{tile[0]}, {tile[1]}])"]
    lines.append(" ".join([*head, *parts.get("clauses", ())]))
    if "score" in parts:
        *region, end = [lowering.fill_region(line, query, 4) for line in parts["score"]]
        lines.append("  keep {\n  ^bb0(%b: index, %h: index, %i: index, %j: index):")
        lines += ["    " + line for line in region]
        lines.append(f"    flash.yield {end.split(' keep ')[1].split()[0]} : i1\n  }}")
    lines += [f"  : {results}", f"  return %tiles, %counts : {results}", "}"]
    return "\n".join(lines) + "\n"


def with_plan(config, schedule, gradient_schedule, gradient_arrays):
    """The variant that takes a plan of these schedules (`get_plan`, `get_gradient_plan`), which are None where there is
    no map. Its arrays are captured tensors behind the others: the attention's arrays, then its gradients' arrays.
    """
    parts = json.loads(config)
    if schedule:
        parts["plan"] = schedule
    if gradient_schedule:
        parts["gradient_plan"] = gradient_schedule, gradient_arrays
    return json.dumps(parts)


def with_blocks(config, key):
    """The variant that takes lists of blocks (`blocks.get_key`), whose arrays (`blocks.get_arrays`) are captured tensors
    behind the others.
    """
    return json.dumps({**json.loads(config), "blocks": key})


@functools.lru_cache(maxsize=512)
def with_packing(config, key):
    """The variant of sequences (`packing.get_key`), whose offsets, table and lengths are captured tensors behind the others."""
    return json.dumps({**json.loads(config), "packed": key})


@functools.lru_cache(maxsize=512)
def with_quantization(config, key):
    """The variant of operands of 8 bits (`quantization.Quantization`), whose scales are behind all other arrays."""
    return json.dumps({**json.loads(config), "quantized": key})


@functools.lru_cache(maxsize=512)
def with_values_of_keys(config):
    """The variant whose values are the first columns of the keys, in their memory."""
    return json.dumps({**json.loads(config), "values_of_keys": True})


@functools.lru_cache(maxsize=512)
def get_parts(config):
    """The parts of a variant."""
    return json.loads(config)


@functools.lru_cache(maxsize=512)
def get_packing(config):
    """What a variant has of `packing.get_key`: that of queries and that of keys, each None for a batch as usual."""
    return tuple(json.loads(config).get("packed", (None, None)))


def count_arrays_of_blocks(config):
    """How many arrays of lists of blocks a variant's attention takes, and how many its gradients do."""
    blocks = json.loads(config).get("blocks")
    return (_ARRAYS_OF_MAP if blocks else 0), (_ARRAYS_OF_BLOCKS if blocks and blocks[2] else 0)


def with_schedules(config, schedule, gradient_schedule):
    """The variant whose programs have these keys of a schedule, as `compile` takes them; None for no keys."""
    parts = json.loads(config)
    for name, keys in (("schedule", schedule), ("gradient_schedule", gradient_schedule)):
        if keys is not None:
            parts[name] = keys.replace("=", " = ").replace(",", ", ")
    return json.dumps(parts)


def without_names(config):
    """What a variant computes, whatever its captured tensors are called, and whatever plan or schedule it has."""
    parts = json.loads(config)
    for name in ("plan", "gradient_plan", "schedule", "gradient_schedule"):
        parts.pop(name, None)
    parts["captures"] = [capture[1:] for capture in parts.get("captures", ())]
    return parts


def check_schedule(name, keys):
    """Raises ValueError for what are no keys of a schedule."""
    if not isinstance(keys, str):
        raise TypeError(f"{name} is a {type(keys).__name__}; expected text, such as 'query_tile=128,key_tile=64'")
    if not keys:
        raise ValueError(f"{name} has no keys; expected some, such as 'query_tile=128,key_tile=64', or None")
    try:
        # Options are read before the program, which is none.
        _core.Kernel.specialize("", "cpu", "", keys, [])
    except CompileError:
        pass
    except ValueError as error:
        raise ValueError(f"{name}: {str(error).partition(': ')[2] or error}") from None


def with_signs(array, capture):
    """The bits of truth values and of integers without signs as a kernel takes them."""
    _, dtype, is_bool, is_unsigned = capture[:4]
    if not is_bool and not is_unsigned:
        return array
    torch = sys.modules.get("torch")
    name = _INTEGERS[dtype]
    return array.view(getattr(torch, name) if torch and isinstance(array, torch.Tensor) else name)


def get_kernel(config, element, rank, head_dim, value_dim, target, sizes=None, device=None):
    """The native kernel of a variant for these types, or its version for these sizes of query, key and value, as a call on a
    device has it."""
    parts = json.loads(config)
    if "plan" in parts:
        if element == "f64":
            raise ValueError("the plan has tiles, which float64 has not; make a plan of float64, or give the mask")
        text, _ = get_plan(config, element, rank, head_dim, value_dim, target, sizes, parts["plan"])
        return cache.get_kernel(text, target, "attention")
    text = print_program(config, element, rank, head_dim, value_dim)
    prepared = compilation.kernels.get((text, target, device, get_classes(parts, target, sizes)))
    if prepared is not None:
        return prepared

    def explain():
        return compilation.explain(describe(config, element, head_dim, value_dim, target, device), describe_sizes(parts, sizes))

    return _compile(text, target, choose_sizes(parts, target, sizes), explain)


def _get_machine(device, element):
    """What a call on a device is compiled for: float64 is computed by the reference."""
    return "reference" if element == "f64" else get_machine(device)


def choose_sizes(parts, target, sizes):
    """What a version for these sizes of query, key and value, and of a table of pages, is made for: sizes of the program's
    first arguments, or nothing. On the CPU lengths count alone, and the mean length of packed rows says nothing of each sequence.
    """
    packing = Packing(parts.get("packed"))
    if not sizes or target == "cpu" and (packing.is_packed("query") or packing.is_packed("key")):
        return []
    *sizes, table = sizes if is_paged(parts.get("packed")) else [*sizes, None]
    sizes = [[*others, round_dim(dim)] for *others, dim in sizes]
    if target == "cpu":
        open_sizes = [_core.open_size] * (len(sizes[0]) - 2)
        if table:
            # Of a table both sizes must be known, and the batch is that of the queries.
            open_sizes[0], page = 1, sizes[1][2]
            table = [1, -(-_core.get_cpu_length(table[1] * page) // page)]
        sizes = [[*open_sizes, length if table and i else _core.get_cpu_length(length), dim] for i, (*_, length, dim) in enumerate(sizes)]
    if table:
        ranks = [1] * (parts.get("lengths", False) + parts.get("sink", False)) + [capture[4] for capture in parts.get("captures", ())]
        sizes += [[_core.open_size] * rank for rank in ranks + [1] * packing.is_packed("query")] + [table]
    return sizes


def get_classes(parts, target, sizes):
    """What the choice of a version depends on, of these sizes."""
    if not sizes or isinstance(target, str):
        return tuple(map(tuple, choose_sizes(parts, target, sizes)))
    query, key, table = sizes[0], sizes[1], sizes[3] if is_paged(parts.get("packed")) else None
    heads = query[-3], key[-3]
    if _core.open_size in query:
        return heads
    lengths = query[0] if len(query) == 4 else 1, query[-2], key[-2] * (table[1] if table else 1)
    return (*heads, *map(_core.get_size_class, lengths))


def describe(config, element, head_dim, value_dim, target, device):
    """The properties that a variant's kernels have beside sizes, as messages name them."""
    parts = json.loads(config)
    queries, keys = parts.get("packed", (None, None))
    kinds = {None: "in a batch", "lengths": "in a batch with key_lengths"}
    yes = {True: "yes", False: "no"}
    where = "" if device is None or device < 0 else f" on cuda:{device}"
    return {
        "dtype": element,
        "head_dim": head_dim,
        "value_dim": value_dim,
        "queries": kinds.get(queries, f"packed by offsets of {queries}"),
        "keys": f"in pages of {keys} rows" if isinstance(keys, int) else kinds.get(keys, f"packed by offsets of {keys}"),
        "program": " ".join([*parts.get("aliases", ()), *parts.get("clauses", ())]) or "without a mask",
        "score": "; ".join(parts["score"]) if "score" in parts else "no",
        "scales": ", ".join(f"{element or 'none'} by {of or 'none'}" for element, of in parts["quantized"]) if "quantized" in parts else "no",
        "arrays of functions": ", ".join(map(_get_capture_type, parts.get("captures", ()))) or "no",
        **{name: yes[name in parts] for name in ("lengths", "sink")},
        "return_lse": yes["lse" in parts],
        "schedule": parts.get("schedule", "no"),
        "target": (target if isinstance(target, str) else target.target) + where,
    }


def describe_sizes(parts, sizes):
    """The sizes of a call, as messages name them; None for what does not count."""
    names = "heads", "key_heads", "sequences", "tokens of a sequence", "keys of a sequence"
    if not sizes:
        return {}
    query, key = sizes[:2]
    keys = key[-2] * sizes[3][1] if is_paged(parts.get("packed")) else key[-2]
    values = (query[-3], key[-3], query[0] if len(query) == 4 else 1, query[-2], keys)
    return {name: value for name, value in zip(names, values) if value >= 0}


def _compile(text, target, sizes, explain=None):
    """The kernel of a program, or, where there are any, its version for these sizes of its first arguments.

    `explain` says what compiles where that is not allowed.
    """
    explain = explain or (lambda: f"gradients need a kernel, and none is prepared for these: for {target}\n{text}")
    if sizes and target != "reference":
        with compilation.announced(explain):
            return cache.get_kernel(_core.Kernel.specialize(text, target, "", "", sizes), target)
    # A device has to load even what is in memory.
    if isinstance(target, str) and cache.is_in_memory(text, target):
        return cache.get_kernel(text, target)
    with compilation.announced(explain):
        return cache.get_kernel(text, target)


def get_plan(config, element, rank, head_dim, value_dim, target, sizes, schedule=""):
    """A variant's program with its plan as a function of its own, and the schedule that others that take it have.

    None where the compiler knows what the mask leaves, and for f64, where all is computed. The functions are "attention" and "attention_plan".
    """
    if element == "f64":
        return None
    return _plan(config, print_program(config, element, rank, head_dim, value_dim), target, sizes, schedule)


def get_gradient_plan(config, element, rank, head_dim, value_dim, target, sizes, schedule=""):
    """As `get_plan`, of the gradients, with these keys of a schedule. The functions are "attention_grad" and
    "attention_grad_plan".
    """
    if element == "f64":
        return None
    text = print_gradient_program(config, element, rank, head_dim, value_dim, False, ())
    return _plan(config, text, target, sizes, schedule)


def _plan(config, text, target, sizes, schedule):
    with compilation.announced(lambda: f"a plan needs the compiler, and none is prepared: for {target}\n{text}"):
        return _core.Kernel.plan(text, target, "", schedule, choose_sizes(json.loads(config), target, sizes))


@functools.lru_cache(maxsize=512)
def get_captures(config):
    """(name, number of the dtype, whether it is bool, whether it has no sign, rank, ...) of each captured tensor."""
    return tuple(tuple(capture) for capture in json.loads(config).get("captures", ()))


def get_gradient_kernel(config, element, rank, head_dim, value_dim, target, sizes, has_lse_grad, wrt):
    """The native kernel of a variant's gradients, as `get_kernel` gives that of the variant.

    It takes query, key, value, output, lse and the output's gradient, then lengths, sink, captured tensors, the
    gradient of lse, and the arrays of a plan for gradients, as far as there are any.

    Args:
      has_lse_grad: Whether there is a gradient of lse.
      wrt: A tuple of the numbers of captured tensors whose gradients it computes.
    """
    text = print_gradient_program(config, element, rank, head_dim, value_dim, has_lse_grad, wrt)
    plan = json.loads(config).get("gradient_plan")
    if plan and element == "f64":
        raise ValueError("the plan has tiles, which float64 has not; make a plan of float64, or give the mask")
    if plan:
        text, _ = _plan(config, text, target, sizes, plan[0])
        return cache.get_kernel(text, target, "attention_grad")
    return _compile(text, target, choose_sizes(json.loads(config), target, sizes))


@functools.lru_cache(maxsize=512)
def get_training_config(config):
    """The variant that returns the log-sum-exp, too, which gradients are computed from."""
    return json.dumps({**json.loads(config), "lse": True})


_make_dispatch = None


def set_make_dispatch(make):
    """Sets what makes, of a configuration and of whether it returns the log-sum-exp, the function for calls that no kernel
    alone can serve. The operators of PyTorch serve them, which call the functions of this module.
    """
    global _make_dispatch
    _make_dispatch = make


def _load(kernel, device):
    """Has the driver assemble a kernel for a CUDA device."""
    if device >= 0:
        kernel.load(device)
    return kernel


def _start_gradients(config, *variant):
    """Compiles, in a thread, what `backward` most likely needs, while the driver assembles the kernel of the call, which takes
    longer."""
    is_learned = any(dtype not in _INTEGERS for _, dtype, *_ in get_captures(config))
    if is_learned or compilation.get_action() != "allow":
        return

    def compile():
        # What cannot be compiled is an error of `backward`.
        with contextlib.suppress(Exception):
            get_gradient_kernel(config, *variant, False, ())

    threading.Thread(target=compile, name=THREAD_OF_GRADIENTS).start()


@functools.lru_cache(maxsize=512)
def get_function(config, trains=False):
    """The native function of a variant; `trains` says that gradients follow its calls."""
    parts = json.loads(config)

    def said(what, element, head_dim, value_dim, target, device):
        def explain():
            properties = describe(config, element, head_dim, value_dim, target, device)
            listed = ", ".join([f"{name} {value}" for name, value in properties.items() if value != "no"])
            return f"compiling {what} for a first call: {listed}; FLASH_MLIR_QUIET=1 silences this"

        return compilation.said_if_slow(explain)

    def compile(element, rank, head_dim, value_dim, device, sizes):
        target = _get_machine(device, element)
        with said("attention", element, head_dim, value_dim, target, device):
            kernel = get_kernel(config, element, rank, head_dim, value_dim, target, sizes, device)
            if trains and device >= 0:
                _start_gradients(config, element, rank, head_dim, value_dim, target, sizes)
            return _load(kernel, device)

    def compile_gradients(element, rank, head_dim, value_dim, device, sizes, has_lse_grad, wrt):
        target = _get_machine(device, element)
        with said("gradients", element, head_dim, value_dim, target, device):
            return _load(get_gradient_kernel(config, element, rank, head_dim, value_dim, target, sizes, has_lse_grad, wrt), device)

    made = None

    def dispatch(*arguments):
        nonlocal made
        if made is None:
            made = _make_dispatch(config, returns_lse)
        return made(*arguments)

    returns_lse = parts.get("lse", False)
    of_plan = _ARRAYS_OF_MAP if "plan" in parts else 0
    of_gradients = parts.get("gradient_plan", (None, 0))[1]
    captures = [*get_captures(config), *[_OF_PLAN] * (of_plan + of_gradients)]
    if "blocks" in parts:
        of_plan, of_gradients = count_arrays_of_blocks(config)
        captures += [_OF_BLOCKS] * (of_plan + of_gradients)
    packed = get_packing(config)
    captures += [(name, _OF_SEQUENCES[element], False, False, rank, []) for name, element, rank in list_captures(packed)]
    kinds = packed[0] is not None, get_kind_of_keys(packed)
    return _core.Attention(compile, compile_gradients, captures, returns_lse, dispatch, of_plan, of_gradients, *kinds)
