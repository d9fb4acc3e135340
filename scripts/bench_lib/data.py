"""The records and the index plans that every contender gets.

All of it is a pure function of the name, the count and SEED, made in blocks so
that a set never needs more than its own memory and a little. A dense set is one
array, a ragged set a list of arrays that view one array of values.

- images (a shape of uint8): plane waves of a random direction in every record, in
  four shades, and 3 bits of noise. zstd makes it about 1.5 times smaller:
  structured and mildly compressible, as photographs are after decoding.
- smooth: 64 x 64 float32, a few broad bumps in each record, out of 32 bumps that
  all records share. A dictionary is worth having here.
- tokens: int32 drawn from a Zipf law over 32,000 words, where every fourth block
  of eight tokens repeats the block before. As text after tokenisation.
- ntu: skeletons as in NTU RGB+D, (3, 300, 25, 2) float32: 3 coordinates, 300
  frames, 25 joints, 2 bodies. A joint swings about its place in a body that
  drifts, with noise of a millimetre; after the last frame of a recording (64 to
  300 frames) and for an absent second body (4 of 5 recordings) all is zero.
- ragged images: (3, h, w) uint8, h and w log-normal with median 160 and sigma
  0.35, clipped to 64 .. 512; pixels as images.
- ragged tokens: int32 sequences of log-normal length, median 129 and sigma 0.7,
  clipped to 16 .. 512; values as tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

SEED = 20240501
BLOCK_BYTES = 16 << 20

Array = np.ndarray[Any, Any]
Records = Any  # an array of a dense set, a list of arrays of a ragged one


@dataclass(frozen=True)
class DataSet:
    """What a set is: enough to make it, or to create a store for it.

    Attributes:
        name: as on the command line.
        kind: which generator.
        dtype: of the records, as numpy spells it.
        item_shape: of one record; empty and unused for a ragged set.
        count: how many records.
        batch: how many records a batch has.
        ragged: whether records have shapes of their own.
    """

    name: str
    kind: str
    dtype: str
    item_shape: tuple[int, ...]
    count: int
    batch: int
    ragged: bool = False
    ndim: int = field(default=1)

    @property
    def record_bytes(self) -> int:
        """The bytes of one dense record."""
        return int(np.prod(self.item_shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


# The two sets that more than one script uses: 256 MiB and 196 MiB.
IMAGES = DataSet("512,512", "images", "uint8", (512, 512), 1024, 256)
DIGITS = DataSet("784", "images", "uint8", (784,), 1 << 18, 256)


def _zipf(rng: np.random.Generator, count: int) -> Array:
    """Draw tokens below 32,000 whose frequency falls as 1 / rank, with repeats."""
    ranks: Array = np.exp(rng.random(count) * np.log(32_000.0)).astype(np.int32)
    blocks = ranks[: count // 32 * 32].reshape(-1, 4, 8)
    blocks[:, 3] = blocks[:, 2]
    return ranks


def _pixels(rng: np.random.Generator, count: int, height: int, width: int) -> Array:
    """Make (count, height, width) uint8 of plane waves in four shades, and noise."""
    y = np.arange(height, dtype=np.uint32)[:, None]
    x = np.arange(width, dtype=np.uint32)[None, :]
    slope = rng.integers(8, 64, (2, count, 1, 1), np.uint32)
    shade = ((slope[0] * y + slope[1] * x) >> 7).astype(np.uint8) & np.uint8(24)
    noise = np.frombuffer(rng.bytes(shade.size), np.uint8).reshape(shade.shape) & np.uint8(7)
    out: Array = shade | noise
    return out


def _images(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    width = shape[-1] if shape else 1
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    return _pixels(rng, count, rows, width).reshape(count, *shape)


def _smooth(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    shared = np.random.default_rng(SEED)
    centre = shared.random((32, 2)) * np.array(shape)
    y, x = np.mgrid[: shape[0], : shape[1]]
    away = (y - centre[:, 0, None, None]) ** 2 + (x - centre[:, 1, None, None]) ** 2
    bumps = np.exp(-away / (2 * (min(shape) / 6) ** 2)).astype(np.float32)
    strength = rng.integers(0, 8, (count, 32)) * (rng.random((count, 32)) < 0.1)
    flat = strength.astype(np.float32) @ bumps.reshape(32, -1)
    out: Array = np.round(flat * 16).astype(np.float32).reshape(count, *shape)
    return out


def _skeletons(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    coordinates, frames, joints, bodies = shape
    size = (count, coordinates, 1, joints, bodies)
    place = rng.normal(0, 0.4, size)
    drift = rng.normal(0, 0.002, (count, coordinates, 1, 1, bodies))
    swing, phase = rng.random(size) * 0.2, rng.random(size) * 2 * np.pi
    pace = rng.random(size) * 0.2
    time = np.arange(frames)[None, None, :, None, None]
    out = place + drift * time + swing * np.sin(pace * time + phase)
    out = (out + rng.normal(0, 0.001, out.shape)).astype(np.float32)
    length = rng.integers(64, frames + 1, count) if frames > 64 else np.full(count, frames)
    out *= time < length[:, None, None, None, None]
    out[rng.random(count) < 0.8, ..., 1:] = 0
    return np.ascontiguousarray(out, np.float32)


def dense(data: DataSet) -> Array:
    """Make the records of a dense set: ``(count, *item_shape)``."""
    out: Array = np.empty((data.count, *data.item_shape), data.dtype)
    rows = max(1, BLOCK_BYTES // data.record_bytes)
    for start in range(0, data.count, rows):
        rng = np.random.default_rng((SEED, start))
        part = out[start : start + rows]
        if data.kind == "tokens":
            part[...] = _zipf(rng, part.size).reshape(part.shape)
        else:
            make = {"images": _images, "smooth": _smooth, "ntu": _skeletons}[data.kind]
            part[...] = make(rng, len(part), data.item_shape)
    return out


def _sizes(rng: np.random.Generator, count: Any, median: float, sigma: float) -> Array:
    drawn: Array = rng.lognormal(np.log(median), sigma, count)
    return drawn


def ragged_shapes(data: DataSet) -> Array:
    """Make the shapes of a ragged set: int64, ``(count, ndim)``."""
    rng = np.random.default_rng((SEED, 1))
    if data.kind == "tokens":
        return np.clip(_sizes(rng, (data.count, 1), 129, 0.7), 16, 512).astype(np.int64)
    sides = np.clip(_sizes(rng, (data.count, 2), 160, 0.35), 64, 512).astype(np.int64)
    return np.concatenate([np.full((data.count, 1), 3), sides], axis=1)


def ragged_values(data: DataSet, shapes: Array) -> Array:
    """Make the values of a ragged set, all records one behind the other."""
    rng = np.random.default_rng((SEED, 2))
    if data.kind == "tokens":
        return _zipf(rng, int(shapes.sum()))
    parts = [_pixels(rng, 1, 3 * h, w).ravel() for _, h, w in shapes.tolist()]
    return np.concatenate(parts)


def cut(values: Array, shapes: Array) -> list[Array]:
    """Cut packed values into the records of these shapes; they share its memory."""
    ends = np.cumsum(np.prod(shapes, axis=1)).tolist()
    starts = [0, *ends[:-1]]
    return [
        values[a:b].reshape(shape)
        for a, b, shape in zip(starts, ends, shapes.tolist())  # noqa: B905
    ]


def plans(count: int, batch: int, how_many: int) -> Array:
    """Draw index plans, int64 ``(how_many, batch)``, uniformly with replacement."""
    rng = np.random.default_rng((SEED, 3))
    return rng.integers(0, count, (how_many, batch))


def covering_plans(count: int, batch: int) -> Array:
    """Cut a random order of all records into plans, so that together they cover the data."""
    order: Array = np.random.default_rng((SEED, 4)).permutation(count)
    return order[: count // batch * batch].reshape(-1, batch)
