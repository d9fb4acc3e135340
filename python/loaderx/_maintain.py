"""What is done to a store as a whole: delete, compact, verify, snapshot, upgrade.

All but delete, stats and refresh are tasks, done in steps. A store of format
version 4, which loaderx 1.7.7 wrote, is upgraded in steps before its first
change.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from loaderx import _files, _native, _tasks
from loaderx._index import IndexArray, normalize, within
from loaderx._open import as_path
from loaderx._report import BadRecord, VerifyReport
from loaderx._store import Store

_OLD_FORMAT = 4


class MaintainedStore(Store):
    """A store with the operations on the whole of it. Not for use by itself."""

    _upgraded = False

    def delete(self, index: Any) -> None:
        """Delete records. It survives a power cut once it returns.

        Each hole is filled with the last record, so the records that are left
        are 0 to n - 1 again, some of them with another index than before. The
        room on disk comes back with ``compact()``. Nobody else may have the
        store open.

        Args:
            index: whatever can stand between the brackets of ``store[index]``,
                an integer included, and a verification's ``report.bad``.
                Deleting a record twice in one call is deleting it once.

        Raises:
            RecordIndexError: an index outside the store.
            TypeError, ValueError: what cannot index a store; see the message.
            StoreBusyError: another handle, here or in another process, has it open.
            StoreReadOnlyError, StoreFullError, StoreIOError: nothing was deleted.
            StoreClosedError: after close().
        """
        self._require_open()
        with self._turn.taken(self._path):
            gone = as_set(normalize(index, self))
            if self._is_old():
                within(gone, self)  # a wrong index is no reason to upgrade
                if len(gone) == 0 and self._mode == "a":
                    return
                self._upgrade(None)
            status = _native.lib.lx_store_delete(
                self._handle, _native.ffi.from_buffer(gone), len(gone), _native.scratch.error
            )
            if status:
                raise self._failure(status)

    def compact(self, progress: _tasks.Progress | None = None) -> None:
        """Give the room of deleted records back to the file system.

        Records keep their indices. Nobody else may have the store open. When
        it is interrupted the store is whole, and a second call goes on.

        Args:
            progress: called now and then with (at, total), in bytes.

        Raises:
            StoreBusyError: another handle, here or in another process, has it open.
            CorruptRecordError: a damaged record is in the way: see ``verify``.
            StoreReadOnlyError, StoreFullError, StoreIOError: see the message.
            StoreClosedError: after close().
        """
        progress = _tasks.as_progress(progress)
        self._require_open()
        with self._turn.taken(self._path):
            if self._is_old():
                self._upgrade(None)
            self._run(_native.lib.lx_compact_begin, progress)

    def upgrade(self, progress: _tasks.Progress | None = None) -> None:
        """Turn a store of format version 4 into one of version 5, which 1.7.7 refuses.

        The first change of such a store does this by itself. It reads the
        whole store once, and only the last step changes it: interrupted before
        that the store is as it was, and afterwards it is of version 5. For a
        store of version 5 there is nothing to do.

        Args:
            progress: called after each step with (at, total), in records; for a
                small store perhaps only once, when all is done.

        Raises:
            StoreBusyError: another handle is the writer.
            CorruptStoreError, CorruptRecordError: it is damaged, and is left alone.
            StoreReadOnlyError, StoreFullError, StoreIOError: see the message.
            StoreClosedError: after close().
        """
        progress = _tasks.as_progress(progress)
        self._require_open()
        with self._turn.taken(self._path):
            self._upgrade(progress)

    def verify(self, progress: _tasks.Progress | None = None) -> VerifyReport:
        """Read everything and look for damage: checksums, frames, shapes, overlaps.

        It changes nothing. Stores of format version 4 have no checksums, so
        damage there can go unseen, that of the dictionary (dict.zr) included.

        Args:
            progress: called now and then with (at, total), in bytes.

        Returns:
            A report: ``ok``, ``records``, and ``bad``, which can be given to
            ``delete`` as it is.

        Raises:
            StoreIOError: the system could not read.
            StoreClosedError: after close().
        """
        progress = _tasks.as_progress(progress)
        self._require_open()
        records = len(self)
        item = self._dtype.itemsize
        bad = self._run(
            lambda store, task, error: _native.lib.lx_verify_begin(store, item, task, error),
            progress,
            self._bad_records,
        )
        return VerifyReport(not bad, records, bad)

    def snapshot(self, dest: Any, progress: _tasks.Progress | None = None) -> None:
        """Make a copy of what this handle shows, while the store may be in use.

        The copy is a store of its own, closed and whole. A file system that
        can clone files does so, which takes no room. When it is interrupted
        before the last step, nothing is left at dest, nor a folder that it
        made; afterwards the copy is whole, and stays.

        Args:
            dest: the folder of the copy, new or empty, outside the store's own.
            progress: called after each step with (at, total), in bytes; for a
                small store perhaps only once, when the copy is done.

        Raises:
            TypeError, ValueError: dest is not a path, or a folder that holds something.
            NotAStoreError: dest is a file, or inside one.
            StoreFullError, StoreIOError: see the message.
            StoreClosedError: after close().
        """
        path = as_path(dest, "dest")
        progress = _tasks.as_progress(progress)
        self._require_open()
        own, there = os.path.realpath(self._path), os.path.realpath(path)
        if own == there or there.startswith(os.path.join(own, "")):
            raise ValueError(f"dest: expected a folder outside the store {self._path}, got {path}")
        name = os.fsencode(path)
        with _files.folders_unmade_on_error(path):
            self._run(
                lambda store, task, error: _native.lib.lx_snapshot_begin(store, name, task, error),
                progress,
            )

    def stats(self) -> dict[str, int]:
        """Count what the store holds and what room it takes; reads the whole record table.

        Returns:
            ``records``; ``live_bytes``, what they take as they are stored;
            ``chunk_bytes``, the size of the files that hold them; and
            ``reclaimable``, what ``compact()`` would take off that.

        Raises:
            StoreClosedError: after close().
        """
        self._require_open()
        found = _native.ffi.new("lx_store_stats *")
        status = _native.lib.lx_store_stats_of(self._handle, found, _native.scratch.error)
        if status:
            raise self._failure(status)
        names = ("records", "live_bytes", "chunk_bytes", "reclaimable")
        return {name: int(getattr(found, name)) for name in names}

    def refresh(self) -> None:
        """Show what other handles have changed since the store was opened or last refreshed.

        Until then the length stays what it was. The writer's own handle is
        always exact.

        Raises:
            StoreMismatchError: another store is at the path now.
            NotAStoreError, StoreBusyError, CorruptStoreError: see the message;
                the handle shows what it showed before.
            StoreClosedError: after close().
        """
        self._require_open()
        with self._turn.taken(self._path):
            status = _native.lib.lx_store_refresh(self._handle, _native.scratch.error)
            if status:
                raise self._failure(status)

    # ---- the upgrade before the first change ----

    def _append(self, parts: Iterable[Any], add: Any) -> int:
        return super()._append(parts if self._upgraded else self._upgraded_first(parts), add)

    def _upgraded_first(self, parts: Iterable[Any]) -> Iterator[Any]:
        """The parts; the upgrade comes when the first is made, so no mistake in it upgrades."""
        for part in parts:
            if self._is_old():
                self._upgrade(None)
            yield part

    def _is_old(self) -> bool:
        """Whether the store is of format version 4."""
        if not self._upgraded:
            info = _native.ffi.new("lx_store_info *")
            status = _native.lib.lx_store_info_of(self._handle, info, _native.scratch.error)
            if status:
                raise self._failure(status)
            self._upgraded = info.version != _OLD_FORMAT
        return not self._upgraded

    def _upgrade(self, progress: _tasks.Progress | None) -> None:
        self._run(_native.lib.lx_upgrade_begin, progress)

    # ---- tasks ----

    def _run(self, begin: Any, progress: _tasks.Progress | None, collect: Any = None) -> Any:
        """Run a task that begin(store, cell, error) of the engine begins."""
        return _tasks.run(
            lambda task, error: int(begin(self._handle, task, error)),
            self._failure,
            progress,
            collect,
        )

    def _bad_records(self, task: int, count: int) -> list[BadRecord]:
        """What a verification has found, in the order of the indices."""
        ffi, bad = _native.ffi, _native.ffi.new("lx_error *")
        found = []
        for i in range(count):
            status = _native.lib.lx_task_bad(task, i, bad, _native.scratch.error)
            if status:
                raise self._failure(status)
            path = os.fsdecode(ffi.string(bad.path))
            reason = ffi.string(bad.message).decode("utf-8", "replace")
            offset = int(bad.offset) if bad.offset >= 0 else None
            found.append(BadRecord(int(bad.index), path, offset, reason))
        return sorted(found, key=lambda record: record.index)


def as_set(found: int | IndexArray) -> IndexArray:
    """What normalize gave, as a set of records also where it was one."""
    return np.array([found], np.int64) if isinstance(found, int) else found
