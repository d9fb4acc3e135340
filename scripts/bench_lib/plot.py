"""Bars of the figures of a run, as a PNG."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_lib.report import number

COLORS = {
    "ours": "#1b6ca8",
    "yardstick": "#8a8a8a",
    "reference": "#d98c21",
    "other": "#b9c7d3",
}


@dataclass(frozen=True)
class Panel:
    """One set of bars.

    Attributes:
        title: above it.
        unit: below it.
        bars: (name, figure, kind); a kind is a key of COLORS.
    """

    title: str
    unit: str
    bars: Sequence[tuple[str, float, str]]


def save_png(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Draw the panels side by side, the largest bar on top, and write the picture."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    most = max(len(panel.bars) for panel in panels)
    size = (5.5 * len(panels), 1.2 + 0.26 * most)
    figure, axes = pyplot.subplots(1, len(panels), figsize=size, squeeze=False)
    for panel, axis in zip(panels, axes[0]):  # noqa: B905
        bars = sorted(panel.bars, key=lambda bar: bar[1])
        colors = [COLORS[kind] for _, _, kind in bars]
        drawn = axis.barh([b[0] for b in bars], [b[1] for b in bars], color=colors)
        axis.bar_label(drawn, [number(b[1]) for b in bars], padding=3, fontsize=7)
        axis.set_title(panel.title, fontsize=9)
        axis.set_xlabel(panel.unit, fontsize=8)
        axis.tick_params(labelsize=7)
        axis.margins(x=0.15, y=0.01)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
