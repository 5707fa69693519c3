"""The text of an attention program at level 0 (docs/language.md)."""

import functools
import json
import sys

from . import _core, cache, lowering
from .errors import TraceError
from .expressions import FLOAT, SCORE, constant, where

# As many as a call of the kernel has room for.
MAX_CAPTURES = 24

_INTEGERS = {4: "int8", 5: "int16", 6: "int32", 7: "int64"}
# What a map of a plan adds to the captured tensors, which are described like them: two tensors of int32.
_OF_MAP = [(name, 6, False, False, 4, []) for name in ("the plan's tiles", "the plan's counts")]


def _get_types(rank):
    """Those of query or key, of value or output, and of the log-sum-exp; all sizes but the last are open."""
    open_sizes = "?x" * (rank - 1)
    return f"tensor<{open_sizes}$Dx$E>", f"tensor<{open_sizes}$Vx$E>", f"tensor<{open_sizes}f32>"


class Variant:
    """All that an attention program has beside the types of its arguments."""

    def __init__(self, mask, condition, score, scale, has_lengths, has_sink, return_lse):
        self.mask = mask
        self.scale = scale
        self.has_lengths = has_lengths
        self.has_sink = has_sink
        self.return_lse = return_lse
        result = SCORE if score is None else lowering.check_score(score)
        if condition is not None:
            result = where(condition, result, constant(float("-inf"), FLOAT))
        self.score = None if result is SCORE else result
        region = self._emit_region("", "", 4)
        self.captures = region.captures if region else []
        if len(self.captures) > MAX_CAPTURES:
            raise TraceError(f"the functions read {len(self.captures)} arrays; up to {MAX_CAPTURES} are possible")
        ranks = (3, 4)
        self.config = json.dumps(
            {
                "programs": {rank: self._print(rank, return_lse) for rank in ranks},
                # What is called where there will be gradients, and what computes these.
                "training": {rank: self._print(rank, True) for rank in ranks},
                "gradients": {rank: self._print_gradient(rank) for rank in ranks},
                "captures": [
                    (tensor.name, tensor.dtype, tensor.is_bool, tensor.is_unsigned, tensor.rank, self._limit(ranges))
                    for tensor, ranges in zip(self.captures, region.get_ranges() if region else ())
                ],
                "lse": return_lse,
            }
        )

    def _limit(self, ranges):
        """The ranges that hold for all that is read: not those of distances, some of which are left out."""
        if self.mask is None and not self.has_lengths:
            return ranges
        return [(dimension, steps, text) for dimension, steps, text in ranges if not {"q", "k"} <= set(steps)]

    def _emit_region(self, query_type, key_type, rank):
        if self.score is None:
            return None
        region = lowering.Region(query_type, key_type, rank)
        result = region.emit(self.score)
        region.lines.append(f"flash.yield {result} : f32")
        return region

    def _print(self, rank, return_lse):
        """The program for operands of a rank, with $E for the element type, $D and $V for the head dimensions."""
        query, value, lse = _get_types(rank)
        results = [("output", value)] + ([("lse", lse)] if return_lse else [])
        operands = [("query", query), ("key", query), ("value", value)]
        return self._print_function("attention", rank, operands, results)

    def _print_gradient(self, rank):
        """The program of the gradients, with the marks of `get_gradient_kernel` for what a call may leave out."""
        query, value, lse = _get_types(rank)
        operands = [("query", query), ("key", query), ("value", value), ("output", value), ("lse", lse)]
        operands.append(("output_grad", value))
        results = [("query_grad", query), ("key_grad", query), ("value_grad", value)]
        if self.has_sink:
            results.append(("sink_grad", "tensor<?xf32>"))
        return self._print_function("attention_grad", rank, operands, results, ("$A", "$C", "$N", "$T"))

    def _print_function(self, op, rank, operands, results, marks=("", "", "", "")):
        """A function of one op, whose arguments are the operands, then those of clauses and of the region.

        The marks are for more arguments, clauses, names and types of results.
        """
        more_arguments, more_clauses, more_names, more_types = marks
        query = operands[0][1]
        arguments = list(operands)
        clauses, aliases = [], {}
        if self.scale is not None:
            clauses.append(f"scale({self.scale:.17e})")
        if self.mask is not None:
            clauses.append(f"mask({lowering.print_mask(self.mask, aliases)})")
        if self.has_lengths:
            arguments.append(("lengths", "tensor<?xi32>"))
            clauses.append("lengths(%lengths : tensor<?xi32>)")
        if self.has_sink:
            arguments.append(("sink", "tensor<?xf32>"))
            clauses.append("sink(%sink : tensor<?xf32>)")
        region = self._emit_region(query, query, rank)
        arguments += [(f"capture{i}", lowering.capture_type(tensor)) for i, tensor in enumerate(self.captures)]
        lines = [f"#{name} = {text}" for text, name in aliases.items()]
        parameters = ", ".join(f"%{name}: {type}" for name, type in arguments) + more_arguments
        names = ", ".join(f"%{name}" for name, _ in results) + more_names
        result_types = ", ".join(type for _, type in results) + more_types
        result_text = f"({result_types})" if len(results) > 1 else result_types
        lines.append(f"func.func @{op}({parameters}) -> {result_text} {{")
        head = " ".join([f"  {names} = flash.{op} {', '.join('%' + name for name, _ in operands)}", *clauses]) + more_clauses
        types = f": ({', '.join(type for _, type in operands)}) -> {result_text}"
        if region:
            lines.append(head + " score {")
            lines.append("  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):")
            lines += [f"    {line}" for line in region.lines]
            lines.append("  } " + types)
        else:
            lines.append(f"{head} {types}")
        lines.append(f"  return {names} : {result_types}")
        lines.append("}")
        return "\n".join(lines) + "\n"


def _fill(text, element, head_dim, value_dim):
    return text.replace("$E", element).replace("$D", str(head_dim)).replace("$V", str(value_dim))


def with_plan(config, schedule, gradient_schedule, gradient_arrays):
    """The variant that takes a plan of these schedules (`get_plan`, `get_gradient_plan`), which are None where there is
    no map. Its arrays are captured tensors behind the others: those of the attention, then those of its gradients.
    """
    parts = json.loads(config)
    if schedule:
        parts["plan"] = schedule
        parts["captures"] = parts["captures"] + _OF_MAP
    if gradient_schedule:
        parts["gradient_plan"] = gradient_schedule, gradient_arrays
        parts["captures"] = parts["captures"] + _OF_MAP * (gradient_arrays // len(_OF_MAP))
    return json.dumps(parts)


def with_signs(array, capture):
    """The bits of truth values and of integers without signs as a kernel takes them."""
    _, dtype, is_bool, is_unsigned = capture[:4]
    if not is_bool and not is_unsigned:
        return array
    torch = sys.modules.get("torch")
    name = _INTEGERS[dtype]
    return array.view(getattr(torch, name) if torch and isinstance(array, torch.Tensor) else name)


def get_kernel(config, element, rank, head_dim, value_dim, target, sizes=None):
    """The native kernel of a variant for these types, or its version for these sizes of query, key and value."""
    parts = json.loads(config)
    if "plan" in parts:
        text, _ = get_plan(config, element, rank, head_dim, value_dim, target, sizes, parts["plan"])
        return cache.get_kernel(text, target, "attention")
    text = _fill(parts["programs"][str(rank)], element, head_dim, value_dim)
    return _compile(text, target, sizes)


def _get_target(device):
    """That of a device; -1 is the CPU."""
    return "cpu" if device < 0 else _core.get_device_target(device)


def _choose_sizes(target, sizes):
    """What a version for these sizes of query, key and value is made for: on the CPU lengths count alone."""
    if target != "cpu":
        return sizes
    open_sizes = [_core.open_size] * (len(sizes[0]) - 2)
    return [[*open_sizes, _core.get_cpu_length(length), dim] for *_, length, dim in sizes]


def _compile(text, target, sizes):
    """The kernel of a program, or, where there are any, its version for these sizes of query, key and value."""
    if sizes:
        text = _core.Kernel.specialize(text, target, "", "", _choose_sizes(target, sizes))
    return cache.get_kernel(text, target)


def get_plan(config, element, rank, head_dim, value_dim, target, sizes, schedule=""):
    """A variant's program with its plan as a function of its own, and the schedule that others that take it have.

    None where the compiler knows what the mask leaves. The functions are "attention" and "attention_plan".
    """
    text = _fill(json.loads(config)["programs"][str(rank)], element, head_dim, value_dim)
    return _plan(text, target, sizes, schedule)


def get_gradient_plan(config, element, rank, head_dim, value_dim, target, sizes):
    """As `get_plan`, of the gradients. The functions are "attention_grad" and "attention_grad_plan"."""
    text = _fill(_print_gradient_call(config, rank, False, ()), element, head_dim, value_dim)
    return _plan(text, target, sizes, "")


def _plan(text, target, sizes, schedule):
    return _core.Kernel.plan(text, target, "", schedule, _choose_sizes(target, sizes) if sizes else [])


@functools.lru_cache(maxsize=512)
def get_captures(config):
    """(name, number of the dtype, whether it is bool, whether it has no sign, rank, ...) of each captured tensor."""
    return tuple(tuple(capture) for capture in json.loads(config)["captures"])


def get_gradient_kernel(config, element, rank, head_dim, value_dim, target, sizes, has_lse_grad, wrt):
    """The native kernel of a variant's gradients, as `get_kernel` gives that of the variant.

    It takes query, key, value, output, lse and the output's gradient, then lengths, sink, captured tensors, the
    gradient of lse, and the arrays of a plan for gradients, as far as there are any.

    Args:
      has_lse_grad: Whether there is a gradient of lse.
      wrt: A tuple of the numbers of captured tensors whose gradients are asked for.
    """
    text = _fill(_print_gradient_call(config, rank, has_lse_grad, wrt), element, head_dim, value_dim)
    plan = json.loads(config).get("gradient_plan")
    if plan:
        text, _ = _plan(text, target, sizes, plan[0])
        return cache.get_kernel(text, target, "attention_grad")
    return _compile(text, target, sizes)


def _print_gradient_call(config, rank, has_lse_grad, wrt):
    parts = json.loads(config)
    arguments, clauses = "", ""
    if has_lse_grad:
        lse = _get_types(rank)[2]
        arguments, clauses = f", %lse_grad: {lse}", f" lse_grad(%lse_grad : {lse})"
    types = [lowering.get_capture_type(*(parts["captures"][number][place] for place in (1, 4))) for number in wrt]
    if wrt:
        clauses += f" wrt({', '.join(f'%capture{number}' for number in wrt)} : {', '.join(types)})"
    names = "".join(f", %capture{number}_grad" for number in wrt)
    text = parts["gradients"][str(rank)].replace("$A", arguments).replace("$C", clauses)
    return text.replace("$N", names).replace("$T", "".join(f", {type}" for type in types))


@functools.lru_cache(maxsize=512)
def get_training_config(config):
    """The variant that returns the log-sum-exp, too, which gradients are computed from."""
    parts = json.loads(config)
    return config if parts["lse"] else json.dumps({**parts, "programs": parts["training"], "lse": True})


@functools.lru_cache(maxsize=512)
def get_function(config):
    """The native function of a variant."""
    parts = json.loads(config)

    def compile(element, rank, head_dim, value_dim, device, sizes):
        return get_kernel(config, element, rank, head_dim, value_dim, _get_target(device), sizes)

    def compile_gradients(element, rank, head_dim, value_dim, device, sizes, has_lse_grad, wrt):
        target = _get_target(device)
        return get_gradient_kernel(config, element, rank, head_dim, value_dim, target, sizes, has_lse_grad, wrt)

    def dispatch(query, key, value, lengths, sink, captured, is_plain):
        return _get_dispatch()(query, key, value, lengths, sink, captured, is_plain, config, parts["lse"])

    captures = [tuple(capture) for capture in parts["captures"]]
    of_plan = len(_OF_MAP) if "plan" in parts else 0
    of_gradients = parts.get("gradient_plan", (None, 0))[1]
    return _core.Attention(compile, compile_gradients, captures, parts["lse"], dispatch, of_plan, of_gradients)


@functools.lru_cache(maxsize=None)
def _get_dispatch():
    """That of PyTorch's operators, without the time of an import statement in each call."""
    from .torch_operator import dispatch

    return dispatch
