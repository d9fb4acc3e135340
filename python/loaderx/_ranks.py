"""Which rank of how many this process is, where the caller asks to find out."""

from __future__ import annotations

import os
import sys
from typing import Any


def as_ranks(rank: Any, world_size: Any) -> tuple[Any, Any]:
    """Resolve ``rank="auto"``; anything else is given back as it is, to be checked.

    torch.distributed counts if the process has set it up. It is looked up and
    never imported: a process that has not imported it has not set it up.

    Raises:
        ValueError: another str, a world_size beside "auto", or nothing that says
            which rank this is.
    """
    if not isinstance(rank, str):
        return rank, world_size
    if rank != "auto":
        raise ValueError(f'rank: expected an integer or "auto", got {rank!r}')
    if world_size != 1:
        raise ValueError(
            f'world_size: expected it to be left out beside rank="auto", got {world_size!r}'
        )
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return int(torch.get_rank()), int(torch.get_world_size())
    return _of_environment()


def _of_environment() -> tuple[int, int]:
    """The rank that a launcher such as torchrun has put into the environment."""
    found = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE")}
    named = ", ".join(f"{name}={value!r}" for name, value in found.items())
    try:
        rank, world_size = (int(value or "") for value in found.values())
    except ValueError:
        raise ValueError(
            'rank: expected, for "auto", torch.distributed to be initialised or integers in the '
            f"environment's RANK and WORLD_SIZE, got {named}"
        ) from None
    if not 0 <= rank < world_size:
        raise ValueError(f"rank: expected 0 <= RANK < WORLD_SIZE in the environment, got {named}")
    return rank, world_size
