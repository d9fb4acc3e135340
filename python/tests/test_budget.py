"""TokenBudget and LengthBuckets: batches of like lengths, alone and in a DataLoader."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _budget, _ring
from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import BudgetSampler, LengthBuckets, TokenBudget

LENGTHS = np.random.default_rng(3).lognormal(3, 1, 700).astype(np.int64).clip(1, 400)
TEXTS = [np.full(length, i, np.int32) for i, length in enumerate(LENGTHS.tolist())]


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("budget")
    with RaggedStore(folder / "text", np.int32) as text:
        text.append(TEXTS)
        with DenseStore(folder / "label", np.int64, (), codec="raw") as label:
            label.append(np.arange(700))
            yield {"text": text, "label": label}


@pytest.mark.parametrize("ticket_seconds", [0.0, 1e9], ids=["single", "growing"])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_padded_batches_stay_within_the_budget(
    streams: dict[str, Any], workers: int, ticket_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", ticket_seconds)
    plan = TokenBudget(2000, streams["text"])
    sampler = plan.sampler(seed=6)
    counts = set()
    with DataLoader(streams, workers, seed=6, sampler=plan, ragged="padded") as loader:
        for step in range(2 * sampler.cycle):
            batch, index = next(loader), sampler.indices_at(step)
            array, lengths = batch["text"]
            assert same(batch["label"], index) and array.size <= 2000
            assert array.shape == (len(index), LENGTHS[index].max())
            assert same_list([r[:n] for r, n in zip(array, lengths)], [TEXTS[i] for i in index])
            counts.add(len(index))
    assert len(counts) > 5


def cycle_of(sampler: BudgetSampler, number: int) -> list[np.ndarray]:
    steps = range(number * sampler.cycle, (number + 1) * sampler.cycle)
    return [sampler.indices_at(step) for step in steps]


@pytest.mark.parametrize("multiple", [1, 4, 6])
def test_every_record_comes_once_in_a_cycle(multiple: int) -> None:
    plan = TokenBudget(6000, LENGTHS, max_records=90, multiple=multiple)
    sampler = plan.sampler(seed=1)
    left_out = []
    for number in (0, 1, 2, 10**9):
        batches = cycle_of(sampler, number)
        found = np.concatenate(batches)
        assert len(set(found.tolist())) == len(found) == 700 - 700 % multiple
        left_out.append(frozenset(set(range(700)) - set(found.tolist())))
        for batch in batches:
            assert len(batch) % multiple == 0 and len(batch) <= 90
            assert len(batch) * LENGTHS[batch].max() <= 6000
    assert sampler.left_out == 700 % multiple
    assert len(set(left_out)) == (1 if 700 % multiple == 0 else 4)


def test_padding_is_little_and_cycles_differ() -> None:
    lengths = np.tile(LENGTHS, 30)
    sampler = TokenBudget(4000, lengths).sampler()
    first, second = cycle_of(sampler, 0), cycle_of(sampler, 1)
    padded = sum(len(batch) * int(lengths[batch].max()) for batch in first)
    assert lengths.sum() > 0.9 * padded
    assert {frozenset(b.tolist()) for b in first} != {frozenset(b.tolist()) for b in second}
    order = [len(batch) for batch in first]
    assert order != sorted(order) and order != sorted(order, reverse=True)


def test_the_plan_depends_on_seed_and_lengths_alone(streams: dict[str, Any]) -> None:
    sampler = TokenBudget(3000, streams["text"]).sampler(seed=9)
    for lengths in (LENGTHS, LENGTHS.astype(np.uint32), LENGTHS.astype(np.int16)):
        twin = TokenBudget(3000, lengths).sampler(seed=9)
        assert same(twin.indices_at(77), sampler.indices_at(77))
        assert twin.facts() == sampler.facts()
    assert not same(TokenBudget(3000, LENGTHS).sampler(seed=8).indices_at(77), twin.indices_at(77))
    assert twin.indices_at(3).tolist()[:4] == GOLDEN


GOLDEN = [642, 153, 474, 619]


def test_lengths_are_read_in_blocks(
    streams: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_budget, "_BLOCK", 64)
    plan = TokenBudget(3000, streams["text"])
    assert plan.lengths().dtype == np.uint32
    assert same(plan.lengths().astype(np.int64), LENGTHS)


def test_long_lengths_and_empty_records() -> None:
    lengths = np.array([0, 2**40, 5, 0, 2**33])
    sampler = TokenBudget(2**40, lengths).sampler()
    found = np.concatenate([sampler.next() for _ in range(sampler.cycle)])
    assert sorted(found.tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("world_size", [2, 3, 6])
def test_ranks_share_the_global_batch(world_size: int) -> None:
    plan = TokenBudget(6000, LENGTHS, multiple=6)
    whole = plan.sampler(seed=2)
    ranks = [plan.sampler(2, rank=r, world_size=world_size) for r in range(world_size)]
    for step in range(whole.cycle):
        parts = [rank.indices_at(step) for rank in ranks]
        assert len(set(map(len, parts))) == 1
        assert same(np.concatenate(parts), whole.indices_at(step))
    with pytest.raises(ValueError, match="multiple: expected a multiple of world_size 4, got 6"):
        plan.sampler(rank=0, world_size=4)


def test_length_buckets(streams: dict[str, Any]) -> None:
    plan = LengthBuckets(32, streams["text"])
    sampler = plan.sampler(seed=4)
    assert (sampler.cycle, sampler.left_out) == (700 // 32, 700 % 32)
    padded = 0
    with DataLoader(streams, 2, 7, seed=4, sampler=plan, ragged="padded") as loader:
        for step in range(sampler.cycle):
            batch = next(loader)
            assert same(batch["label"], sampler.indices_at(step)) and len(batch["label"]) == 32
            padded += batch["text"][0].size
    mixed = np.random.default_rng(0).permutation(LENGTHS)[: 700 // 32 * 32].reshape(-1, 32)
    assert padded < 0.6 * 32 * mixed.max(axis=1).sum()


def test_passes(streams: dict[str, Any]) -> None:
    plan = TokenBudget(3000, streams["text"])
    sampler = plan.sampler()
    with DataLoader(streams, 2, sampler=plan) as loader:
        for number in (0, 2):
            found = [batch["label"] for batch in loader.epoch(number=number)]
            assert same_list(found, cycle_of(sampler, number))
        assert len(loader.epoch()) == sampler.cycle
        assert len(list(loader.epoch(3))) == 3
    with DataLoader(streams, 2, sampler=LengthBuckets(32, streams["text"])) as loader:
        assert len(list(loader.epoch(tail="drop"))) == 700 // 32
        for tail in ("keep", "pad"):
            with pytest.raises(ValueError, match='expected "drop", because 28 of 700 records'):
                loader.epoch(tail=tail)


def test_states_know_the_plan(streams: dict[str, Any]) -> None:
    plan = TokenBudget(3000, streams["text"], max_records=50)
    with DataLoader(streams, 2, seed=5, sampler=plan) as loader:
        for _ in range(7):
            next(loader)
        state = json.loads(json.dumps(loader.state_dict()))
        expected = [next(loader)["label"] for _ in range(5)]
    assert state["step"] == 7 and state["max_tokens"] == 3000
    with DataLoader(streams, 1, seed=5, sampler=plan) as twin:
        twin.load_state_dict(state)
        assert same_list([next(twin)["label"] for _ in range(5)], expected)
    text = streams["text"]
    longer = LENGTHS.copy()
    longer[5] += 1
    others = [
        (TokenBudget(3001, text, max_records=50), "expected max_tokens to be"),
        (TokenBudget(3000, text), "expected max_records to be"),
        (TokenBudget(3000, text, max_records=50, multiple=2), "expected multiple to be"),
        (TokenBudget(3000, longer, max_records=50), "expected lengths to be"),
        (LengthBuckets(50, text), "expected sampler to be this loader's 'LengthBuckets'"),
    ]
    for other, message in others:
        with DataLoader(streams, seed=5, sampler=other) as loader:
            with pytest.raises(ValueError, match=message):
                loader.load_state_dict(state)


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_copies(streams: dict[str, Any], how: str) -> None:
    def copied(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value)) if how == "pickle" else copy.deepcopy(value)

    sampler = TokenBudget(3000, LENGTHS, multiple=4).sampler(3, rank=1, world_size=2)
    sampler.seek(11)
    assert repr(copied(sampler)) == repr(sampler)
    assert same(copied(sampler).next(), sampler.indices_at(11))
    with DataLoader(streams, 1, sampler=LengthBuckets(9, LENGTHS), seed=8) as loader:
        next(loader)
        with copied(loader) as twin:
            assert twin.state_dict() == loader.state_dict()
            assert same(next(twin)["label"], next(loader)["label"])
        for store in twin._streams.values():
            store.close()


def test_a_sampler_is_endless_and_seeks() -> None:
    sampler = TokenBudget(3000, LENGTHS).sampler()
    for step, batch in enumerate(itertools.islice(sampler, 3 * sampler.cycle)):
        assert same(batch, sampler.indices_at(step))
    sampler.seek(2**63 - 2)
    sampler.next()
    with pytest.raises(ValueError, match="the last step is 9223372036854775806"):
        sampler.next()


def test_the_plan_must_be_for_the_streams(streams: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the streams' length 700, got length 3"):
        DataLoader(streams, sampler=TokenBudget(3000, LENGTHS[:3]))


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ((0, LENGTHS), {}, ValueError, "max_tokens: expected at least 1, got 0"),
    ((1.5, LENGTHS), {}, TypeError, "max_tokens: expected an integer"),
    ((9, [1, 2]), {}, TypeError, "store: expected a RaggedStore, or an array .* got list"),
    ((9, np.ones(3)), {}, TypeError, "store: expected a RaggedStore, .* got float64"),
    ((9, LENGTHS[:0]), {}, ValueError, r"at least one length, got shape \(0,\)"),
    ((9, LENGTHS.reshape(7, 100)), {}, ValueError, r"1-D array .* got shape \(7, 100\)"),
    ((9, np.array([-1])), {}, ValueError, "store: expected lengths of 0 to"),
    ((9, LENGTHS), {"multiple": 0}, ValueError, "multiple: expected at least 1"),
    ((9, LENGTHS), {"max_records": 0}, ValueError, "max_records: expected at least 1"),
    ((9, LENGTHS), {"max_records": 3, "multiple": 4}, ValueError, "max_records: expected at least"),
]


@pytest.mark.parametrize(("arguments", "named", "error", "message"), BAD)
def test_bad_arguments(
    arguments: Any, named: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TokenBudget(*arguments, **named)


def test_what_shows_when_the_order_is_made() -> None:
    longest = int(LENGTHS.argmax())
    with pytest.raises(ValueError, match=f"lengths: expected 0 to 100 .* for record {longest}"):
        TokenBudget(100, LENGTHS.clip(0, 100) + (LENGTHS == LENGTHS.max())).sampler()
    with pytest.raises(
        ValueError, match="batch_size: expected at most the number of records, 3, got 4"
    ):
        LengthBuckets(4, LENGTHS[:3]).sampler()
    with pytest.raises(TypeError, match="plan: expected a TokenBudget or LengthBuckets, got int"):
        BudgetSampler(5)


def test_a_sampler_may_be_of_the_first_records() -> None:
    plan, first = TokenBudget(3000, LENGTHS), TokenBudget(3000, LENGTHS[:300])
    sampler = BudgetSampler(plan, length=300)
    assert sampler.length == 300 and sampler.cycle == first.sampler().cycle
    assert same(sampler.indices_at(7), first.sampler().indices_at(7))
    with pytest.raises(ValueError, match="length: expected at most 700, got 701"):
        BudgetSampler(plan, length=701)


def test_ranks_share_the_batch_of_length_buckets() -> None:
    with pytest.raises(ValueError, match="batch_size: expected a multiple of world_size 2, got 9"):
        LengthBuckets(9, LENGTHS).sampler(world_size=2)
