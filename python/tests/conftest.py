"""Marks of these tests."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    config.addinivalue_line("markers", "reference: compares with loaderx 1.7.7, got from PyPI")
