"""Results for people and for programs: aligned tables, and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows under a head: as Markdown, which reads well in a terminal too.

    The first column is aligned left, the others right.
    """
    widths = [max(len(r[k]) for r in [head, *rows]) for k in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths))  # noqa: B905
        ]
        return "| " + " | ".join(parts) + " |"

    rule = ["-" * width if k == 0 else "-" * (width - 1) + ":" for k, width in enumerate(widths)]
    return "\n".join([line(head), line(rule), *(line(row) for row in rows)])


def number(value: float | None, digits: int = 3) -> str:
    """Write a figure with so many significant digits, or "-" for none."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if abs(value) >= 10 ** (digits - 1) else text


def save_json(path: Path, results: dict[str, Any]) -> None:
    """Write the results of a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
