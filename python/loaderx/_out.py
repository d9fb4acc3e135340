"""The destination that a caller brings for a gather: what it has to be."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_out(
    out: Any, index: np.ndarray[Any, Any], item_shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Refuse an ``out`` that a gather of these records cannot fill.

    Raises:
        TypeError: not an array, or one of another dtype.
        ValueError: another shape, not C-contiguous, not writable, or memory in
            common with index.
    """
    shape = (len(index), *item_shape)
    # The usual case first: it is asked with every batch.
    if type(out) is np.ndarray and out.dtype == dtype and out.shape == shape:
        flags = out.flags
        if flags.c_contiguous and flags.writeable and not np.may_share_memory(out, index):
            return
    _explain(out, index, shape, dtype)


def _explain(
    out: Any, index: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Raise for what is wrong with an ``out``; nothing is with some subclasses of arrays."""
    wanted = f"out: expected a writable, C-contiguous array of shape {shape} and dtype {dtype}"
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{wanted}, got {type(out).__name__}")
    if isinstance(out, np.ma.MaskedArray):
        raise TypeError(f"{wanted}, got a masked array, whose mask would not be filled")
    if out.dtype != dtype:
        raise TypeError(f"{wanted}, got dtype {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"{wanted}, got shape {out.shape}")
    if not out.flags.c_contiguous:
        raise ValueError(f"{wanted}, got strides {out.strides}")
    if not out.flags.writeable:
        raise ValueError(f"{wanted}, got one that is read-only")
    if np.may_share_memory(out, index):
        raise ValueError(f"{wanted}, got one that overlaps the index")
