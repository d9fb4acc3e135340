"""The state of a loader: what it takes to go on with the same batches elsewhere.

A state is plain data that survives JSON. The step is one integer, because the
order is a pure function of seed and step; all the rest is there to notice that
the data or the settings are not those the step belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from loaderx import _identity, _native
from loaderx.zrecord import DenseStore, RaggedStore

VERSION = 1
# What is not compared as the settings of the order are. How many ranks share a batch
# does not change it; the streams are compared one by one.
APART = ("version", "step", "rank", "world_size", "streams")
FACTS = ("kind", "dtype", "item_shape", "length")


def fingerprints(streams: Mapping[str, Any]) -> dict[str, Any]:
    """The fingerprint of each stream; of a mix, of each stream of each source."""
    return {
        name: fingerprints(found) if isinstance(found, Mapping) else fingerprint(found)
        for name, found in streams.items()
    }


def fingerprint(store: DenseStore | RaggedStore) -> dict[str, Any]:
    """What tells a stream from another one, and from itself at another time.

    store_id and epoch are None before format version 5.
    """
    info = _native.ffi.new("lx_store_info *")
    status = _native.lib.lx_store_info_of(store._handle, info, _native.scratch.error)
    if status:
        raise store._failure(status)
    dense = isinstance(store, DenseStore)
    identity = json.loads(
        _identity.encode(store.dtype, store.item_shape if isinstance(store, DenseStore) else None)
    )
    return {
        "kind": "dense" if dense else "ragged",
        "dtype": identity["dtype"],
        "item_shape": identity.get("item_shape"),
        "length": len(store),
        "store_id": int(info.store_id) or None,
        "epoch": int(info.epoch) or None,
    }


def as_before(found: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Fingerprints of streams that have grown, as they were when the others were taken."""
    return {
        name: {**facts, "length": before[name]["length"], "epoch": before[name]["epoch"]}
        if isinstance(facts.get("kind"), str)
        else as_before(facts, before[name])
        for name, facts in found.items()
    }


def lengths_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """The lengths in fingerprints, by name; of a mix, by name in each source."""
    return {
        name: facts["length"] if isinstance(facts.get("kind"), str) else lengths_of(facts)
        for name, facts in found.items()
    }


def step_of(state: Any, own: dict[str, Any], strict: bool) -> int:
    """Check a state against a loader's own, and return its step.

    Raises:
        TypeError: not a dict, or not what a field has to be.
        ValueError: a version of another kind, or a field that differs; it is named.
    """
    if not isinstance(state, dict):
        raise TypeError(f"state: expected a dict from state_dict(), got {type(state).__name__}")
    # Through JSON, as the state may have gone: then tuples are lists on both sides.
    own = json.loads(json.dumps(own))
    _same("version", _field(state, "version", ""), VERSION)
    for name, value in own.items():
        if name not in APART:
            _same(name, _field(state, name, ""), value)
    _same_streams("streams", _field(state, "streams", ""), own["streams"], strict)
    step = _field(state, "step", "")
    if type(step) is not int:
        raise TypeError(f"state: expected step to be an int, got {type(step).__name__} {step!r}")
    if not 0 <= step < (1 << 63) - 1:
        raise ValueError(f"state: expected step to be at least 0 and below 2**63 - 1, got {step}")
    return step


def _same_streams(
    where: str, given: Any, own: dict[str, Any], strict: bool, source: str = ""
) -> None:
    """Compare the streams of a loader, or those of one source of a mix."""
    if not isinstance(given, dict):
        raise TypeError(f"state: expected {where} to be a dict, got {type(given).__name__}")
    _same(where, sorted(map(str, given)), sorted(own))
    for name in given:
        if not isinstance(name, str):
            raise TypeError(
                f"state: expected names in {where} that are str, got {type(name).__name__} {name!r}"
            )
    for name, facts in own.items():
        if isinstance(facts.get("kind"), str):
            _same_stream(f" of stream {name!r}{source}", given[name], facts, strict)
        else:  # a source, even if it has a stream named kind
            of = f" of {name!r}"
            _same_streams(f"streams{of}", given[name], facts, strict, of)


def _same_stream(where: str, given: Any, own: dict[str, Any], strict: bool) -> None:
    if not isinstance(given, dict):
        raise TypeError(f"state: expected a dict for{where[3:]}, got {type(given).__name__}")
    for fact in FACTS:
        _same(fact + where, _field(given, fact, where), own[fact])
    store_id = _field(given, "store_id", where)
    # A store of version 4 has none yet; its first change gives it one.
    if strict and None not in (store_id, own["store_id"]):
        remedy = "; strict=False takes another store, such as a copy"
        _same("store_id" + where, store_id, own["store_id"], remedy)
    # States of before there was this field are taken without it.
    epoch = given.get("epoch")
    if strict and None not in (epoch, own["epoch"]):
        remedy = "; the store was changed since, strict=False takes it as it is now"
        _same("epoch" + where, epoch, own["epoch"], remedy)


def _field(state: dict[str, Any], name: str, where: str) -> Any:
    if name not in state:
        raise ValueError(f"state: expected a field {name}{where}, got {sorted(map(str, state))}")
    return state[name]


def _same(name: str, given: Any, own: Any, remedy: str = "") -> None:
    if json.loads(json.dumps(given, default=repr)) != own:
        raise ValueError(
            f"state: expected {name} to be this loader's {own!r}, got {given!r}{remedy}"
        )
