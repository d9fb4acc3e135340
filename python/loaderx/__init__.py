"""loaderx: a record store for NumPy data, and a sampler and loader that feed it.

The names people use are here and in the modules that define them:

- ``loaderx.zrecord``: ``DenseStore``, ``RaggedStore`` and what belongs to them,
- ``loaderx.zsampler``: ``Sampler``, the order of indices, with ``split``, ``Mix``,
  ``TokenBudget`` and ``LengthBuckets``,
- ``loaderx.dataloader``: ``DataLoader``, batches in step order, and ``BufferRing``,
- ``loaderx.utils``: ``train_dict``, ``advise``, ``delete_aligned``,
- ``loaderx.errors``: every exception.

Imports point one way: the public modules use the private ones, ``_native`` is
the only one that knows the shared library, and that is loaded by the first
store or sampler, not by an import. So importing loaderx before a fork is
harmless, and costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loaderx import dataloader as dataloader
    from loaderx import errors as errors
    from loaderx import utils as utils
    from loaderx import zrecord as zrecord
    from loaderx import zsampler as zsampler
    from loaderx.dataloader import BufferRing, DataLoader
    from loaderx.errors import (
        CorruptRecordError,
        CorruptStoreError,
        ForkedProcessError,
        LoaderClosedError,
        NotAStoreError,
        RecordIndexError,
        StoreBusyError,
        StoreClosedError,
        StoreFullError,
        StoreIOError,
        StoreMismatchError,
        StoreReadOnlyError,
        UnsupportedStoreError,
        ZrecordError,
    )
    from loaderx.utils import advise, delete_aligned, train_dict
    from loaderx.zrecord import (
        DICT_TIER_DEFAULT,
        DICT_TIERS,
        MAX_RECORD_LEN,
        BadRecord,
        DenseStore,
        RaggedBatch,
        RaggedStore,
        VerifyReport,
    )
    from loaderx.zsampler import (
        BudgetSampler,
        Drawn,
        LengthBuckets,
        Mix,
        MixSampler,
        Sampler,
        TokenBudget,
        split,
    )

__version__ = "3.0.0"

__all__ = [
    "DICT_TIERS",
    "DICT_TIER_DEFAULT",
    "MAX_RECORD_LEN",
    "BadRecord",
    "BudgetSampler",
    "BufferRing",
    "CorruptRecordError",
    "CorruptStoreError",
    "DataLoader",
    "DenseStore",
    "Drawn",
    "ForkedProcessError",
    "LengthBuckets",
    "LoaderClosedError",
    "Mix",
    "MixSampler",
    "NotAStoreError",
    "RaggedBatch",
    "RaggedStore",
    "RecordIndexError",
    "Sampler",
    "StoreBusyError",
    "StoreClosedError",
    "StoreFullError",
    "StoreIOError",
    "StoreMismatchError",
    "StoreReadOnlyError",
    "TokenBudget",
    "UnsupportedStoreError",
    "VerifyReport",
    "ZrecordError",
    "__version__",
    "advise",
    "delete_aligned",
    "split",
    "train_dict",
]

_HOME = {
    "loaderx.dataloader": ["BufferRing", "DataLoader"],
    "loaderx.utils": ["advise", "delete_aligned", "train_dict"],
    "loaderx.zrecord": [
        "DICT_TIERS",
        "DICT_TIER_DEFAULT",
        "MAX_RECORD_LEN",
        "BadRecord",
        "DenseStore",
        "RaggedBatch",
        "RaggedStore",
        "VerifyReport",
    ],
    "loaderx.zsampler": [
        "BudgetSampler",
        "Drawn",
        "LengthBuckets",
        "Mix",
        "MixSampler",
        "Sampler",
        "TokenBudget",
        "split",
    ],
}

_MODULES = {"dataloader", "errors", "utils", "zrecord", "zsampler"}


def __getattr__(name: str) -> Any:
    """Import a public module, or the one that defines a public name, at first use."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((module for module, names in _HOME.items() if name in names), "loaderx.errors")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__) | _MODULES)
