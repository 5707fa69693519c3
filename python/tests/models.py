#!/usr/bin/env python3
"""Transformers' model types, tiny and with random weights: this package's attention beside eager.

    python3 python/tests/models.py                    # all model types
    python3 python/tests/models.py --write            # the same, and models.txt becomes the types that are right
    python3 python/tests/models.py --sample 8         # as many of models.txt, of a fresh seed, which is printed
    python3 python/tests/models.py --only llama,t5    # these

Of each type whose configuration can be made small: logits without and, of tokens, with padding on the right and on the
left, then, where the model generates, a static cache in chunks, and the gradients of one training step. Inputs are tokens,
pictures, sound, or what of them the model takes together. A number that is not that of eager, unless rounding alone
moves eager as well, and an error that eager does not make, are findings; an error that says to use eager, or which
sizes are possible, is a refusal. A type whose models never call the attention of a name is unused.
"""

import argparse
import collections
import copy
import inspect
import itertools
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
# Cases with padding on the left: the tokens there are others in the second, of which nothing may be seen.
LEFT = "padded on the left", "other padding"
# Parts of names of sizes, each with a small value. The first that fits counts.
SIZES = [
    ("vocab_size", 64), ("num_labels", None), ("token_id", None), ("head_dim", 8), ("d_kv", 8), ("kv_channels", 8),
    ("num_key_value_heads", 2), ("num_kv_heads", 2), ("heads", 4), ("n_head", 4), ("num_experts_per", 2),
    ("experts", 4), ("moe_k", 2), ("n_group", 1), ("topk_group", 1), ("max_position", 64), ("n_positions", 64),
    ("max_seq", 64), ("sliding_window", 8), ("num_hidden_layers", 2), ("n_layer", 2), ("layers", 2), ("num_layers", 2),
    ("intermediate_size", 32), ("ffn", 32), ("d_ff", 32), ("n_inner", 32), ("hidden_size", 32), ("d_model", 32),
    ("n_embd", 32), ("embedding_size", 32), ("embed_dim", 32), ("model_dim", 32), ("word_embed_proj_dim", 32),
    ("lora_rank", 16), ("emb_dim", 32), ("hidden_dim", 32), ("rotary_dim", 8), ("image_size", 32), ("conv_dim", 32),
    ("num_conv_pos_embeddings", 16), ("num_frames", 4), ("mlp_dim", 32), ("projection_dim", 32), ("context_size", 16),
]
# Changes for types with which these do not go together: as many heads of keys as of queries, enough layers for one of
# each kind, heads as wide as the sections of rotary embeddings want, the default's layers; sizes that have no default
# (FILL), one layer of each kind (EACH), and smaller sections of rotary embeddings (SECTIONS).
WIDE = [("hidden_size", 512), ("head_dim", 128)]
SAME = [("num_key_value_heads", 4), ("num_kv_heads", 4)]
FILL, EACH, SECTIONS = "fill", "each", "sections"
OTHERS = [
    [],
    SAME,
    [("num_hidden_layers", 8)],
    WIDE,
    [*WIDE, ("num_hidden_layers", 4)],
    [("layer", None)],
    [FILL],
    [FILL, *SAME],
    [EACH],
    [EACH, *SAME],
    [EACH, FILL],
    [SECTIONS],
    [SECTIONS, *SAME],
    [("layers", None), ("image_size", 64)],
    [("image_size", None)],
]
FEW = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
# What models are given, the first that eager takes.
INPUTS = [
    ("tokens",),
    ("picture",),
    ("patches",),
    ("sound",),
    ("features",),
    ("frames",),
    ("film",),
    ("tokens", "picture"),
    ("tokens", "features"),
    ("tokens", "sound"),
    ("spectrogram",),
]
KINDS = [
    ("causal", auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    ("seq2seq", auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
    ("masked", auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
    ("base", auto.MODEL_MAPPING_NAMES),
]


class Unsuited(Exception):
    """The model cannot be made small, or does not run in eager either: nothing to compare."""


def find_size(name, sizes):
    return next((size[1] for size in sizes if isinstance(size, tuple) and size[0] in name), None)


def shrink(config, sizes):
    """The arguments that make a configuration small, its parts included."""
    given = {}
    layers = getattr(config, "num_hidden_layers", None)
    kinds = next((name for name in ("layer_types", "layers_block_type") if getattr(config, name, None)), None)
    for name, value in vars(config).items():
        is_list = isinstance(value, (list, tuple)) and len(value) > 0
        if isinstance(value, transformers.PreTrainedConfig):
            given[name] = dict(model_type=value.model_type, **shrink(value, sizes))
        elif isinstance(value, float) and ("drop" in name or name.endswith("_prob")):
            given[name] = 0.0
        elif name in FEW:
            given[name] = FEW[name]
        elif isinstance(value, dict) and name.startswith("rope_") and SECTIONS in sizes:
            given[name] = value | {"mrope_section": [2, 1, 1]}
        elif type(value) is int or (value is None and FILL in sizes):
            small = find_size(name, sizes)
            if small is not None:
                given[name] = small if value is None else min(value, small)
        elif is_list and all(type(number) is int for number in value):
            small = find_size(name, sizes)
            if small is not None:
                given[name] = type(value)(min(number, small) for number in value)
    if layers and getattr(config, "per_layer_config", None):
        given["global_head_dim"] = find_size("head_dim", sizes)  # An argument of Gemma's that is no field.
    if EACH in sizes and kinds:
        attention = "full_attention" if kinds == "layer_types" else "attention"
        given[kinds] = [*dict.fromkeys(getattr(config, kinds)), attention]
        given["num_hidden_layers"] = len(given[kinds])
    # What has an entry for each layer has fewer.
    for name, value in vars(config).items():
        if isinstance(value, (list, tuple)) and len(value) == layers and name != kinds and "num_hidden_layers" in given:
            given[name] = given.get(name, value)[: given["num_hidden_layers"]]
    return given


def make_config(model_type, sizes):
    kind = transformers.CONFIG_MAPPING[model_type]
    given = shrink(kind(), sizes)
    for reset in ({}, {"layer_types": None}):
        try:
            return kind(**(given | reset))
        except Exception as error:
            last = error
    raise Unsuited(f"{type(last).__name__}: {last}")


def find_models(model_type):
    """Its classes that take text alone, then the one without a head."""
    found = []
    for kind, names in KINDS:
        name = names.get(model_type)
        model = getattr(transformers, name if isinstance(name, str) else name[0], None) if name else None
        if model is not None and (not found or kind == "base"):
            found.append((kind, model))
    if not found:
        raise Unsuited("no model of text")
    return found


def find_in(config, *names):
    """The first of these that a configuration or a part of it has."""
    for name in names:
        if isinstance(getattr(config, name, None), (int, list, tuple)):
            return getattr(config, name)
    for part in vars(config).values():
        if isinstance(part, transformers.PreTrainedConfig) and (found := find_in(part, *names)) is not None:
            return found
    return None


def make_inputs(model, what, generator):
    """Inputs of a kind in INPUTS."""
    config, inputs = model.config, {}
    parameters = inspect.signature(model.forward).parameters

    def draw(*shape):
        return torch.randn(shape, generator=generator)

    def get(default, *names):
        found = find_in(config, *names)
        return default if found is None else found

    size = get(32, "image_size", "img_size")
    size = list(size) if isinstance(size, (list, tuple)) else [size, size]
    picture = [get(3, "num_channels", "in_channels", "in_chans"), *size]
    if "tokens" in what:
        inputs["input_ids"] = torch.randint(3, 64, (2, LENGTH), generator=generator)
        if "attention_mask" in parameters:
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if "picture" in what:
        inputs["pixel_values"] = draw(2, *picture)
    if "film" in what:
        name = "pixel_values_videos" if "pixel_values_videos" in parameters else "pixel_values"
        inputs[name] = draw(2, get(4, "num_frames", "frames_per_clip"), *picture)
    if "patches" in what:
        grid = torch.tensor([[1, 4, 8], [1, 4, 4]])
        side = get(14, "patch_size")
        name = "hidden_states" if "hidden_states" in parameters else "pixel_values"
        inputs[name] = draw(48, picture[0] * get(2, "temporal_patch_size") * side * side)
        inputs["image_grid_thw" if "image_grid_thw" in parameters else "grid_thw"] = grid
    if "sound" in what:
        inputs["input_values"] = draw(2, 4000)
    if "features" in what or "frames" in what:
        shape = [get(80, "num_mel_bins", "input_feat_per_channel", "feature_size", "feat_in"), 128]
        inputs["input_features"] = draw(2, *(shape if "features" in what else shape[::-1]))
    if "spectrogram" in what:
        inputs["input_values"] = draw(2, get(64, "max_length"), get(80, "num_mel_bins"))
    missing = [name for name in inputs if name not in parameters]
    if missing:
        raise Unsuited(f"it takes no {missing[0]}")
    return inputs


def make_eager(model, config):
    """Eager's model, and the kind of inputs that it takes."""
    with torch.device("meta"):
        meta = model._from_config(copy.deepcopy(config), attn_implementation="eager")
    if sum(parameter.numel() for parameter in meta.parameters()) > 3e7:
        raise Unsuited("it stays large")
    torch.manual_seed(0)
    eager = model._from_config(copy.deepcopy(config), attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in eager.parameters():
        # Such that attention has a say, and wide layers do not make noise of rounding.
        std = 0.2 * min(1.0, (32 / parameter.shape[-1]) ** 0.5) if parameter.dim() > 1 else 0.2
        parameter.data.normal_(std=std, generator=generator).add_(float(parameter.dim() == 1))
    first = None
    for what in INPUTS:
        try:
            run(eager, "whole", what)
            return eager, what
        except Exception as error:
            first = error if first is None or isinstance(first, Unsuited) else first
    raise first


def make_models(model_type):
    """The kind, our model and eager's, of the first sizes of which eager's runs."""
    first = None
    for (kind, model), other in itertools.product(find_models(model_type), OTHERS):
        try:
            config = make_config(model_type, other + SIZES)
            theirs, what = make_eager(model, config)
            break
        except Exception as error:
            is_plain = isinstance(error, Unsuited)
            first = first or Unsuited(str(error) if is_plain else f"{type(error).__name__}: {error}")
    else:
        raise first
    torch.manual_seed(0)
    ours = model._from_config(copy.deepcopy(config), attn_implementation=NAME).eval()
    ours.load_state_dict(theirs.state_dict())
    return kind, what, ours, theirs


def get_result(output):
    for name in ("logits", "last_hidden_state", "prediction_logits", "logits_per_image"):
        if isinstance(getattr(output, name, None), torch.Tensor):
            return getattr(output, name)
    raise Unsuited("no logits")


def run(model, case, what):
    """The numbers that are compared."""
    inputs = make_inputs(model, what, torch.Generator().manual_seed(1))
    tokens, mask = inputs.get("input_ids"), inputs.get("attention_mask")
    if case == "padded":
        mask[1, -PADDING:] = 0
    elif case in LEFT:
        mask[0, :PADDING] = 0
        tokens[0, :PADDING] += int(case == LEFT[1])
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.arange(3, 17).reshape(2, 7) if tokens is None else tokens[:, :7]
    torch.manual_seed(2)
    if case in ("whole", "padded", *LEFT):
        with torch.no_grad():
            result = get_result(model(**inputs))
        return [result[mask.bool()] if mask is not None and result.shape[:2] == mask.shape else result]
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
    try:
        get_result(model(**inputs)).float().square().mean().backward()
    finally:
        model.eval()
    return [p.grad.clone() if p.grad is not None else torch.zeros(()) for p in model.parameters()]


def move_last_bits(model):
    """A model that is another by rounding alone: where experts are chosen by such numbers, so is what it computes."""
    moved = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(3)
    for parameter in moved.parameters():
        parameter.data.mul_(1 + 2**-22 * torch.randn(parameter.shape, generator=generator))
    return moved


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
    kind, what, ours, theirs = make_models(model_type)
    used = []

    def attend(*arguments, **options):
        used.append(True)
        return flash_mlir.transformers.attend(*arguments, **options)

    transformers.AttentionInterface.register(NAME, attend)
    is_padded = "tokens" in what and "attention_mask" in make_inputs(ours, what, None)
    cases = ["whole"] + ["padded", LEFT[0]] * is_padded + ["static"] * (kind == "causal" and what == ("tokens",)) + ["training"]
    for case in cases:
        try:
            expected = run(theirs, case, what)
        except Exception as error:
            yield case, "unsuited", f"{type(error).__name__}: {error}"
            continue
        if not all(bool(torch.isfinite(part).all()) for part in expected):
            yield case, "unsuited", "eager is not finite"
            continue
        try:
            error = differ(run(ours, case, what), expected)
        except Exception as error:
            is_refused = "attn_implementation='eager'" in str(error) or "are possible" in str(error)
            yield case, "refused" if is_refused else "finding", f"{type(error).__name__}: {error}"
            continue
        if error >= 5e-3 and (noise := differ(run(move_last_bits(theirs), case, what), expected)) >= 5e-3:
            yield case, "unsuited", f"rounding alone moves eager by {noise:.1e}"
            continue
        if error >= 5e-3 and case == LEFT[0] and differ(run(theirs, LEFT[1], what), expected) >= 5e-3:
            yield case, "unsuited", "padding moves what eager computes"
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
