"""A loader inside torchdata's StatefulDataLoader, which saves and restores its step.

python examples/torch_stateful.py
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from loaderx import DataLoader, DenseStore


class Batches(IterableDataset[Any]):
    """What torch wants to be told: that this is iterated over, and has a state."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        """The loader itself, which has state_dict and load_state_dict."""
        return iter(self.loader)


def stateful(loader: DataLoader) -> StatefulDataLoader[Any]:
    """Wrap a loader. It makes whole batches, in threads: torch adds neither."""
    return StatefulDataLoader(Batches(loader), batch_size=None, num_workers=0)


def main() -> None:
    """Stop after 7 batches, and go on with another loader."""
    with tempfile.TemporaryDirectory() as folder:
        with DenseStore(f"{folder}/x", np.int64, (), codec="raw") as store:
            store.append(np.arange(500))
            with DataLoader({"x": store}, batch_size=16, seed=5) as loader:
                run = stateful(loader)
                for _ in itertools.islice(run, 7):
                    pass
                saved = run.state_dict()
                expected = [loader.batch_at(step)["x"] for step in range(7, 12)]
            with DataLoader({"x": store}, batch_size=16, seed=5) as loader:
                run = stateful(loader)
                run.load_state_dict(saved)
                found = [batch["x"] for batch in itertools.islice(run, 5)]
    equal = all(torch.equal(a, torch.from_numpy(b)) for a, b in zip(found, expected))
    print(f"went on with step 7, equal: {equal}")


if __name__ == "__main__":
    main()
