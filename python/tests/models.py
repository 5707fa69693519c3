#!/usr/bin/env python3
"""Transformers' model types, tiny and with random weights: this package's attention beside eager.

    python3 python/tests/models.py                    # all model types
    python3 python/tests/models.py --write            # the same, and models.txt becomes the types that are right
    python3 python/tests/models.py --sample 8         # as many of models.txt, of a fresh seed, which is printed
    python3 python/tests/models.py --only llama,t5    # these

Of each type whose configuration can be made small: logits without and with padding on the right, then, where the
model generates, a static cache in chunks, and the gradients of one training step. A number that is not that of eager,
and an error that eager does not make, are findings; an error that says to use eager, or which sizes are possible, is
a refusal. A type whose models never call the attention of a name is unused.
"""

import argparse
import collections
import copy
import pathlib
import random
import sys
import warnings

import torch
import transformers
from transformers.models.auto import modeling_auto as auto

import flash_mlir.transformers

NAME = flash_mlir.transformers.register()
LIST = pathlib.Path(__file__).with_name("models.txt")
LENGTH, PADDING = 20, 6
# Parts of names of sizes, each with a small value. The first that fits counts.
SIZES = [
    ("vocab_size", 64), ("num_labels", None), ("token_id", None), ("head_dim", 8), ("d_kv", 8), ("kv_channels", 8),
    ("num_key_value_heads", 2), ("num_kv_heads", 2), ("heads", 4), ("n_head", 4), ("num_experts_per", 2),
    ("experts", 4), ("moe_k", 2), ("n_group", 1), ("topk_group", 1), ("max_position", 64), ("n_positions", 64),
    ("max_seq", 64), ("sliding_window", 8), ("num_hidden_layers", 2), ("n_layer", 2), ("layers", 2), ("num_layers", 2),
    ("intermediate_size", 32), ("ffn", 32), ("d_ff", 32), ("n_inner", 32), ("hidden_size", 32), ("d_model", 32),
    ("n_embd", 32), ("embedding_size", 32), ("embed_dim", 32), ("model_dim", 32), ("word_embed_proj_dim", 32),
    ("lora_rank", 16), ("emb_dim", 32), ("hidden_dim", 32), ("rotary_dim", 8),
]
# Sizes for types with which these do not go together: as many heads of keys as of queries, enough layers for one of
# each kind, heads as wide as the sections of rotary embeddings want, the default's layers.
WIDE = [("hidden_size", 512), ("head_dim", 128)]
OTHERS = [
    [],
    [("num_key_value_heads", 4), ("num_kv_heads", 4)],
    [("num_hidden_layers", 8)],
    WIDE,
    [*WIDE, ("num_hidden_layers", 4)],
    [("layer", None)],
]
FEW = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
KINDS = [
    ("causal", auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    ("seq2seq", auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
    ("masked", auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
    ("base", auto.MODEL_MAPPING_NAMES),
]


class Unsuited(Exception):
    """The model cannot be made small, or does not run in eager either: nothing to compare."""


def shrink(config, sizes):
    """The arguments that make a configuration small, its parts included."""
    given = {}
    for name, value in vars(config).items():
        if isinstance(value, transformers.PreTrainedConfig):
            given[name] = shrink(value, sizes)
        elif isinstance(value, float) and ("drop" in name or name.endswith("_prob")):
            given[name] = 0.0
        elif name in FEW:
            given[name] = FEW[name]
        elif isinstance(value, int) and not isinstance(value, bool):
            small = next((small for part, small in sizes if part in name), None)
            if small is not None and value > small:
                given[name] = small
    return given


def make_config(model_type, sizes):
    kind = transformers.CONFIG_MAPPING[model_type]
    default = kind()
    if not hasattr(default.get_text_config(), "vocab_size"):
        raise Unsuited("it has no tokens")
    given = shrink(default, sizes)
    for reset in ({}, {"layer_types": None}):
        try:
            return kind(**given, **reset)
        except Exception as error:
            last = error
    raise Unsuited(f"{type(last).__name__}: {last}")


def find_kind(model_type):
    for kind, names in KINDS:
        if model_type in names:
            name = names[model_type]
            model = getattr(transformers, name if isinstance(name, str) else name[0], None)
            if model is not None:
                return kind, model
    raise Unsuited("no model of text")


def make_eager(model, config):
    with torch.device("meta"):
        meta = model._from_config(copy.deepcopy(config), attn_implementation="eager")
    if sum(parameter.numel() for parameter in meta.parameters()) > 1e7:
        raise Unsuited("it stays large")
    torch.manual_seed(0)
    eager = model._from_config(copy.deepcopy(config), attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in eager.parameters():
        # Such that attention has a say.
        parameter.data.normal_(std=0.2, generator=generator).add_(float(parameter.dim() == 1))
    run(eager, "whole")
    return eager


def make_models(model_type):
    """The kind, our model and eager's, of the first sizes of which eager's runs."""
    kind, model = find_kind(model_type)
    first = None
    for other in OTHERS:
        try:
            config = make_config(model_type, other + SIZES)
            theirs = make_eager(model, config)
            break
        except Exception as error:
            is_plain = isinstance(error, Unsuited)
            first = first or Unsuited(str(error) if is_plain else f"{type(error).__name__}: {error}")
    else:
        raise first
    torch.manual_seed(0)
    ours = model._from_config(copy.deepcopy(config), attn_implementation=NAME).eval()
    ours.load_state_dict(theirs.state_dict())
    return kind, ours, theirs


def get_result(output):
    for name in ("logits", "last_hidden_state", "prediction_logits"):
        if getattr(output, name, None) is not None:
            return getattr(output, name)
    raise Unsuited("no logits")


def run(model, case):
    """The numbers that are compared."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, 64, (2, LENGTH), generator=generator)
    mask = torch.ones_like(tokens)
    if case == "padded":
        mask[1, -PADDING:] = 0
    inputs = dict(attention_mask=mask)
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens[:, :7]
    keep = slice(None) if model.config.is_encoder_decoder else mask.bool()
    if case in ("whole", "padded"):
        with torch.no_grad():
            return [get_result(model(tokens, **inputs))[keep]]
    if case == "static":
        cache = transformers.StaticCache(config=model.config.get_text_config(decoder=True), max_cache_len=LENGTH + 4)
        results = []
        with torch.no_grad():
            for first, last in ((0, 8), (8, LENGTH - 1), (LENGTH - 1, LENGTH)):
                options = dict(attention_mask=mask[:, :last], past_key_values=cache, use_cache=True)
                results.append(model(tokens[:, first:last], **options).logits)
        return results
    model.zero_grad()
    model.train()
    torch.manual_seed(2)
    try:
        get_result(model(tokens, **inputs)).float().square().mean().backward()
    finally:
        model.eval()
    return [p.grad.clone() if p.grad is not None else torch.zeros(()) for p in model.parameters()]


def differ(ours, theirs):
    """By how much in parts of the largest number; gradients of one thing each by their own largest."""
    worst = 0.0
    largest = max((float(t.abs().max()) for t in theirs if t.numel()), default=0.0)
    for mine, other in zip(ours, theirs):
        if mine.shape != other.shape:
            return float("inf")
        if other.numel():
            scale = max(float(other.abs().max()), 1e-2 * largest, 1e-20)
            worst = max(worst, float(torch.nan_to_num(mine - other, nan=float("inf")).abs().max()) / scale)
    return worst


def try_type(model_type):
    """Of each case, whether the numbers are right: (case, verdict, text)."""
    kind, ours, theirs = make_models(model_type)
    used = []

    def attend(*arguments, **options):
        used.append(True)
        return flash_mlir.transformers.attend(*arguments, **options)

    transformers.AttentionInterface.register(NAME, attend)
    cases = ["whole", "padded"] + (["static"] if kind == "causal" else []) + ["training"]
    for case in cases:
        try:
            expected, again = run(theirs, case), run(theirs, case)
        except Exception as error:
            yield case, "unsuited", f"{type(error).__name__}: {error}"
            continue
        if not all(bool(torch.isfinite(part).all()) for part in expected):
            yield case, "unsuited", "eager is not finite"
            continue
        noise = differ(again, expected)
        if noise > 1e-5:
            yield case, "unsuited", "eager is random"
            continue
        try:
            error = differ(run(ours, case), expected)
        except Exception as error:
            is_refused = "attn_implementation='eager'" in str(error) or "are possible" in str(error)
            yield case, "refused" if is_refused else "finding", f"{type(error).__name__}: {error}"
            continue
        yield case, "finding" if error >= 5e-3 else "right" if used else "unused", f"{error:.1e}"


def try_all(model_type):
    try:
        return list(try_type(model_type))
    except Unsuited as error:
        return [("-", "unsuited", str(error))]
    except Exception as error:
        # Ours alone cannot be made. Some types look the name up in a table of their own, and take no others.
        verdict = "refused" if isinstance(error, KeyError) and error.args == (NAME,) else "finding"
        return [("-", verdict, f"{type(error).__name__}: {error}")]


def judge(verdicts):
    """The verdict of a type: the worst of its cases that can be compared."""
    return next((v for v in ("finding", "refused", "right", "unused") if v in verdicts), "unsuited")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="so many of the types in models.txt, drawn at random")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", help="model types, by commas")
    parser.add_argument("--write", action="store_true", help="write models.txt")
    parser.add_argument("--verbose", action="store_true", help="a line for each type, and why it cannot be compared")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    types = sorted({name for _, names in KINDS for name in names} & set(transformers.CONFIG_MAPPING))
    if options.only:
        types = options.only.split(",")
    elif options.sample:
        print(f"seed {options.seed}")
        types = random.Random(options.seed).sample(LIST.read_text().split(), options.sample)
    found = collections.defaultdict(list)
    for model_type in types:
        results = try_all(model_type)
        verdict = judge({verdict for _, verdict, _ in results})
        found[verdict].append(model_type)
        if options.verbose:
            print(f"{model_type}: {verdict}", flush=True)
        for case, verdict, text in results:
            if verdict == "finding" or (options.verbose and verdict != "right"):
                print(f"{model_type} {case}: {verdict}: {' '.join(text.split())[:300]}", flush=True)
    flash_mlir.transformers.register()
    if options.write:
        LIST.write_text("".join(f"{model_type}\n" for model_type in found["right"]))
    counts = ", ".join(f"{len(names)} {verdict}" for verdict, names in sorted(found.items()))
    print(f"{len(types)} model types; {counts}")
    return int(bool(found["finding"]))


if __name__ == "__main__":
    sys.exit(main())
