"""DataLoader: going on with exactly the same batches, in another process and with other workers."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from support import output_of, same

from loaderx.dataloader import DataLoader
from loaderx.errors import LoaderClosedError
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import LengthBuckets, Mix, Sampler

IMAGES = np.random.default_rng(5).integers(0, 255, (230, 3, 4)).astype(np.uint8)
PAIRS = np.array([(i, i / 2) for i in range(230)], np.dtype([("a", "<i4"), ("b", "<f8")]))
TOKENS = [np.arange(i % 7, i % 7 + 1 + i % 5, dtype=np.int16) for i in range(230)]

Streams = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("streams")
    with DenseStore(found / "image", np.uint8, (3, 4), codec="raw") as image:
        image.append(IMAGES)
    with DenseStore(found / "pair", PAIRS.dtype, ()) as pair:
        pair.append(PAIRS)
    with RaggedStore(found / "token", np.int16) as token:
        token.append(TOKENS)
    return found


@pytest.fixture
def streams(folder: Path) -> Iterator[Streams]:
    with DenseStore(folder / "image") as image, DenseStore(folder / "pair") as pair:
        with RaggedStore(folder / "token") as token:
            yield {"image": image, "pair": pair, "token": token}


def digest(batch: Any) -> str:
    """A number for a batch with every byte of it."""
    parts = [batch["image"].tobytes(), batch["pair"].tobytes()]
    parts += [token.tobytes() for token in batch["token"]]
    return hashlib.sha256(b"".join(parts)).hexdigest()


RESUME = """
import json, sys
from loaderx import DataLoader, DenseStore, RaggedStore
folder = sys.argv[1]
streams = {
    "image": DenseStore(folder + "/image", mode="r"),
    "pair": DenseStore(folder + "/pair", mode="r"),
    "token": RaggedStore(folder + "/token", mode="r"),
}
found = []
for arguments, state in json.loads(open(sys.argv[2]).read()):
    with DataLoader(streams, **arguments) as loader:
        loader.load_state_dict(state)
        found.append([digest(next(loader)) for _ in range(9)])
print(json.dumps(found))
"""


def configurations() -> Iterator[tuple[dict[str, Any], int]]:
    """Twenty settings of the order, each with a step to be resumed at."""
    rng = np.random.default_rng(77)
    for turn in range(20):
        order = {
            "batch_size": 24 * int(rng.integers(1, 8)),
            "mode": turn % 3,
            "seed": int(rng.integers(0, 2**64 - 1, dtype=np.uint64)),
        }
        yield order, int(rng.integers(0, 60))


def shape_of_run(turn: int) -> dict[str, Any]:
    """Workers, prefetching and ranks, others in every run."""
    world_size = (1, 2, 3, 8)[turn % 4]
    return {
        "num_workers": (1, 2, 8, 0)[(turn + turn // 4) % 4],
        "prefetch_size": 1 + turn % 6,
        "rank": turn % world_size,
        "world_size": world_size,
    }


def test_a_fresh_process_goes_on_with_the_same_batches(
    streams: Streams, folder: Path, tmp_path: Path
) -> None:
    todo, expected = [], []
    for turn, (order, step) in enumerate(configurations()):
        with DataLoader(streams, **order, **shape_of_run(turn + 7)) as loader:
            for _ in range(step):
                next(loader)
            state = loader.state_dict()
        assert state["step"] == step
        run = shape_of_run(turn)
        todo.append(({**order, **run}, state))
        sampler = Sampler(230, **order, rank=run["rank"], world_size=run["world_size"])
        batches = []
        for index in map(sampler.indices_at, range(step, step + 9)):
            tokens = [TOKENS[i] for i in index]
            batch = {"image": IMAGES[index], "pair": PAIRS[index], "token": tokens}
            batches.append(digest(batch))
        expected.append(batches)
    code = (
        "from __future__ import annotations\nimport hashlib\n" + inspect.getsource(digest) + RESUME
    )
    (tmp_path / "todo.json").write_text(json.dumps(todo))
    assert json.loads(output_of(code, folder, tmp_path / "todo.json")) == expected
    assert len({b for batches in expected for b in batches}) > 170


def test_the_step_is_that_of_the_next_batch_and_not_of_what_is_made_ahead(streams: Streams) -> None:
    with DataLoader(streams, 2, 10, prefetch_size=20) as loader:
        for step in range(5):
            assert loader.state_dict()["step"] == step
            next(loader)


def test_what_a_state_is(streams: Streams) -> None:
    with DataLoader(streams, 2, 10, mode=1, seed=2**64 - 1, rank=1, world_size=2) as loader:
        loader.seek(7)
        state = loader.state_dict()
    assert json.loads(json.dumps(state)) == state
    ids = [facts.pop("store_id") for facts in state["streams"].values()]
    assert len(set(ids)) == 3 and all(type(n) is int and n > 0 for n in ids)
    epochs = [facts.pop("epoch") for facts in state["streams"].values()]
    assert all(type(n) is int and n > 0 for n in epochs)
    assert state == {
        "version": 1,
        "step": 7,
        "seed": 2**64 - 1,
        "sampler": "Sampler",
        "mode": "IID",
        "batch_size": 10,
        "subset": None,
        "rank": 1,
        "world_size": 2,
        "streams": {
            "image": {"kind": "dense", "dtype": "|u1", "item_shape": [3, 4], "length": 230},
            "pair": {
                "kind": "dense",
                "dtype": [["a", "<i4"], ["b", "<f8"]],
                "item_shape": [],
                "length": 230,
            },
            "token": {"kind": "ragged", "dtype": "<i2", "item_shape": None, "length": 230},
        },
    }


def test_a_state_is_the_callers(streams: Streams) -> None:
    with DataLoader(streams, batch_size=10) as loader:
        state = loader.state_dict()
        state["streams"]["image"]["length"] = 5
        state["step"] = 9
        assert loader.state_dict()["streams"]["image"]["length"] == 230
        assert loader.step == 0


def test_a_closed_loader_gives_its_state_but_takes_none(streams: Streams) -> None:
    loader = DataLoader(streams, 2, 10)
    next(loader)
    loader.close()
    state = loader.state_dict()
    assert state["step"] == 1
    with pytest.raises(LoaderClosedError):
        loader.load_state_dict(state)


Change = Callable[[dict[str, Any]], Any]

REFUSED: list[tuple[Change, type[Exception], str]] = [
    (lambda s: s.update(version=2), ValueError, "expected version to be this loader's 1, got 2"),
    (lambda s: s.update(seed=8), ValueError, "expected seed to be this loader's 42, got 8"),
    (lambda s: s.update(mode="IID"), ValueError, "mode to be this loader's 'CYCLIC', got 'IID'"),
    (lambda s: s.update(batch_size=20), ValueError, "batch_size to be this loader's 10, got 20"),
    (lambda s: s.update(step=-1), ValueError, "expected step to be at least 0 .* got -1"),
    (lambda s: s.update(step=2**63), ValueError, "expected step to be at least 0 and below"),
    (lambda s: s.update(step=1.0), TypeError, "expected step to be an int, got float 1.0"),
    (lambda s: s.update(step=True), TypeError, "expected step to be an int, got bool True"),
    (lambda s: s.pop("step"), ValueError, "expected a field step, got"),
    (lambda s: s.pop("seed"), ValueError, "expected a field seed, got"),
    (lambda s: s.update(streams=[]), TypeError, "expected streams to be a dict, got list"),
    (lambda s: s["streams"].pop("pair"), ValueError, "expected streams to be .* got .'image'"),
    (lambda s: s["streams"].update(image=5), TypeError, "expected a dict for stream 'image'"),
    (
        lambda s: s["streams"]["token"].update(kind="dense"),
        ValueError,
        "kind of stream 'token' to be this loader's 'ragged', got 'dense'",
    ),
    (
        lambda s: s["streams"]["pair"].update(dtype="<f8"),
        ValueError,
        "dtype of stream 'pair' to be",
    ),
    (
        lambda s: s["streams"]["image"].update(item_shape=[4, 3]),
        ValueError,
        r"item_shape of stream 'image' to be this loader's \[3, 4\], got \[4, 3\]",
    ),
    (
        lambda s: s["streams"]["image"].update(length=231),
        ValueError,
        "length of stream 'image' to be this loader's 230, got 231",
    ),
    (
        lambda s: s["streams"]["image"].pop("length"),
        ValueError,
        "expected a field length of stream 'image'",
    ),
    (
        lambda s: s["streams"]["image"].update(store_id=1),
        ValueError,
        "store_id of stream 'image' to be .* got 1; strict=False takes another store",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused_and_named(
    streams: Streams, change: Change, error: type[Exception], message: str
) -> None:
    with DataLoader(streams, batch_size=10) as loader:
        next(loader)
        state = loader.state_dict()
        state["step"] = 3
        change(state)
        with pytest.raises(error, match=message):
            loader.load_state_dict(state)
        assert loader.step == 1


def test_a_state_that_is_none(streams: Streams) -> None:
    with DataLoader(streams, batch_size=10) as loader:
        with pytest.raises(TypeError, match="expected a dict from state_dict.*got int"):
            loader.load_state_dict(5)  # type: ignore[arg-type]


def test_ranks_are_recorded_and_not_compared(streams: Streams) -> None:
    with DataLoader(streams, batch_size=12, rank=1, world_size=3) as loader:
        next(loader)
        state = loader.state_dict()
    with DataLoader(streams, batch_size=12) as loader:
        loader.load_state_dict({**state, "rank": "any", "something": "else"})
        assert loader.step == 1


def test_another_store_is_taken_only_if_asked_for(streams: Streams, tmp_path: Path) -> None:
    with DataLoader(streams, batch_size=10) as loader:
        state = {**loader.state_dict(), "step": 4}
        expected = loader.batch_at(4)["image"]
    streams["image"].snapshot(tmp_path / "copy")
    with DenseStore(tmp_path / "copy") as twin:
        with DataLoader({**streams, "image": twin}, batch_size=10) as loader:
            with pytest.raises(ValueError, match="store_id of stream 'image'"):
                loader.load_state_dict(state)
            loader.load_state_dict(state, strict=False)
            assert same(next(loader)["image"], expected)
            with pytest.raises(ValueError, match="length of stream 'image'"):
                state["streams"]["image"]["length"] = 1
                loader.load_state_dict(state, strict=False)


def test_a_store_without_an_id_is_not_compared_by_it(streams: Streams) -> None:
    with DataLoader(streams, batch_size=10) as loader:
        state = {**loader.state_dict(), "step": 4}
        state["streams"]["image"]["store_id"] = None  # as a store of format version 4 gives it
        loader.load_state_dict(state)
        assert loader.step == 4


class AtStep:
    """A sampler of one's own."""

    def indices_at(self, step: int) -> Any:
        return [step % 230]


class OnlyNext:
    """A sampler that cannot go back."""

    def next(self) -> Any:
        return [0]


def test_samplers_of_ones_own(streams: Streams) -> None:
    with DataLoader(streams, sampler=AtStep(), seed=3) as loader:
        state = loader.state_dict()
        assert (state["mode"], state["batch_size"], state["seed"]) == (None, None, 3)
        loader.load_state_dict({**state, "step": 9})
        assert same(next(loader)["image"], IMAGES[9:10])
    with DataLoader(streams, sampler=OnlyNext()) as loader:
        for use in (loader.state_dict, lambda: loader.load_state_dict({}), loader.epoch):
            with pytest.raises(TypeError, match=r"indices_at\(step\), got OnlyNext"):
                use()


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_copies_keep_the_step_and_the_settings(streams: Streams, how: str) -> None:
    with DataLoader(streams, 2, 10, 3, 1, 9, rank=1, world_size=2, transform=_image) as loader:
        for _ in range(5):
            next(loader)
        twin = pickle.loads(pickle.dumps(loader)) if how == "pickle" else copy.deepcopy(loader)
        with twin:
            assert twin.state_dict() == loader.state_dict()
            for _ in range(4):
                assert same(next(twin), next(loader))
        for store in twin._streams.values():
            store.close()


def _image(batch: Any, rng: Any) -> Any:
    noise = rng.integers(0, 255, 4, np.uint8)
    return batch["image"] ^ noise


def test_a_store_that_was_changed_is_taken_only_if_asked_for(tmp_path: Path) -> None:
    with DenseStore(tmp_path / "s", np.int64, ()) as store:
        store.append(np.arange(50))
    with DenseStore(tmp_path / "s") as store, DataLoader({"x": store}, batch_size=5) as loader:
        state = {**loader.state_dict(), "step": 3}
        loader.load_state_dict(state)
        store.delete([3])
        store.append(np.array([7]))
    with DenseStore(tmp_path / "s") as store, DataLoader({"x": store}, batch_size=5) as loader:
        with pytest.raises(ValueError, match="epoch of stream 'x' to be .* strict=False takes it"):
            loader.load_state_dict(state)
        loader.load_state_dict(state, strict=False)
        assert loader.step == 3
        del state["streams"]["x"]["epoch"]  # as states of before there was this field
        loader.load_state_dict({**state, "step": 4})
        assert loader.step == 4


def test_an_epoch_stays_while_nothing_changes(tmp_path: Path) -> None:
    store = DenseStore(tmp_path / "s", np.int64, ())
    store.append(np.arange(50))
    with DataLoader({"x": store}, batch_size=5) as loader:
        state = loader.state_dict()
    store.close()
    with DenseStore(tmp_path / "s") as store, DataLoader({"x": store}, batch_size=5) as loader:
        loader.load_state_dict(state)


def test_names_in_a_state_are_str(streams: Streams) -> None:
    with DataLoader(streams, batch_size=10) as loader:
        state = loader.state_dict()
        state["streams"][1] = state["streams"].pop("image")
        with pytest.raises((TypeError, ValueError), match="state: expected .*streams"):
            loader.load_state_dict(state)


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
@pytest.mark.parametrize("kind", ["Sampler", "Mix", "LengthBuckets", "AtStep"])
def test_a_copy_has_the_order_of_before_its_streams_grew(
    tmp_path: Path, kind: str, how: str
) -> None:
    with DenseStore(tmp_path / "x", np.int64, ()) as x, RaggedStore(tmp_path / "r", np.int32) as r:
        x.append(np.arange(230))
        r.append([np.zeros(1 + i % 7, np.int32) for i in range(230)])
        samplers = {"LengthBuckets": LengthBuckets(9, r), "AtStep": AtStep()}
        own, streams = samplers.get(kind), {"x": x, "r": r}
        if kind == "Mix":
            own, streams = Mix({"a": 1, "b": 2}), {"a": {"x": x}, "b": {"x": x}}
        with DataLoader(streams, 1, 9, sampler=own) as loader:
            next(loader)
            x.append(np.arange(50))  # and the other stream not
            twin = pickle.loads(pickle.dumps(loader)) if how == "pickle" else copy.deepcopy(loader)
            assert twin.state_dict() == loader.state_dict()
            for _ in range(60):
                assert same(next(twin)["x"], next(loader)["x"])
            again = copy.deepcopy(twin)
            assert same(next(again)["x"], next(loader)["x"])
            for copied in (twin, again):
                copied.close()
                for found in copied._streams.values():
                    for store in found.values() if isinstance(found, dict) else [found]:
                        store.close()
