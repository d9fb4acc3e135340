"""Deleting the same records from several stores that make up one sample.

One store is changed after the other, and a crash may come in between. So what
is to be done is written to a small file beside the first store before anything
is done, and removed when all is. Calling again with the same index then goes
on where it stopped: the lengths tell which stores are done. The file knows the
stores by their ids, since the folder they lie in may have moved meanwhile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from loaderx import _files, _native
from loaderx._index import IndexArray, normalize, within
from loaderx._maintain import as_set
from loaderx._store import open_stores
from loaderx.errors import (
    CorruptStoreError,
    StoreBusyError,
    StoreMismatchError,
    ZrecordError,
    add_note,
)
from loaderx.zrecord import DenseStore, RaggedStore

_VERSION = 1


class _Intent(NamedTuple):
    """What was begun: of these stores, each of that length, to delete these records."""

    file: str
    stores: list[str]  # their paths then, for messages
    ids: list[int]
    length: int
    gone: list[int]

    def left(self) -> int:
        """The length of a store that is done."""
        return self.length - len(self.gone)


class _Before:
    """A store as it was before the deletion, as far as index rules go."""

    def __init__(self, path: str, length: int) -> None:
        self.path = path
        self._length = length

    def __len__(self) -> int:
        return self._length


def delete_aligned(stores: Any, index: Any) -> None:
    """Delete the same records from several stores of equal length.

    Each store's deletion is all or nothing and durable, but all of them
    together are not one step: if it is interrupted, the lengths differ until
    it is called again with the same stores and the same index, which finishes
    the job. The index is understood as it was at first. Until then another
    index is refused.

    Nobody else may have one of the stores open. A handle in this process is
    noticed before anything is deleted, one in another process only when it is
    its store's turn: that leaves the job half done, with StoreBusyError and a
    note. Once that handle is closed, calling again finishes it.

    Args:
        stores: the stores, open for writing; or a dict of them, such as the
            streams of a loader. To finish, they may be found under another
            path, if all were moved together.
        index: as ``store.delete``.

    Raises:
        ValueError: no stores, one of them twice; stores of unequal length,
            with the name of those that lag; another index while a deletion is
            unfinished.
        RecordIndexError, TypeError: as ``store.delete``.
        StoreBusyError, StoreReadOnlyError, StoreClosedError: one of the stores
            cannot be changed. Without a note that says otherwise, none was.
        OSError: the file of the intent could not be written; nothing was changed.
    """
    found = _as_stores(stores)
    intent = _find_intent(found)
    if intent is not None:
        lengths = {len(store) for store in found}
        again = _is_same(intent, index)
        if lengths == {intent.left()} and again:
            _files.remove(intent.file)  # all is done, but the last line of _carry_out
            return
        if len(lengths) == 1:
            _files.remove(intent.file)  # nothing is half done
            intent = None
        else:
            _require_continued(intent, found, again)
    begun = intent is not None
    if intent is None:
        intent = _new_intent(found, index)
        if not intent.gone:
            return
    _require_alone(found)
    for store in found:
        _become_writer(store)
    if not begun:
        intent = intent._replace(ids=_ids(found))  # an old store has had none until now
        _write(intent)
    _carry_out(intent, found, begun)


def _new_intent(stores: list[Any], index: Any) -> _Intent:
    """What is to be done. Raises for stores of unequal length and what is no index."""
    before = _Before(stores[0].path, _common_length(stores))
    paths = [store.path for store in stores]
    return _Intent(_file_beside(before.path), paths, [], len(before), _resolve(index, before))


def _carry_out(intent: _Intent, stores: list[Any], begun: bool) -> None:
    """Delete from each store that is not done yet; then nothing is left to be remembered."""
    index = np.array(intent.gone, np.int64)
    for store in stores:
        if len(store) == intent.left():
            continue
        try:
            store.delete(index)
        except BaseException as error:
            if not begun and _length(store) == intent.length:
                _files.remove(intent.file)
            else:
                lag = ", ".join(s.path for s in stores if _length(s) != intent.left())
                add_note(
                    error,
                    f"loaderx: delete_aligned is unfinished, and these stores lag: {lag}; call it "
                    f"again with the same stores and index ({intent.file} remembers it)",
                )
            raise
        begun = True
    _files.remove(intent.file)


def _length(store: Any) -> int | None:
    """The length of a store, or None of one that the failure has closed."""
    try:
        return len(store)
    except ZrecordError:
        return None


def _as_stores(stores: Any) -> list[Any]:
    """Check the stores. Raises TypeError, ValueError and StoreClosedError."""
    if isinstance(stores, Mapping):
        stores = stores.values()
    if isinstance(stores, (DenseStore, RaggedStore)) or not isinstance(stores, Iterable):
        raise TypeError(
            f"stores: expected several stores, or a dict of them, got {type(stores).__name__}"
        )
    found = list(stores)
    if not found:
        raise ValueError("stores: expected at least one store, got none")
    for position, store in enumerate(found):
        if not isinstance(store, (DenseStore, RaggedStore)):
            raise TypeError(
                f"stores: expected a DenseStore or RaggedStore at position {position}, "
                f"got {type(store).__name__}"
            )
        store._require_open()
    paths = [os.path.realpath(store.path) for store in found]
    for position, path in enumerate(paths):
        if path in paths[:position]:
            raise ValueError(f"stores: expected each store once, got {found[position].path} twice")
    return found


def _common_length(stores: list[Any]) -> int:
    """The one length of all stores. Raises ValueError."""
    lengths = [len(store) for store in stores]
    if len(set(lengths)) != 1:
        named = ", ".join(f"{s.path} has {n}" for s, n in zip(stores, lengths))
        lag = ", ".join(s.path for s, n in zip(stores, lengths) if n > min(lengths))
        raise ValueError(
            f"stores: expected stores of equal length, got: {named}; if a deletion made them "
            f"differ, those that lag are the longer ones: {lag}"
        )
    return lengths[0]


def _resolve(index: Any, before: _Before) -> list[int]:
    """The records to delete: positive, each once, in order."""
    gone: IndexArray = np.unique(within(as_set(normalize(index, before)), before))
    return [int(i) for i in gone]


def _require_alone(stores: list[Any]) -> None:
    """Refuse stores that this process has open elsewhere. Raises StoreBusyError."""
    paths = {os.path.realpath(store.path) for store in stores}
    for other in open_stores():
        if other not in stores and os.path.realpath(other.path) in paths:
            raise StoreBusyError(
                f"{other.path}: expected the only handle that has it open, got another one in "
                f"this process, {other!r}",
                path=other.path,
            )


def _become_writer(store: Any) -> None:
    """Take the writer's role, upgrading an old store: what delete would do first."""
    store.upgrade()
    ffi, batch = _native.ffi, _native.ffi.new("lx_handle *")
    error = ffi.new("lx_error *")
    with store._turn.taken(store.path):
        status = _native.lib.lx_append_begin(store._handle, batch, error)
        if status:
            raise store._failure(status, error)
        _native.lib.lx_append_abort(batch[0], ffi.NULL)


def _ids(stores: list[Any]) -> list[int]:
    """The ids of stores, which stay when their folders move."""
    ffi, found = _native.ffi, []
    info, error = ffi.new("lx_store_info *"), ffi.new("lx_error *")
    for store in stores:
        status = _native.lib.lx_store_info_of(store._handle, info, error)
        if status:
            raise store._failure(status, error)
        found.append(int(info.store_id))
    return found


# ---- the intent ----


def _file_beside(path: str) -> str:
    """The file of the intent of a deletion whose first store is at path."""
    folder, name = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{name}.delete_aligned.json")


def _find_intent(stores: list[Any]) -> _Intent | None:
    """The unfinished deletion of these stores, whichever of them came first then.

    Raises:
        StoreMismatchError: there is one, of other stores.
        CorruptStoreError: the file cannot be understood.
    """
    for store in stores:
        file = _file_beside(store.path)
        try:
            with open(file, "rb") as opened:
                text = opened.read()
        except FileNotFoundError:
            continue
        intent = _parse(file, text)
        if sorted(intent.ids) != sorted(_ids(stores)):
            raise StoreMismatchError(
                f"{file}: a deletion is unfinished: expected its stores "
                f"{', '.join(intent.stores)}, got {', '.join(s.path for s in stores)}; finish it "
                "with the same stores, under whatever path they are now, or give it up by "
                f"removing {os.path.basename(file)}",
                path=file,
            )
        return intent
    return None


def _parse(file: str, text: bytes) -> _Intent:
    try:
        kept = json.loads(text)
        if kept["version"] != _VERSION:
            raise ValueError(f"version {kept['version']}")
        stores, ids, length, index = kept["stores"], kept["ids"], kept["length"], kept["index"]
        if not all(type(n) is int for n in [length, *ids, *index]) or not all(
            isinstance(path, str) for path in stores
        ):
            raise ValueError("values of other types")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStoreError(
            f"{file}: expected the record of an unfinished delete_aligned, got {text[:80]!r} "
            f"({error}); if the stores are of equal length, remove the file",
            path=file,
        ) from None
    return _Intent(file, stores, ids, length, index)


def _write(intent: _Intent) -> None:
    kept = {
        "version": _VERSION,
        "stores": intent.stores,
        "ids": intent.ids,
        "length": intent.length,
        "index": intent.gone,
    }
    _files.publish(intent.file, json.dumps(kept).encode())


def _is_same(intent: _Intent, index: Any) -> bool:
    """Whether an index means the records of the intent, as it was understood then."""
    try:
        return _resolve(index, _Before(intent.stores[0], intent.length)) == intent.gone
    except (ValueError, IndexError):
        return False


def _require_continued(intent: _Intent, stores: list[Any], again: bool) -> None:
    """Refuse what would not finish the deletion. Raises ValueError."""
    if not again:
        lag = ", ".join(s.path for s in stores if len(s) != intent.left())
        raise ValueError(
            f"index: a deletion of {len(intent.gone)} of {intent.length} records is unfinished, "
            f"and these stores lag: {lag}; expected its index again, got another; see {intent.file}"
        )
    for store in stores:
        if len(store) not in (intent.length, intent.left()):
            raise ValueError(
                f"stores: a deletion is unfinished ({intent.file}): expected each store to have "
                f"{intent.length} or {intent.left()} records, got {len(store)} in {store.path}"
            )
