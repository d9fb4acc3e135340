"""readahead(index): advice that changes nothing but when bytes are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loaderx.errors import RecordIndexError, StoreClosedError
from loaderx.zrecord import DenseStore, RaggedStore

DATA = np.arange(300, dtype=np.int16).reshape(100, 3)


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("kind", [DenseStore, RaggedStore])
def test_takes_every_set_of_records(tmp_path: Path, kind: type, codec: str) -> None:
    shape = ((3,),) if kind is DenseStore else ()
    with kind(tmp_path / "s", np.int16, *shape, codec=codec) as store:
        store.append(DATA if kind is DenseStore else list(DATA))
        for index in ([], [3], [5, -1, 5], slice(10, 90, 3), np.arange(100) > 50, range(7)):
            assert store.readahead(index) is None
            assert all((a == b).all() for a, b in zip(store[index], DATA[index]))
        for bad in ([100], [0, -101]):
            with pytest.raises(RecordIndexError):
                store.readahead(bad)
        with pytest.raises(TypeError, match="a set of records"):
            store.readahead(5)
    with pytest.raises(StoreClosedError):
        store.readahead([1])
