"""Random operations leave a store equal to a list of arrays; a store with a bug, not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from model import SHAPES, Model

from loaderx._index import normalize, within
from loaderx._maintain import as_set
from loaderx.zrecord import DenseStore, RaggedStore

# Of each of six stores, so 300 scripts of 200 operations; the same ones in every run.
SCRIPTS, OPERATIONS = 50, 200


def run(machine: type[Model], scripts: int, phases: tuple[Phase, ...]) -> None:
    chosen = settings(
        max_examples=scripts,
        stateful_step_count=OPERATIONS + 1,  # creating the store counts as one
        derandomize=True,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("codec", ["raw", "zstd", "zstd_dict"])
@pytest.mark.parametrize("kind", ["dense", "ragged"])
def test_a_store_is_a_list_of_arrays(kind: str, codec: str) -> None:
    machine = type("Machine", (Model,), {"kind": kind, "codec": codec, "operations": 0})
    # hypothesis ends some scripts early, so it is asked for more of them.
    run(machine, SCRIPTS * 3 // 2, (Phase.generate, Phase.shrink))
    assert machine.operations >= SCRIPTS * OPERATIONS


# ---- planted bugs ----


class WrongOrder(DenseStore):
    """Deletes a batch in ascending order, so that a swap moves what is still to go."""

    def delete(self, index: Any) -> None:
        gone = within(as_set(normalize(index, self)), self)
        for i in np.unique(gone).tolist():
            super().delete(min(i, len(self) - 1))


class ForgottenShape(RaggedStore):
    """Fills a hole with the payload of the last record, and leaves the shape that was there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.left: dict[int, tuple[int, ...]] = {}

    def delete(self, index: Any) -> None:
        shapes = {i: record.shape for i, record in enumerate(self)}
        super().delete(index)
        self.left = {i: shapes[i] for i in range(len(self))}

    def _read(self, index: Any, max_threads: int = 0) -> Any:
        found = super()._read(index, max_threads)
        shapes = [
            self.left.get(int(i) % len(self), record.shape) for i, record in zip(index, found)
        ]
        return [
            record.reshape(shape) if record.size == np.prod(shape) else record
            for record, shape in zip(found, shapes)
        ]


class OffByOne(DenseStore):
    """Reads the first record of a chunk of 200 bytes one record too early."""

    def _read(self, index: Any, max_threads: int = 0) -> Any:
        index = np.where(index < 0, index + len(self), index)
        first = (index % (200 // 24) == 0) & (index > 0)
        return super()._read(np.where(first, index - 1, index), max_threads)


@pytest.mark.parametrize("bug", [WrongOrder, ForgottenShape, OffByOne])
def test_planted_bugs_are_caught(bug: type[Any]) -> None:
    kind = "ragged" if issubclass(bug, RaggedStore) else "dense"
    machine = type("Machine", (Model,), {"kind": kind, kind: bug})
    with pytest.raises(AssertionError):
        run(machine, 20, (Phase.generate,))


def test_the_shapes_can_tell() -> None:
    sizes = [int(np.prod(shape)) for shape in SHAPES]
    assert len(set(sizes)) < len(sizes)
