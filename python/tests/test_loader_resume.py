"""Subsets, mixes and budgets resumed at random steps in a fresh process, bit for bit."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import output_of

import loaderx
from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore, RaggedStore

LENGTHS = {"a": 230, "b": 90}
BATCHES = 6


def image_of(source: int, record: int) -> np.ndarray:
    return (np.arange(6) + 7 * record + 101 * source).astype(np.uint8).reshape(2, 3)


def text_of(source: int, record: int) -> np.ndarray:
    return np.arange(1 + (record * 13 + source) % 17, dtype=np.int32) + record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("resume")
    for source, (name, length) in enumerate(LENGTHS.items()):
        with DenseStore(found / f"{name}-image", np.uint8, (2, 3), codec="raw") as image:
            image.append([image_of(source, record) for record in range(length)])
        with RaggedStore(found / f"{name}-text", np.int32) as text:
            text.append(text_of(source, record) for record in range(length))
    return found


def digest(arrays: Any) -> str:
    """A number for arrays with every byte of them."""
    return hashlib.sha256(b"|".join(array.tobytes() for array in arrays)).hexdigest()


def open_all(folder: Any) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "image": loaderx.DenseStore(f"{folder}/{name}-image", mode="r"),
            "text": loaderx.RaggedStore(f"{folder}/{name}-text", mode="r"),
        }
        for name in ("a", "b")
    }


def order_of(kind: str, size: int, text: Any, mode: int, seed: int, **ranks: int) -> Any:
    """The sampler of a loader, from what survives JSON."""
    if kind == "subset":
        subset = range(size, 220, 3) if size % 2 else list(range(5, 5 + 2 * size))
        return loaderx.Sampler(230, 24, mode, seed, subset=subset, **ranks)
    if kind == "mix":
        mix = loaderx.Mix({"a": size, "b": 20}, subsets={"b": range(40)})
        return mix.sampler({"a": 230, "b": 90}, 48, mode, seed, **ranks)
    if kind == "budget":
        return loaderx.TokenBudget(24 * 17 + size, text, multiple=24).sampler(seed, **ranks)
    return loaderx.LengthBuckets(24, text).sampler(seed, **ranks)


RESUME = """
import hashlib, json, sys
import loaderx
from loaderx import DataLoader, _ring
stores, found = open_all(sys.argv[1]), []
for order, run, seconds, state in json.loads(open(sys.argv[2]).read()):
    _ring.TICKET_SECONDS = seconds
    streams = stores if order["kind"] == "mix" else stores["a"]
    sampler = order_of(text=stores["a"]["text"], **order)
    with DataLoader(streams, sampler=sampler, **run) as loader:
        loader.load_state_dict(state)
        batches = [next(loader) for _ in range(int(sys.argv[3]))]
    found.append([digest([batch["image"], *batch["text"]]) for batch in batches])
print(json.dumps(found))
"""


def configurations() -> Iterator[tuple[dict[str, Any], dict[str, Any], float, int]]:
    """Twenty orders, each with a run, the growth of its tickets and a step to resume at."""
    rng = np.random.default_rng(2027)
    for turn in range(20):
        world_size = (1, 2, 3, 8)[turn % 4]
        order = {
            "kind": ("subset", "mix", "budget", "buckets")[turn // 4 % 4],
            "size": int(rng.integers(20, 80)),
            "mode": int(rng.integers(3)),
            "seed": int(rng.integers(0, 2**64 - 1, dtype=np.uint64)),
            "rank": int(rng.integers(world_size)),
            "world_size": world_size,
        }
        run = {
            "num_workers": (1, 2, 8)[int(rng.integers(3))],
            "prefetch_size": int(rng.integers(1, 9)),
        }
        yield order, run, (0.0, 1e9)[turn % 2], int(rng.integers(0, 50))


def expected_of(sampler: Any, step: int) -> str:
    """What a batch has to be, from the indices alone."""
    drawn = sampler.indices_at(step)
    source, record = drawn if isinstance(drawn, tuple) else (np.zeros_like(drawn), drawn)
    pairs = list(zip(source.tolist(), record.tolist()))
    images = np.array([image_of(*pair) for pair in pairs], np.uint8).reshape(-1, 2, 3)
    return digest([images, *(text_of(*pair) for pair in pairs)])


def test_a_fresh_process_goes_on_with_the_same_batches(folder: Path, tmp_path: Path) -> None:
    stores, todo, expected = open_all(folder), [], []
    for order, run, seconds, step in configurations():
        whole = {**order, "rank": 0, "world_size": 1}
        streams = stores if order["kind"] == "mix" else stores["a"]
        text = stores["a"]["text"]
        # One rank runs before, and another of several goes on.
        with DataLoader(streams, sampler=order_of(text=text, **whole)) as loader:
            for _ in range(step):
                next(loader)
            todo.append((order, run, seconds, loader.state_dict()))
        sampler = order_of(text=text, **order)
        expected.append([expected_of(sampler, s) for s in range(step, step + BATCHES)])
    for source in stores.values():
        for store in source.values():
            store.close()
    functions = "\n".join(map(inspect.getsource, (digest, open_all, order_of)))
    code = "from __future__ import annotations\nfrom typing import Any\n" + functions + RESUME
    (tmp_path / "todo.json").write_text(json.dumps(todo))
    found = json.loads(output_of(code, folder, tmp_path / "todo.json", BATCHES))
    assert found == expected
    assert len({batch for batches in expected for batch in batches}) > 100
