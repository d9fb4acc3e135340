"""Training a dictionary on a sample of records."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np

from loaderx import _files, _native
from loaderx._open import as_path
from loaderx._sample import Pieces, check_source, pieces
from loaderx.zrecord import DICT_TIER_DEFAULT, DICT_TIERS

# What the trainer needs: a few samples, and several times the dictionary's size.
LEAST_SAMPLES = 8
SAMPLE_RATIO = 8
LEAST_SIZE = 512


def train_dict(source: Any, tier: str | None = None, path: Any = None) -> bytes:
    """Train a dictionary for stores of codec "zstd_dict".

    Train it once on the settled data, and give it to a new store as
    ``dict_bytes``. The same source gives the same dictionary.

    Args:
        source: an array, one record for each index of its first axis; an open
            store; or an iterable of records, which are arrays or buffers. What
            is looked at is a sample spread over all of it.
        tier: how large the dictionary is to be, and the sample, a name of
            ``DICT_TIERS``: "fast", "balanced" or "max". None: "balanced".
        path: also write the dictionary to this file.

    Returns:
        The dictionary. Its size is at most the tier's.

    Warns:
        UserWarning: the source is too small for a dictionary of the tier's
            size, so it is of an eighth of the source's.

    Raises:
        ValueError: there is too little to learn from; an unknown tier.
        TypeError: an argument that is not of its type.
        OSError: the file could not be written. A folder that takes none is
            found out before the training.
    """
    name = as_tier(tier)
    file = None if path is None else as_path(path, "path")
    check_source(source, "source")
    if file is not None:
        _files.require_writable(file)
    budget, size = DICT_TIERS[name]["samples"], DICT_TIERS[name]["size"]
    sample = pieces(source, budget)
    room = room_for(sample, size)
    if room < size:
        warnings.warn(
            f"the source is small for a dictionary of tier {name!r}: expected at least "
            f"{SAMPLE_RATIO * size} bytes to make one of {size}, got {len(sample.payload)}; "
            f"it will have at most {room} bytes",
            UserWarning,
            stacklevel=2,
        )
    trained = train(sample, room)
    if file is not None:
        _files.publish(file, trained)
    return trained


def as_tier(tier: Any) -> str:
    """Check the name of a tier. Raises TypeError and ValueError."""
    known = ", ".join(map(repr, DICT_TIERS))
    if tier is not None and not isinstance(tier, str):
        raise TypeError(f"tier: expected None or one of {known}, got {tier!r}")
    name = DICT_TIER_DEFAULT if tier is None else tier
    if name not in DICT_TIERS:
        raise ValueError(f"tier: expected one of {known}, got {name!r}")
    return name


def room_for(sample: Pieces, size: int) -> int:
    """How large a dictionary the sample is good for, size at most.

    Raises:
        ValueError: none at all.
    """
    count, total = len(sample.sizes), len(sample.payload)
    least = SAMPLE_RATIO * LEAST_SIZE
    if count < LEAST_SAMPLES or total < least:
        raise ValueError(
            f"source: expected at least {LEAST_SAMPLES} records and {least} bytes to train a "
            f"dictionary on, got {count} of {total} bytes together"
        )
    return min(size, total // SAMPLE_RATIO)


def train(sample: Pieces, room: int) -> bytes:
    """Train a dictionary of at most room bytes. It takes seconds, and Ctrl-C is answered.

    Raises:
        ValueError: the samples are too few, too short or too much alike.
    """
    ffi = _native.ffi
    trained, written, error = bytearray(room), ffi.new("int64_t *"), ffi.new("lx_error *")
    status = []

    def call() -> None:
        status.append(
            _native.lib.lx_train_dict(
                ffi.from_buffer(np.ascontiguousarray(sample.payload)),
                len(sample.payload),
                ffi.from_buffer(sample.sizes),
                len(sample.sizes),
                ffi.from_buffer(trained),
                room,
                written,
                error,
            )
        )

    _native.require_usable()
    # On a thread of its own, because a native call does not see Ctrl-C. Interrupted,
    # the thread ends by itself; nothing waits for what it makes.
    thread = threading.Thread(target=call, name="loaderx-train", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2)  # in short turns: a signal just before the wait would not end it
    _native.check(status[0], error)
    return bytes(trained[: written[0]])
