"""Mix: exact proportions of several sources, alone and in a DataLoader."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _ring
from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore, RaggedBatch, RaggedStore
from loaderx.zsampler import Mix, MixSampler, Sampler

LENGTHS = {"web": 300, "books": 70, "code": 20}
WEIGHTS = {"web": 0.6, "books": 0.3, "code": 0.1}
IMAGES = {
    name: np.random.default_rng(place).integers(0, 255, (length, 5, 3)).astype(np.uint8)
    for place, (name, length) in enumerate(LENGTHS.items())
}
TEXTS = {
    name: [np.arange(i % 7, i % 7 + 1 + i % 5, dtype=np.int32) + 1000 * place for i in range(n)]
    for place, (name, n) in enumerate(LENGTHS.items())
}
NAMES = list(LENGTHS)

Sources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sources]:
    folder = tmp_path_factory.mktemp("sources")
    found: Sources = {}
    for name in LENGTHS:
        image = DenseStore(folder / f"{name}-image", np.uint8, (5, 3), codec="raw")
        text = RaggedStore(folder / f"{name}-text", np.int32)
        image.append(IMAGES[name])
        text.append(TEXTS[name])
        found[name] = {"image": image, "text": text}
    yield found
    for streams in found.values():
        for store in streams.values():
            store.close()


def check(batch: Any, drawn: Any) -> None:
    assert list(batch) == ["image", "text", "source"]
    assert same(batch["source"], drawn.source) and batch["source"].dtype == np.int32
    pairs = [(NAMES[s], i) for s, i in zip(drawn.source.tolist(), drawn.record.tolist())]
    assert same(batch["image"], np.stack([IMAGES[name][i] for name, i in pairs]))
    texts, expected = batch["text"], [TEXTS[name][i] for name, i in pairs]
    if isinstance(texts, RaggedBatch):
        assert texts.offsets[0] == 0
        texts = texts.to_list()
    elif isinstance(texts, tuple):
        texts = [row[:n] for row, n in zip(*texts)]
    assert same_list(texts, expected)


@pytest.mark.parametrize("ticket_seconds", [0.0, 1e9], ids=["single", "growing"])
@pytest.mark.parametrize("ragged", ["list", "packed", "padded"])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_loader_gives_what_the_sampler_says(
    sources: Sources,
    workers: int,
    ragged: str,
    ticket_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", ticket_seconds)
    mix = Mix(WEIGHTS)
    sampler = mix.sampler(LENGTHS, 24, seed=8)
    with DataLoader(sources, workers, 24, seed=8, sampler=mix, ragged=ragged) as loader:
        for step in range(50):
            check(next(loader), sampler.indices_at(step))
        check(loader.batch_at(10**9), sampler.indices_at(10**9))


def test_proportions_are_exact_in_the_long_run() -> None:
    sampler = Mix(WEIGHTS).sampler(LENGTHS, 100, Sampler.Mode.IID)
    counts, total = np.zeros(3, int), 0
    for drawn in itertools.islice(sampler, 300):
        assert [sampler.drawn(sampler.step - 1)[n] for n in NAMES] == counts.tolist()
        counts += np.bincount(drawn.source, minlength=3)
        total += 100
        assert np.abs(counts - np.array([0.6, 0.3, 0.1]) * total).max() < 64
    assert np.abs(counts / total - [0.6, 0.3, 0.1]).max() < 0.002
    step = 10**12
    far = np.array(list(sampler.drawn(step).values()))
    assert far.sum() == 100 * step
    assert np.abs(far - np.array([0.6, 0.3, 0.1]) * 100 * step).max() < 64


def test_each_source_goes_through_its_records_in_cycles() -> None:
    sampler = Mix(WEIGHTS).sampler(LENGTHS, 50)
    seen: list[list[int]] = [[], [], []]
    for drawn in itertools.islice(sampler, 60):
        for source, index in zip(drawn.source.tolist(), drawn.record.tolist()):
            seen[source].append(index)
    for indices, length in zip(seen, LENGTHS.values()):
        for start in range(0, len(indices) - length, length):
            assert sorted(indices[start : start + length]) == list(range(length))


@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_ranks_share_the_global_batch(sources: Sources, world_size: int) -> None:
    mix = Mix(WEIGHTS)
    whole = mix.sampler(LENGTHS, 48, seed=1)
    ranks = [
        mix.sampler(LENGTHS, 48, seed=1, rank=r, world_size=world_size) for r in range(world_size)
    ]
    for step in (0, 1, 77):
        parts = [rank.indices_at(step) for rank in ranks]
        for together, expected in zip(map(np.concatenate, zip(*parts)), whole.indices_at(step)):
            assert same(together, expected)
    rank = world_size - 1
    with DataLoader(
        sources, 2, 48, seed=1, sampler=mix, rank=rank, world_size=world_size
    ) as loader:
        check(next(loader), ranks[rank].indices_at(0))


def test_a_sampler_of_a_mix_is_taken_up_at_its_step(sources: Sources) -> None:
    sampler = Mix(WEIGHTS).sampler(LENGTHS, 12, 0, 5)
    sampler.seek(9)
    with DataLoader(sources, 1, sampler=sampler) as loader:
        assert loader.step == 9
        check(next(loader), sampler.indices_at(9))
        with pytest.raises(ValueError, match="sources' lengths .* got {'web': 1"):
            DataLoader(sources, sampler=Mix(WEIGHTS).sampler(dict.fromkeys(LENGTHS, 1), 12, 0))


def test_subsets_of_sources(sources: Sources) -> None:
    mix = Mix(WEIGHTS, subsets={"web": range(10), "code": [3, 5, 5]})
    with DataLoader(sources, 1, 60, sampler=mix) as loader:
        found: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
        sampler = mix.sampler(LENGTHS, 60)
        for step in range(20):
            drawn = sampler.indices_at(step)
            check(next(loader), drawn)
            for source, index in zip(drawn.source.tolist(), drawn.record.tolist()):
                found[source].add(index)
    assert found == {0: set(range(10)), 1: set(range(70)), 2: {3, 5}}


def test_states_know_the_mix(sources: Sources) -> None:
    with DataLoader(sources, 2, 12, seed=3, sampler=Mix(WEIGHTS)) as loader:
        for _ in range(5):
            next(loader)
        state = json.loads(json.dumps(loader.state_dict()))
        expected = [next(loader) for _ in range(3)]
    assert state["sampler"] == "Mix" and state["step"] == 5
    assert set(state["streams"]) == set(LENGTHS)
    with DataLoader(sources, 1, 12, seed=3, sampler=Mix(WEIGHTS)) as twin:
        twin.load_state_dict(state)
        for batch in expected:
            found = next(twin)
            assert same(found["image"], batch["image"]) and same(found["source"], batch["source"])
        state["streams"]["books"]["text"]["length"] = 3
        with pytest.raises(ValueError, match="length of stream 'text' of 'books' to be"):
            twin.load_state_dict(state)
    others: list[tuple[dict[str, Any], str]] = [
        ({"sampler": Mix({**WEIGHTS, "code": 0.2})}, "expected weights to be"),
        ({"sampler": Mix(dict(reversed(WEIGHTS.items())))}, "expected weights to be"),
        ({"sampler": Mix(WEIGHTS, subsets={"web": range(50)})}, "expected subset to be"),
        ({"sampler": Mix(WEIGHTS), "batch_size": 6}, "expected batch_size to be"),
        ({"sampler": Mix(WEIGHTS), "mode": 1}, "expected mode to be"),
    ]
    for changes, message in others:
        with DataLoader(sources, **{"batch_size": 12, "seed": 3, **changes}) as other:
            with pytest.raises(ValueError, match=message):
                other.load_state_dict(state)
    with DataLoader(sources["web"], 1, 12, seed=3) as other:
        with pytest.raises(ValueError, match="expected sampler to be this loader's 'Sampler', got"):
            other.load_state_dict(state)


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_copies_of_a_loader_and_a_sampler(sources: Sources, how: str) -> None:
    def copied(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value)) if how == "pickle" else copy.deepcopy(value)

    sampler = Mix(WEIGHTS, subsets={"web": range(9)}).sampler(LENGTHS, 12, 1, 5)
    sampler.seek(3)
    assert repr(copied(sampler)) == repr(sampler)
    assert same(copied(sampler).next().record, sampler.indices_at(3).record)
    with DataLoader(sources, 1, sampler=sampler) as loader:
        next(loader)
        twin = copied(loader)
        with twin:
            assert twin.state_dict() == loader.state_dict()
            check(next(twin), sampler.indices_at(4))
        for streams in twin._streams.values():
            for store in streams.values():
                store.close()


def test_a_mix_has_no_pass_but_of_so_many_steps(sources: Sources) -> None:
    with DataLoader(sources, 1, 12, sampler=Mix(WEIGHTS)) as loader:
        with pytest.raises(TypeError, match="because a mix"):
            loader.epoch()
        assert len(list(loader.epoch(4))) == 4


def test_sources_that_are_not_alike(sources: Sources, tmp_path: Path) -> None:
    web = sources["web"]
    with (
        DenseStore(tmp_path / "d", np.uint8, (5, 4)) as other,
        RaggedStore(tmp_path / "r", np.int32) as short,
    ):
        other.append(np.zeros((300, 5, 4), np.uint8))
        short.append([np.zeros(1, np.int32)])
        mix = Mix({"a": 1, "b": 1})
        bad: list[tuple[Any, type[Exception], str]] = [
            (web, TypeError, "expected a dict of streams for each source of the mix"),
            ({"a": web}, ValueError, r"the sources of the mix, \['a', 'b'\], got \['a'\]"),
            ({"a": web, "b": {"text": web["text"]}}, ValueError, "'b' to have those of 'a'"),
            (
                {"a": web, "b": {**web, "image": other}},
                ValueError,
                r"'image' of 'b' to be as that of 'a', dense records of uint8 and shape \(5, 3\)",
            ),
            (
                {"a": web, "b": {**web, "text": short}},
                ValueError,
                "streams of 'b': expected stores of equal length",
            ),
            (
                {"a": {"source": other}, "b": {"source": other}},
                ValueError,
                "another name than 'source'",
            ),
        ]
        for streams, error, message in bad:
            with pytest.raises(error, match=message):
                DataLoader(streams, batch_size=2, sampler=mix)
        with pytest.raises(TypeError, match=r"several sources need sampler=Mix\(...\)"):
            DataLoader({"a": web, "b": web})


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ({}, {}, ValueError, "weights: expected at least one, got an empty dict"),
    ([0.5], {}, TypeError, "weights: expected a dict of numbers by name, got list"),
    ({"a": 0}, {}, ValueError, "weights: expected finite numbers above 0, got 0.0 for 'a'"),
    ({"a": float("nan")}, {}, ValueError, "weights: expected finite numbers above 0"),
    ({"a": float("inf")}, {}, ValueError, "weights: expected finite numbers above 0"),
    ({"a": "1"}, {}, TypeError, "weights: expected a number for 'a', got '1'"),
    ({1: 1}, {}, TypeError, "weights: expected names that are str, got int"),
    ({"a": np.array([0.5, 1])}, {}, TypeError, "weights: expected a number for 'a', got array"),
    ({"a": 1}, {"subsets": [1]}, TypeError, "subsets: expected a dict of subsets by name, got"),
    ({"a": 1}, {"subsets": {"b": [1]}}, ValueError, "subsets: expected names of .* got 'b'"),
    ({"a": 1}, {"subsets": {"a": [0.5]}}, TypeError, "subset of 'a': expected a range"),
]


@pytest.mark.parametrize(("weights", "named", "error", "message"), BAD)
def test_bad_mixes(
    weights: Any, named: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Mix(weights, **named)


def test_bad_samplers() -> None:
    mix = Mix({"a": 1, "b": 2})
    bad: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        (({"a": 5}, 2), ValueError, r"lengths: expected one for each of \['a', 'b'\], got \['a'\]"),
        (({"a": 5, "b": 0}, 2), ValueError, "length of 'b': expected at least 1, got 0"),
        (({"a": 2**62, "b": 2**62}, 2), ValueError, "lengths: expected at most"),
        (({"a": 5, "b": 5}, 0), ValueError, "batch_size: expected at least 1"),
        (({"a": 5, "b": 5}, 2, 7), ValueError, "mode: expected one of"),
    ]
    for arguments, error, message in bad:
        with pytest.raises(error, match=message):
            mix.sampler(*arguments)
    with pytest.raises(ValueError, match="multiple of world_size 2, got 3"):
        mix.sampler({"a": 5, "b": 5}, 3, world_size=2)
    with pytest.raises(TypeError, match="mix: expected a Mix, got dict"):
        MixSampler({"a": 1}, {"a": 5}, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 9 at place 0"):
        Mix({"a": 1}, subsets={"a": [9]}).sampler({"a": 5}, 2)
