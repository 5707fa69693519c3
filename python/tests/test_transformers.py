"""Transformers' models with `attn_implementation` of this package, beside its own implementations."""

import contextlib
import copy
import functools

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import flash_mlir.transformers  # noqa: E402

NAME = flash_mlir.transformers.register()
LENGTH = 24
SIZES = dict(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=None,
)


def make_llama():
    return transformers.LlamaConfig(**SIZES), transformers.LlamaForCausalLM, "sdpa"


def make_qwen():
    return transformers.Qwen3Config(**SIZES), transformers.Qwen3ForCausalLM, "sdpa"


def make_gemma():
    """Every other layer has a window, and scores have a cap."""
    config = transformers.Gemma2Config(
        **SIZES, sliding_window=7, attn_logit_softcapping=2.0, query_pre_attn_scalar=8, final_logit_softcapping=None
    )
    return config, transformers.Gemma2ForCausalLM, "eager"


def make_gpt_oss():
    """Sinks, and windows in every other layer."""
    config = transformers.GptOssConfig(**SIZES, sliding_window=7, num_local_experts=2, num_experts_per_tok=2)
    return config, transformers.GptOssForCausalLM, "eager"


CAUSAL = {"llama": make_llama, "qwen": make_qwen, "gemma": make_gemma, "gpt-oss": make_gpt_oss}


@pytest.fixture(scope="module")
def models():
    """(ours, theirs) with the same weights, made when first asked for."""
    made = {}

    def get(name, make):
        if name not in made:
            config, kind, reference = make()
            torch.manual_seed(0)
            theirs = kind._from_config(copy.deepcopy(config), attn_implementation=reference).eval()
            for parameter in theirs.parameters():  # Some start at zero, sinks among them.
                torch.nn.init.normal_(parameter, std=0.3)
            ours = kind._from_config(copy.deepcopy(config), attn_implementation=NAME).eval()
            ours.load_state_dict(theirs.state_dict())
            made[name] = ours, theirs
        return made[name]

    return get


def make_batch(padding):
    """Tokens and their mask: none, or of 5 and 9 tokens less, on one side."""
    tokens = torch.randint(1, 64, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(tokens)
    if padding == "left":
        mask[0, :5] = mask[1, :9] = 0
    elif padding == "right":
        mask[0, -5:] = mask[1, -9:] = 0
    return tokens, mask


def compare(ours, theirs, mask=None):
    keep = slice(None) if mask is None else mask.bool()
    torch.testing.assert_close(ours[keep], theirs[keep], rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("padding", ["none", "left", "right"])
def test_logits(models, name, padding):
    ours, theirs = models(name, CAUSAL[name])
    tokens, mask = make_batch(padding)
    with torch.no_grad():
        compare(ours(tokens, attention_mask=mask).logits, theirs(tokens, attention_mask=mask).logits, mask)


@pytest.mark.parametrize("name", CAUSAL)
def test_packed(models, name):
    """Sequences in one row, which their positions tell apart."""
    ours, theirs = models(name, CAUSAL[name])
    tokens, _ = make_batch("none")
    positions = torch.cat([torch.arange(10), torch.arange(9), torch.arange(5)]).expand(2, -1)
    with torch.no_grad():
        results = [m(tokens, position_ids=positions, use_cache=False).logits for m in (ours, theirs)]
        compare(*results)
        if name != "gpt-oss":  # Which does not look for sequences.
            compare(results[0][:, 10:19], ours(tokens[:, 10:19], use_cache=False).logits)


@pytest.fixture
def offsets_of_calls(monkeypatch):
    """The offsets of queries that each call of attention has, or None."""
    found = []
    attention = flash_mlir.transformers.attention

    def call(*arguments, query_offsets=None, **options):
        found.append(None if query_offsets is None else query_offsets.tolist())
        return attention(*arguments, query_offsets=query_offsets, **options)

    monkeypatch.setattr(flash_mlir.transformers, "attention", call)
    return found


@pytest.mark.parametrize("name", CAUSAL)
def test_packed_rows(models, offsets_of_calls, name):
    """What a collator without padding makes, with positions or offsets, has the logits of each sequence alone."""
    ours, theirs = models(name, CAUSAL[name])
    tokens = torch.randint(1, 64, (24,), generator=torch.Generator().manual_seed(2))
    parts = tokens[:10], tokens[10:11], tokens[11:]
    offsets = [0, 10, 11, 24]
    features = [{"input_ids": part.tolist()} for part in parts]
    with torch.no_grad():
        alone = torch.cat([theirs(part[None], use_cache=False).logits[0] for part in parts])
    # gpt-oss does not look for sequences by positions, and where offsets alone tell, positions run through all of them: the
    # models' rotations are relative.
    for with_positions, with_offsets in ((True, False), (False, True), (True, True)):
        collator = transformers.DataCollatorWithFlattening(
            return_position_ids=with_positions, return_flash_attn_kwargs=with_offsets, return_tensors="pt"
        )
        offsets_of_calls.clear()
        with torch.no_grad():
            logits = ours(**collator(features), use_cache=False).logits[0]
        is_told = with_offsets or name != "gpt-oss"
        assert offsets_of_calls == [offsets if is_told else None] * 2
        if is_told:
            torch.testing.assert_close(logits, alone, rtol=1e-3, atol=1e-3)


def test_packed_rows_of_a_batch(models, offsets_of_calls):
    """Rows of a batch, each of several sequences; gradients; and positions that start elsewhere."""
    ours, theirs = models("gemma", make_gemma)
    tokens, _ = make_batch("none")
    for first in (0, 2):
        rows = [torch.cat([torch.arange(first, first + n) for n in lengths]) for lengths in ((10, 9, 5), (23, 1))]
        positions = torch.stack(rows)
        grads = []
        for model in (ours, theirs):
            model.zero_grad()
            model(tokens, position_ids=positions, use_cache=False, labels=tokens).loss.backward()
            grads.append([parameter.grad.clone() for parameter in model.parameters()])
        torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-3)
        assert offsets_of_calls == [[0, 10, 19, 24, 47, 48]] * 2
        offsets_of_calls.clear()
    # Sequences that do not start alike go by a mask, as do masks that read arrays.
    positions[1, :23] += 1
    with torch.no_grad():
        compare(*[model(tokens, position_ids=positions, use_cache=False).logits for model in (ours, theirs)])
    assert offsets_of_calls == [None] * 2


def collate(examples, multiple):
    """What a collator without padding makes of examples, as TRL does: they lie behind each other, and where the row is padded
    to a multiple, the rest has positions of 0 and is none of the sequences."""
    lengths = [len(example) for example in examples]
    missing = -sum(lengths) % multiple
    pad = lambda tensors, value: torch.nn.functional.pad(torch.cat(tensors), (0, missing), value=value)[None]
    labels = [example.clone() for example in examples]
    for each in labels:
        each[0] = -100
    offsets = torch.tensor([0, *lengths]).cumsum(0).int()
    return dict(
        input_ids=pad(examples, 0),
        labels=pad(labels, -100),
        position_ids=pad([torch.arange(length) for length in lengths], 0),
        cu_seq_lens_q=offsets,
        cu_seq_lens_k=offsets,
        max_length_q=max(lengths),
        max_length_k=max(lengths),
    )


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("multiple", [1, 16])
def test_training_without_padding(models, offsets_of_calls, name, multiple):
    """A step of training with such a batch: logits, loss and gradients of theirs for each example by itself."""
    ours, theirs = (copy.deepcopy(model).train() for model in models(name, CAUSAL[name]))
    generator = torch.Generator().manual_seed(3)
    examples = [torch.randint(1, 64, (length,), generator=generator) for length in (10, 2, 13, 1)]
    batch = collate(examples, multiple)
    results = ours(**batch, use_cache=False)
    results.loss.backward()
    assert len(offsets_of_calls) == 2 and all(offsets[:5] == [0, 10, 12, 25, 26] for offsets in offsets_of_calls)
    count = sum(len(example) - 1 for example in examples)
    loss, end = 0, 0
    for example in examples:
        logits = theirs(example[None], use_cache=False).logits[0]
        compare(results.logits[0, end : end + len(example)], logits)
        loss += torch.nn.functional.cross_entropy(logits[:-1], example[1:], reduction="sum") / count
        end += len(example)
    torch.testing.assert_close(results.loss, loss, rtol=1e-4, atol=1e-4)
    loss.backward()
    for (parameter, of_ours), of_theirs in zip(ours.named_parameters(), theirs.parameters()):
        assert (of_ours.grad is None) == (of_theirs.grad is None)
        if of_theirs.grad is not None and of_theirs.grad.any():
            scale = of_theirs.grad.abs().max()
            torch.testing.assert_close(of_ours.grad / scale, of_theirs.grad / scale, rtol=1e-3, atol=1e-3, msg=parameter)


def test_packed_rows_in_graphs():
    """What watches operators would take what positions hold for constants; there a mask reads them."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from transformers import masking_utils

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            return function(*arguments, **(options or {}))

    for mode, expected in ((contextlib.nullcontext(), [0, 4, 6]), (Watch(), None)):
        with mode:
            positions, numbers = torch.tensor([[0, 1, 2, 3, 0, 1]]), torch.tensor([[0, 0, 0, 0, 1, 1]])
            function = masking_utils.packed_sequence_compatibility_function(masking_utils.causal_mask_function, positions, numbers)
            sequences = flash_mlir.transformers.make_mask(1, 6, 6, mask_function=function).sequences
            assert (sequences and sequences[1].tolist()) == expected


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generation(models, name, cache):
    """The same tokens, beyond the windows, from prompts of two lengths."""
    ours, theirs = models(name, CAUSAL[name])
    tokens, mask = make_batch("left")
    options = dict(max_new_tokens=10, do_sample=False, output_logits=True, return_dict_in_generate=True)
    if cache == "static":
        options.update(cache_implementation="static", disable_compile=True)
    results = [m.generate(tokens, attention_mask=mask, **options) for m in (ours, theirs)]
    assert torch.equal(results[0].sequences, results[1].sequences)
    compare(torch.stack(results[0].logits), torch.stack(results[1].logits))


def test_training(models):
    """Gradients of all parameters, sinks among them."""
    ours, theirs = (copy.deepcopy(model).train() for model in models("gpt-oss", make_gpt_oss))
    tokens, mask = make_batch("right")
    labels = tokens.masked_fill(mask == 0, -100)
    for model in (ours, theirs):
        model(tokens, attention_mask=mask, labels=labels).loss.backward()
    of_theirs = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if of_theirs[name].grad is None:
            continue
        scale = of_theirs[name].grad.abs().max()
        torch.testing.assert_close(parameter.grad / scale, of_theirs[name].grad / scale, rtol=1e-3, atol=1e-3, msg=name)


def make_t5():
    config = transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4, dropout_rate=0.0, pad_token_id=0,
        decoder_start_token_id=0, eos_token_id=None,
    )
    return config, transformers.T5ForConditionalGeneration, "eager"


def make_bert():
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32,
        attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0,
    )
    return config, transformers.BertModel, "sdpa"


@pytest.mark.parametrize("padding", ["none", "right"])
def test_encoder_and_decoder(models, padding):
    """T5: a bias of buckets, which is learned, and attention across."""
    ours, theirs = models("t5", make_t5)
    tokens, mask = make_batch(padding)
    options = dict(attention_mask=mask, decoder_input_ids=tokens[:, :7])
    biases = [m.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight for m in (ours, theirs)]
    with torch.set_grad_enabled(padding == "none"):
        results = [m(tokens, **options).logits for m in (ours, theirs)]
    compare(*results)
    if padding != "none":
        return
    grads = [torch.autograd.grad(result.square().mean(), bias)[0] for result, bias in zip(results, biases)]
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("padding", ["none", "right"])
def test_encoder(models, padding):
    ours, theirs = models("bert", make_bert)
    tokens, mask = make_batch(padding)
    with torch.no_grad():
        compare(*[m(tokens, attention_mask=mask).last_hidden_state for m in (ours, theirs)], mask)


def test_masks_are_analysed(models, monkeypatch):
    """Nothing of the shape (batch, heads, queries, keys) is read; full batches have the mask of `causal()`."""
    seen = []
    attention = flash_mlir.transformers.attention
    spy = lambda *arguments, **options: (seen.append(options["mask"]), attention(*arguments, **options))[1]
    monkeypatch.setattr(flash_mlir.transformers, "attention", spy)
    ours, _ = models("gemma", make_gemma)
    with torch.no_grad():
        tokens, mask = make_batch("none")
        ours(tokens, attention_mask=mask)
        assert flash_mlir.causal() in seen
        attend = [flash_mlir.Attention(mask=each) for each in seen if each != flash_mlir.causal()]
        assert attend[0].tiles(4096, 4096).skipped > 0 and not any(each.captured for each in attend)
        seen.clear()
        tokens, mask = make_batch("left")
        ours(tokens, attention_mask=mask)
    assert seen and all(array.ndim <= 2 for mask in seen for array in mask.arrays)


def test_dense_masks(models):
    """Those that the caller makes are taken as they are."""
    ours, theirs = models("llama", make_llama)
    tokens, _ = make_batch("none")
    keep = torch.rand(2, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(2)) < 0.5
    keep |= torch.eye(LENGTH, dtype=torch.bool)
    added = torch.where(keep, 0.0, -1e9)
    with torch.no_grad():
        for mask in (keep, added):
            compare(*[m(tokens, attention_mask=mask).logits for m in (ours, theirs)])


@pytest.mark.parametrize("chunks", [(0, 8, 16, 24), (0, 22, 23, 24)], ids=str)
@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("name", ["llama", "gemma"])
def test_static_cache(models, name, padding, chunks):
    """The cache counts on in a tensor that the mask was made of, before the mask is read."""
    ours, theirs = models(name, CAUSAL[name])
    tokens, mask = make_batch(padding)
    with torch.no_grad():
        results = []
        for model in (ours, theirs):
            cache = transformers.StaticCache(config=model.config, max_cache_len=40)
            parts = [
                model(tokens[:, a:b], attention_mask=mask[:, :b], past_key_values=cache).logits
                for a, b in zip(chunks, chunks[1:])
            ]
            results.append(torch.cat(parts, 1))
    compare(*results, mask)


def test_masks_keep_what_they_read():
    """Offsets, tokens and ids that change after a mask is made do not change it."""
    from transformers.masking_utils import causal_mask_function, packed_sequence_mask_function

    offset, padding, ids = torch.tensor(3), torch.ones(1, 8, dtype=torch.bool), torch.zeros(1, 8, dtype=torch.int64)
    padding[0, 1] = False
    same = packed_sequence_mask_function(ids)
    masks = [
        flash_mlir.transformers.make_mask(1, 4, 8, offset, 0, causal_mask_function, padding),
        flash_mlir.transformers.make_mask(1, 8, 8, 0, 0, same, None),
    ]
    query, key = torch.randn(1, 2, 8, 8), torch.randn(1, 2, 8, 8)
    attend = lambda: [
        flash_mlir.transformers.attend(None, query[:, :, : mask.shape[2]], key, key, mask)[0] for mask in masks
    ]
    expected = attend()
    offset.add_(4)
    padding.fill_(True)
    ids[0, 4:] = 1
    assert all(map(torch.equal, attend(), expected))


def make_doge():
    """Its own code looks at the mask, and adds to it."""
    return transformers.DogeConfig(**SIZES), transformers.DogeForCausalLM, "eager"


def make_gpt2():
    config = transformers.GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, pad_token_id=0, eos_token_id=None,
        attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
    )
    return config, transformers.GPT2LMHeadModel, "eager"


def make_bloom():
    """Has an attention of its own, to which the mask is a tensor."""
    config = transformers.BloomConfig(vocab_size=64, hidden_size=32, n_layer=2, n_head=4)
    return config, transformers.BloomForCausalLM, "eager"


OWN_CODE = {"doge": make_doge, "gpt2": make_gpt2, "bloom": make_bloom}


@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("name", OWN_CODE)
def test_masks_are_tensors(models, name, padding):
    """A model's own code may use the mask as a tensor, and gets the numbers of eager."""
    ours, theirs = models(name, OWN_CODE[name])
    tokens, mask = make_batch(padding)
    with torch.no_grad():
        compare(*[m(tokens, attention_mask=mask).logits for m in (ours, theirs)], mask)
    options = dict(max_new_tokens=4, do_sample=False, cache_implementation="static", disable_compile=True)
    if name == "gpt2":
        assert torch.equal(*[m.generate(tokens, attention_mask=mask, **options) for m in (ours, theirs)])


def test_changed_masks():
    """What a model writes into a mask or a part of it counts."""
    from transformers.masking_utils import causal_mask_function

    query = torch.randn(1, 2, 8, 8)
    for inference in (False, True):
        for change in (lambda m: m.__setitem__((..., 0), -1e9), lambda m: m[..., :1].fill_(-1e9), lambda m: m.mul_(0)):
            with torch.inference_mode(inference):
                mask = flash_mlir.transformers.make_mask(1, 8, 8, mask_function=causal_mask_function)
                assert mask[:, :, :, :8] is mask and mask.to(torch.float32) is mask and not mask.is_changed
                change(mask)
                output = flash_mlir.transformers.attend(None, query, query, query, mask)[0]
                dense = torch.full((1, 1, 8, 8), torch.finfo(torch.float32).min).triu(1)
                change(dense)
                expected = torch.nn.functional.scaled_dot_product_attention(query, query, query, dense)
            torch.testing.assert_close(output.transpose(1, 2)[:, :, 1:], expected[:, :, 1:])


@pytest.mark.parametrize("shape", [(2, 1, 1, 24), (1, 4, 1, 24), (2, 1, 24, 1), (1, 1, 24, 24)], ids=str)
def test_broadcasting(shape):
    """Masks and biases of one row for all queries, as BERT-like models make them; the layout is that of eager."""
    query, key, value = torch.randn(3, 2, 4, 24, 16).unbind()
    added = torch.randn(shape, requires_grad=True)
    keep = torch.rand(shape) < 0.7
    keep[..., 0] = True
    reference = torch.nn.functional.scaled_dot_product_attention
    grads = []
    for bias in (dict(attention_mask=added), dict(attention_mask=None, position_bias=added)):
        output = flash_mlir.transformers.attend(None, query, key, value, **bias)[0]
        assert output.is_contiguous()
        expected = reference(query, key, value, added)
        torch.testing.assert_close(output.transpose(1, 2), expected)
        grads += [torch.autograd.grad(result.square().sum(), added)[0] for result in (output, expected)]
        torch.testing.assert_close(*grads[-2:], rtol=1e-3, atol=1e-4)
    output = flash_mlir.transformers.attend(None, query, key, value, keep)[0]
    torch.testing.assert_close(output.transpose(1, 2), reference(query, key, value, keep))


def test_no_mask():
    """What a module says of itself is for implementations that are given no mask where they are causal."""
    module = torch.nn.Module()
    module.is_causal = True
    query = torch.randn(2, 4, 24, 16)
    for is_causal in (None, False, True):
        output = flash_mlir.transformers.attend(module, query, query, query, None, is_causal=is_causal)[0]
        expected = torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=bool(is_causal))
        torch.testing.assert_close(output.transpose(1, 2), expected)


def test_sinks_of_queries():
    """A logit of each query, of which the gradient is one, too."""
    query, key, value = torch.randn(3, 2, 4, 24, 16).unbind()
    sinks = torch.randn(2, 4, 24, 1, requires_grad=True)
    output = flash_mlir.transformers.attend(None, query, key, value, None, sinks=sinks)[0].transpose(1, 2)
    scores = torch.cat([query @ key.mT / 4, sinks], -1)
    expected = scores.softmax(-1)[..., :-1] @ value
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(*[torch.autograd.grad(r.square().sum(), sinks)[0] for r in (output, expected)])


def test_paged_cache():
    """As continuous batching calls it: the cache has the keys, and the mask is a tensor."""

    class Cache:
        def update(self, key_states, value_states, layer_idx, kwargs):
            assert layer_idx == 1 and kwargs["read_index"] == [2]
            return torch.cat([past, key_states], 2), torch.cat([past, value_states], 2)

    module = torch.nn.Module()
    module.layer_idx = 1
    past, query = torch.randn(1, 2, 5, 16), torch.randn(1, 4, 3, 16)
    added = torch.zeros(1, 1, 3, 8).masked_fill(torch.ones(3, 8, dtype=torch.bool).triu(6), -1e9)
    new = query[:, :2]
    output = flash_mlir.transformers.attend(module, query, new, new, added, cache=Cache(), read_index=[2])[0]
    both = torch.cat([past, new], 2)
    expected = torch.nn.functional.scaled_dot_product_attention(query, both, both, added, enable_gqa=True)
    torch.testing.assert_close(output.transpose(1, 2), expected)


@pytest.mark.parametrize("name", ["llama", "gpt-oss"])
def test_continuous_batching(models, monkeypatch, name):
    """generate_batch of several lengths gives the tokens that eager gives for each alone."""
    pytest.importorskip("psutil")
    used = []

    def attend(*arguments, **options):
        used.append(True)
        return flash_mlir.transformers.attend(*arguments, **options)

    ours, theirs = (copy.deepcopy(model) for model in models(name, CAUSAL[name]))
    registry = transformers.AttentionInterface
    monkeypatch.setitem(registry._global_mapping, "paged|eager", registry._global_mapping["paged|eager"])
    flash_mlir.transformers.register("paged|eager")
    registry.register("paged|eager", attend)
    ours.set_attn_implementation("paged|eager")
    theirs.set_attn_implementation("eager")
    generator = torch.Generator().manual_seed(3)
    prompts = [torch.randint(3, 64, (length,), generator=generator) for length in (5, 11, 3, 20)]
    options = dict(max_new_tokens=12, do_sample=False, eos_token_id=-1, pad_token_id=0)
    results = ours.generate_batch(
        [prompt.tolist() for prompt in prompts],
        generation_config=transformers.GenerationConfig(**options),
        continuous_batching_config=transformers.ContinuousBatchingConfig(num_blocks=32, max_batch_tokens=64),
    )
    assert used
    for prompt, result in zip(prompts, results.values()):
        tokens = prompt[None]
        expected = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), **options)[0, len(prompt) :]
        assert result.generated_tokens == expected.tolist()


@pytest.fixture
def calls(monkeypatch):
    """The names of the functions that Transformers' code for FlashAttention calls. It keeps those that it has loaded."""
    from transformers import modeling_flash_attention_utils as loader
    from transformers.integrations import hub_kernels

    monkeypatch.setattr(loader, "_loaded_implementation", None)
    assert flash_mlir.transformers.register_flash() == flash_mlir.transformers.register_flash() == "flash_mlir"
    functions, found = hub_kernels.load_and_register_attn_kernel.of_flash_mlir, []
    for name, function in list(vars(functions).items()):

        @functools.wraps(function)
        def call(*arguments, _name=name, _function=function, **options):
            found.append(_name)
            return _function(*arguments, **options)

        monkeypatch.setattr(functions, name, call)
    yield found
    monkeypatch.setattr(loader, "_loaded_implementation", None)


@pytest.mark.parametrize("name", ["llama", "qwen", "gemma"])
def test_flash_name(models, calls, name):
    """Transformers' own code around FlashAttention: generation of a padded batch, and continuous batching, with tokens of eager."""
    pytest.importorskip("psutil")
    theirs = copy.deepcopy(models(name, CAUSAL[name])[1])
    theirs.set_attn_implementation("eager")
    ours = type(theirs)._from_config(copy.deepcopy(theirs.config), attn_implementation="flash_mlir").eval()
    ours.load_state_dict(theirs.state_dict())
    tokens, mask = make_batch("left")
    options = dict(max_new_tokens=10, do_sample=False, eos_token_id=-1, pad_token_id=0)
    assert torch.equal(*[model.generate(tokens, attention_mask=mask, **options) for model in (ours, theirs)])
    assert calls and {*calls} <= {"flash_attn_func", "flash_attn_varlen_func"}
    calls.clear()
    prompts = [torch.randint(3, 64, (length,), generator=torch.Generator().manual_seed(length)) for length in (5, 11, 3, 20)]
    results = ours.generate_batch(
        [prompt.tolist() for prompt in prompts],
        generation_config=transformers.GenerationConfig(**options),
        continuous_batching_config=transformers.ContinuousBatchingConfig(num_blocks=32, max_batch_tokens=64),
    )
    assert {*calls} == {"flash_attn_varlen_func"}
    for prompt, result in zip(prompts, results.values()):
        expected = theirs.generate(prompt[None], attention_mask=torch.ones(1, len(prompt)), **options)[0, len(prompt) :]
        assert result.generated_tokens == expected.tolist()


def make_mistral():
    """Windows in all layers."""
    return transformers.MistralConfig(**SIZES, sliding_window=7), transformers.MistralForCausalLM, "eager"


@pytest.mark.parametrize(
    "name, padding", [("llama", None), ("llama", "left"), ("gemma", None), ("gemma", "left"), ("gpt-oss", "left"), ("mistral", None)]
)
def test_compiled(models, name, padding):
    """In one graph, where Dynamo knows functions that are made in it."""
    torch._dynamo.reset()
    ours, theirs = models(name, CAUSAL.get(name, make_mistral))
    tokens, mask = make_batch(padding)
    mask = None if padding is None else mask
    compiled = torch.compile(ours, backend="eager", fullgraph=torch.__version__ >= (2, 14))
    with torch.no_grad():
        compare(compiled(tokens, attention_mask=mask).logits, theirs(tokens, attention_mask=mask).logits, mask)
        # Another length is another graph, of open sizes.
        mask = mask if mask is None else mask[:, 3:]
        expected = theirs(tokens[:, 3:], attention_mask=mask).logits
        compare(compiled(tokens[:, 3:], attention_mask=mask).logits, expected, mask)


def test_errors(models):
    with pytest.raises(ValueError, match="'flash_mlir' has 'flash' in it"):
        flash_mlir.transformers.register("flash_mlir")
    query = torch.randn(1, 2, 4, 8)
    attend = flash_mlir.transformers.attend
    with pytest.raises(ValueError, match="attention has no dropout, and dropout is 0.1"):
        attend(None, query, query, query, None, dropout=0.1)
    with pytest.raises(ValueError, match="attention takes no output_attentions; use attn_implementation='eager'"):
        attend(None, query, query, query, None, output_attentions=True)
    with pytest.raises(ValueError, match="the mask is for 5 keys, and there are 4"):
        attend(None, query, query, query, flash_mlir.transformers.ModelMask.make(None, (1, 1, 4, 5)))
    with pytest.raises(ValueError, match="attention takes no indices; use attn_implementation='eager'"):
        attend(None, query, query, query, None, indices=torch.zeros(1, 4, 2, dtype=torch.int64))
    module = transformers.models.gemma2.modeling_gemma2.Gemma2Attention(make_gemma()[0], 0)
    with pytest.raises(ValueError, match="attention takes no dropped; use attn_implementation='eager'"):
        attend(module, query, query, query, None, dropped=torch.zeros(1))
