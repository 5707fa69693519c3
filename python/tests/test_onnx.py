"""The cases of ONNX's Attention operator, whose arguments become those of `attention`.

Its package makes the arrays, and with a reference in NumPy what is expected.
"""

import numpy as np
import pytest

import flash_mlir as flash

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402
from onnx.backend.test.case import node as cases  # noqa: E402

# A further result of these is the matrix of all scores, or of their softmax, which no kernel has in memory. Their other
# results are compared.
WITH_SCORES = {
    "test_attention_4d_with_qk_matmul",
    "test_attention_4d_with_qk_matmul_bias",
    "test_attention_4d_with_qk_matmul_softcap",
    "test_attention_4d_with_qk_matmul_softmax",
    "test_attention_4d_with_past_and_present_qk_matmul_bias",
    "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask",
    "test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask",
    "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
    "test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal",
    "test_attention_4d_with_past_and_present_qk_matmul",
    "test_attention_3d_with_past_and_present_qk_matmul",
    "test_attention_3d_with_past_and_present_qk_matmul_bias",
    "test_attention_3d_with_past_and_present_qk_matmul_softcap",
    "test_attention_3d_with_past_and_present_qk_matmul_softmax",
    "test_attention_23_fullymasked_qk_matmul_output_mode3_zero",
    "test_attention_24_fullymasked_qk_matmul_output_mode3_zero",
    "test_attention_24_qk_matmul_output_mode3_softmax_precision",
    "test_attention_local_window_gqa_rank4_mask",
}
TOLERANCE = {"float64": 1e-6, "float32": 1e-5, "float16": 3e-3, "bfloat16": 3e-2}


def collect():
    """The cases by name, without those in which the operator is expanded into others."""
    found = cases.collect_testcases("Attention")
    return {case.name: case for case in found if [node.op_type for node in case.model.graph.node] == ["Attention"]}


CASES = collect()


def read(value):
    return value if isinstance(value, np.ndarray) or value is None else numpy_helper.to_array(value)


def split_heads(array, heads):
    """(batch, heads, length, dim) of an array that may be (batch, length, heads * dim)."""
    if array.ndim == 4:
        return array
    return array.reshape(*array.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def make_mask(array, key_length):
    """A mask of truth values, or a score that adds numbers: of four dimensions, and of all keys."""
    if array is None:
        return None, None
    fill = False if array.dtype == bool else -np.inf
    missing = key_length - array.shape[-1]
    array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, max(missing, 0))], constant_values=fill)
    array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    batches, heads, queries, _ = array.shape

    def read_at(b, h, q, k):
        return array[b if batches > 1 else 0, h if heads > 1 else 0, q if queries > 1 else 0, k]

    if array.dtype == bool:
        return flash.mask(read_at), None
    return None, lambda s, *position: s + read_at(*position)


def attend(node, inputs):
    """The results of a node by name: Y, and what the cache becomes."""
    options = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    given = dict(zip(("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad"), inputs))
    query = split_heads(given["Q"], options.get("q_num_heads"))
    key, value = (split_heads(given[name], options.get("kv_num_heads")) for name in "KV")
    past, lengths = given.get("past_key"), given.get("nonpad")
    if past is not None:
        key, value = np.concatenate([past, key], 2), np.concatenate([given["past_value"], value], 2)
    mask, bias = make_mask(given.get("attn_mask"), key.shape[2])
    if mask is None:
        mask = flash.full()
    # How many keys are before the first query.
    offset = 0 if past is None else past.shape[2]
    if lengths is not None:
        starts = lengths - query.shape[2]
        distance = lambda b, q, k: q + starts[b] - k  # noqa: E731
    else:
        distance = lambda b, q, k: q + offset - k  # noqa: E731
    left, right = options.get("left_window_size", -1), options.get("right_window_size", -1)
    if options.get("is_causal"):
        mask &= lambda b, h, q, k: distance(b, q, k) >= 0
    if left >= 0:
        mask &= lambda b, h, q, k: distance(b, q, k) <= left
    if right >= 0:
        mask &= lambda b, h, q, k: -distance(b, q, k) <= right
    cap = options.get("softcap", 0.0)

    def score(s, *position):
        if cap > 0:
            s = cap * flash.tanh(s / cap)
        return s if bias is None else bias(s, *position)

    output = flash.attention(query, key, value, mask, score, options.get("scale"), lengths)
    if given["Q"].ndim == 3:
        output = output.transpose(0, 2, 1, 3).reshape(*given["Q"].shape[:2], -1)
    return {"Y": output, "present_key": key, "present_value": value}


@pytest.mark.parametrize("name", CASES)
def test_attention(name):
    case = CASES[name]
    (node,) = case.model.graph.node
    for inputs, outputs in case.data_sets:
        inputs, outputs = iter(map(read, inputs)), iter(map(read, outputs))
        results = attend(node, [next(inputs) if each else None for each in node.input])
        for place, each in enumerate(node.output):
            if not each:
                continue
            expected = next(outputs)
            if place == 3:
                assert name in WITH_SCORES
                continue
            actual = results[("Y", "present_key", "present_value")[place]]
            tolerance = TOLERANCE[actual.dtype.name]
            assert actual.dtype == expected.dtype and actual.shape == expected.shape
            actual, expected = actual.astype(np.float64), expected.astype(np.float64)
            np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def test_there_are_cases():
    assert len(CASES) >= 90 and WITH_SCORES <= set(CASES)
