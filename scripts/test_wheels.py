"""Load the wheels that scripts/build_wheels.py made, wherever that can be done here."""

from __future__ import annotations

import sys

import build_wheels

if __name__ == "__main__":
    sys.exit(build_wheels.run("wheels.test"))
