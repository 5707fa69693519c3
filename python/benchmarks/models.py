"""Times Transformers' models with this package's attention beside its own implementations.

    python models.py [--layers 16] [--dtype bfloat16] [NAME...]

Models of usual sizes with random weights: prefill, with and without padding, and decoding one token after another.
Logits are compared with the other implementation's, and both with the model in fp32: of two roundings, neither
is right. Lines of JSON, times in milliseconds.
"""

import argparse
import copy
import json
import statistics
import time

import torch
import transformers

import flash_mlir.transformers

SIZES = dict(vocab_size=32768, pad_token_id=0, bos_token_id=1, eos_token_id=None, max_position_embeddings=32768)
# Name: the config, its options, the model, and whose attention ours is compared with.
MODELS = {
    "llama": (
        transformers.LlamaConfig,
        dict(hidden_size=2048, intermediate_size=8192, num_attention_heads=32, num_key_value_heads=8),
        transformers.LlamaForCausalLM,
        "sdpa",
    ),
    "qwen3": (
        transformers.Qwen3Config,
        dict(hidden_size=2048, intermediate_size=6144, num_attention_heads=16, num_key_value_heads=8, head_dim=128),
        transformers.Qwen3ForCausalLM,
        "sdpa",
    ),
    "gemma2": (
        transformers.Gemma2Config,
        dict(
            hidden_size=2304,
            intermediate_size=9216,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=256,
            sliding_window=1024,
        ),
        transformers.Gemma2ForCausalLM,
        "eager",  # sdpa has no cap of scores.
    ),
}


def make(name, implementation, options):
    kind, sizes, model, _ = MODELS[name]
    config = kind(**SIZES, **sizes, num_hidden_layers=options.layers)
    torch.manual_seed(0)
    with torch.device(options.device):
        return model._from_config(copy.deepcopy(config), attn_implementation=implementation).to(
            getattr(torch, options.dtype)
        ).eval()


def synchronize(options):
    if options.device == "cuda":
        torch.cuda.synchronize()


def measure(function, options, rounds):
    """The median, in milliseconds, and what the last round gave."""
    times = []
    for _ in range(rounds + 1):
        synchronize(options)
        start = time.perf_counter()
        result = function()
        synchronize(options)
        times.append(1e3 * (time.perf_counter() - start))
    return round(statistics.median(times[1:]), 3), result


def decode(model, tokens, count, options):
    """Milliseconds of a token, after `tokens`."""
    output = model(tokens, use_cache=True)
    cache, token = output.past_key_values, output.logits[:, -1:].argmax(-1)
    times = []
    for _ in range(count):
        synchronize(options)
        start = time.perf_counter()
        output = model(token, past_key_values=cache, use_cache=True)
        token = output.logits[:, -1:].argmax(-1)
        synchronize(options)
        times.append(1e3 * (time.perf_counter() - start))
    return round(statistics.median(times[count // 4 :]), 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--lengths", type=int, nargs="*", default=[1024, 8192])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    ours = flash_mlir.transformers.register()
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "layers": options.layers}), flush=True)
    torch.set_grad_enabled(False)
    for name in options.names:
        theirs = MODELS[name][3]
        models = {who: make(name, who, options) for who in (ours, theirs)}
        models[ours].load_state_dict(models[theirs].state_dict())
        for length in options.lengths:
            tokens = torch.randint(2, SIZES["vocab_size"], (2, length), device=options.device)
            padding = torch.ones_like(tokens)
            padding[0, : length // 3] = 0
            for what, arguments in {"prefill": {}, "padded prefill": {"attention_mask": padding}}.items():
                found = {"model": name, "what": what, "length": length}
                keep = padding.bool() if arguments else torch.ones_like(padding).bool()
                logits = {}
                for who, model in models.items():
                    call = lambda: model(tokens, use_cache=False, **arguments).logits
                    found[who], result = measure(call, options, options.rounds)
                    logits[who] = result[keep].float()
                scale = logits[theirs].norm()
                found["logits differ by"] = round(float((logits[ours] - logits[theirs]).norm() / scale), 6)
                if length == options.lengths[0]:
                    exact = models[theirs].float()(tokens, use_cache=False, **arguments).logits[keep]
                    models[theirs].to(getattr(torch, options.dtype))
                    for who, values in logits.items():
                        found[f"{who} from fp32"] = round(float((values - exact).norm() / exact.norm()), 6)
                print(json.dumps(found), flush=True)
            found = {"model": name, "what": "a token", "length": length}
            for who, model in models.items():
                found[who] = decode(model, tokens, 24, options)
            print(json.dumps(found), flush=True)
        del models


if __name__ == "__main__":
    main()
