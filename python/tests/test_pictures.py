"""Pictures of kernels and masks: what they say of a run, and what notebooks show."""

import json
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import flash_mlir as flash

COURSE = pathlib.Path(__file__).parents[2] / "docs" / "course"
NAMES = "queries", "keys", "values"
FEATURES = "specialize_warps|overlap|ping_pong|lazy_rescale|persistent|bulk_store"


def record(folder, program="attention.mlir", target="sm_90a", schedule=f"query_tile=128,key_tile=128,features={FEATURES}"):
    if shutil.which("flash-run") is None:
        pytest.skip("flash-run is not in the PATH")
    path = folder / "events.jsonl"
    command = ["flash-run", COURSE / program, f"--target=emulate:{target}", "--multiprocessors=1", f"--events={path}"]
    subprocess.run([*command, f"--schedule={schedule}"], check=True)
    return path


def test_timeline(tmp_path):
    timeline = flash.timeline(record(tmp_path), names=NAMES)
    assert timeline.roles == {"consumer": (8, 240), "producer": (1, 24)}
    assert sorted(timeline.rings.values()) == [(name, 2, 128, 128) for name in ("keys", "queries", "values")]
    # Two tiles of queries and four of keys; two warpgroups have both products of each.
    assert sum(each.kind == "copy" for each in timeline.work) == 2 + 8 + 8
    assert sum(each.kind == "product" for each in timeline.work) == 2 * (8 + 8)
    assert timeline.count_products() == 2 * 2 * (8 + 8) <= timeline.end
    # No tile is read before its copy, or after its stage was given back; a stage has one tile at a time.
    held = {(ring, step): (start, copied, freed) for ring, _, step, start, copied, freed in timeline.stages()}
    for each in timeline.work:
        if each.kind == "product":
            assert held[each.ring, each.step][1] <= each.start and each.end <= held[each.ring, each.step][2]
    for (ring, step), (start, _, _) in held.items():
        assert step < 2 or start >= held[ring, step - 2][2]
    # Products of both warpgroups take turns.
    products = sorted((each.start, each.lane) for each in timeline.work if each.kind == "product" and each.step < 4)
    assert [lane for _, lane in products[:6]] == ["consumer 0: products", "consumer 1: products"] + \
        2 * ["consumer 0: products"] + 2 * ["consumer 1: products"]
    assert "stage 1 of keys" in timeline.draw(stages=True) and "stage 1" not in timeline._repr_svg_()
    timeline.save(tmp_path / "timeline.svg", until=20)
    assert (tmp_path / "timeline.svg").read_text().startswith("<svg")


def test_units(tmp_path):
    path = record(tmp_path, target="sm_80", schedule="query_tile=64,key_tile=64,warps=4,features=none,stages=1")
    timelines = [flash.timeline(path, copy=length) for length in (1, 5)]
    assert timelines[0].roles == {} and {each.lane for each in timelines[0].work} == {
        "block: copies", "block: products", "block: softmax, store"}
    assert timelines[0].end < timelines[1].end


@pytest.mark.parametrize("schedule", ["products=7", "products=5"])
def test_gradients(tmp_path, schedule):
    path = record(tmp_path, "gradients.mlir", schedule=schedule)
    launches = {json.loads(line)["launch"] for line in path.read_text().splitlines()}
    lanes = {each.lane for launch in launches for each in flash.timeline(path, launch).work}
    assert "consumer 0: products" in lanes and "producer: copies" in lanes


def test_checks_of_values(tmp_path):
    """Warps that check tiles are waited for."""
    program = (COURSE / "attention.mlir").read_text().replace("%v :", "%v mask(#flash.prefix<300>) :")
    (tmp_path / "masked.mlir").write_text(program)
    timeline = flash.timeline(record(tmp_path, tmp_path / "masked.mlir"))
    assert len(timeline.roles) == 3 and timeline.end > 0


def test_no_run(tmp_path):
    path = tmp_path / "events.jsonl"
    event = {"event": "wait", "role": "", "op": "tile.ring.wait", "launch": 0, "ring": 0, "step": 0}
    path.write_text(json.dumps(event) + "\n")
    with pytest.raises(ValueError, match="do not make up a whole run"):
        flash.timeline(path)
    with pytest.raises(ValueError, match="has no events of launch 1"):
        flash.timeline(path, launch=1)


def test_resources(tmp_path):
    kernel = flash.compile((COURSE / "attention.mlir").read_text(), target="sm_90a",
                           schedule=f"query_tile=128,key_tile=128,features={FEATURES}")
    taken = flash.resources(kernel, NAMES)
    assert len(taken.blocks) == 1
    shared = taken.blocks[0].shared
    assert {name: shared[name] for name in NAMES} == dict.fromkeys(NAMES, 2 * 128 * 64 * 2)
    assert 128 * 64 * 2 < shared["results and barriers"] < 128 * 64 * 2 + 256
    assert taken.blocks[0].registers == {"consumer": 256 * 240, "producer": 128 * 24}
    taken.save(tmp_path / "resources.svg")
    assert "227.0 KiB" in (tmp_path / "resources.svg").read_text() and "<svg" in kernel._repr_html_()
    host = flash.compile((COURSE / "attention.mlir").read_text(), target="cpu")
    assert "<svg" not in host._repr_html_()
    with pytest.raises(ValueError, match="the kernel is for cpu; only kernels for GPUs"):
        flash.resources(host)


def test_masks_in_notebooks():
    assert "16 part" not in flash.full()._repr_svg_() and "<svg" in flash.causal()._repr_svg_()
    assert flash.documents(np.zeros(10, np.int32))._repr_svg_() is None


def test_arguments_of_pictures():
    for name, least in dict(query_length=1, key_length=1, query_tile=1, key_tile=1, batch=0, head=0).items():
        sizes = dict(query_length=20, key_length=20)
        with pytest.raises(ValueError, match=f"{name} is {least - 1}; it must be at least {least}"):
            flash.plot(flash.causal(), **{**sizes, name: least - 1})
        with pytest.raises(TypeError, match=f"{name} is 1.5; expected an integer"):
            flash.plot(flash.causal(), **{**sizes, name: 1.5})
    assert flash.plot(flash.documents(np.zeros((2, 20), np.int32)), 20, batch=1).count() == (0, 1, 0)


IDS = np.zeros((2, 20), np.int32)
KEPT = np.arange(20) % 2 == 0
EMPTY = np.zeros(0, bool)
PAGES = np.array([0, 1, -1, 40] * 5, np.int32)


@pytest.mark.parametrize(
    "mask, sizes, message",
    [
        (flash.documents(IDS), dict(query_length=21), "query_ids is read out of range: the index of dimension 1 is 20, not below its size, 20, for query 20 and key 0"),
        (flash.documents(IDS), dict(query_length=20, batch=2), "query_ids is .* the index of dimension 0 is 2, not below its size, 2, for query 0 and key 0"),
        (lambda b, h, q, k: KEPT[q - k], dict(query_length=20), "KEPT is .* is -1, negative, for query 0 and key 1"),
        (lambda b, h, q, k: flash.where(k > q, True, KEPT[q - k]), dict(query_length=20), "KEPT is .* is -1, negative"),
        (lambda b, h, q, k: (k > 2) & KEPT[PAGES[k]], dict(query_length=20), "KEPT is .* is 40, not below its size, 20, for query 0 and key 3"),
        (lambda b, h, q, k: EMPTY[q], dict(query_length=20), "is 0, not below its size, 0,"),
    ],
)
def test_reads_out_of_range(mask, sizes, message):
    with pytest.raises(ValueError, match=message):
        flash.plot(mask, **sizes)


def test_reads_of_elements_left_out():
    """What the rest of a mask leaves out may be read out of range, and a negative constant counts from the end."""
    distances = flash.plot(lambda b, h, q, k: (k <= q) & KEPT[q - k], 20, query_tile=1, key_tile=1)
    queries, keys = np.ogrid[:20, :20]
    np.testing.assert_array_equal(distances.kinds, (keys <= queries) & ((queries - keys) % 2 == 0))
    chosen = flash.plot(lambda b, h, q, k: (PAGES[k] >= 0) & (PAGES[k] < 20) & KEPT[PAGES[k]], 1, 20, query_tile=1, key_tile=1)
    np.testing.assert_array_equal(chosen.kinds[0], [1, 0, 0, 0] * 5)
    assert flash.plot(lambda b, h, q, k: KEPT[-1] | (k > 30), 20).count() == (1, 0, 0)
