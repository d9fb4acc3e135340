"""Thousands of damaged stores: what random cuts, flips and numbers must not do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import damage
import hostile
import pytest

guard = hostile.guard

# For each of six stores of a form. A longer run, of other cases: LOADERX_FUZZ="20000 2".
CASES, SEED = os.environ.get("LOADERX_FUZZ", "120 1").split()


@pytest.mark.parametrize("form", damage.FORMS)
def test_random_damage(form: str, tmp_path: Path) -> None:
    command = [sys.executable, damage.__file__, form, CASES, SEED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    # The last line says which case it was.
    assert done.returncode == 0 and lines[-1] == "done", (lines[-1:], done.stderr)
    assert len(lines) == 6 * (int(CASES) + 1) + 1
