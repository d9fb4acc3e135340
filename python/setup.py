"""Builds the wheel: the Python modules, the shared library and its declarations.

The metadata are in pyproject.toml; this file adds what that cannot say: that
the library comes from scripts/build_native.py, that the wheel is for one
platform and for every Python, that README.md and the licenses stand one folder
up, and that its links lead to the repository where it is read without one.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
# The Go sources: beside this file in a source distribution, else one folder up.
ROOT = HERE if (HERE / "go.mod").is_file() else HERE.parent

sys.path.insert(0, str(ROOT / "scripts"))
try:
    import build_native
except ImportError:
    sys.exit(
        f"loaderx: expected {ROOT / 'scripts' / 'build_native.py'}, which builds the native "
        "library. Build from a complete checkout"
    )


# A link or an image of Markdown, up to a target that is a path.
RELATIVE = re.compile(r"(!?)(\[[^\]]*\]\()(?!\w+:|#)")


def with_links(text: str, repository: str) -> str:
    """Have a text's links to files lead to a repository of Forgejo, as codeberg.org runs it."""
    kinds = {"": f"{repository}/src/branch/main/", "!": f"{repository}/raw/branch/main/"}
    return RELATIVE.sub(lambda found: found.group() + kinds[found.group(1)], text)


class PlatformDistribution(Distribution):
    """A distribution whose files belong to one platform, and its description."""

    def parse_config_files(self, *args: Any, **options: Any) -> None:
        """Read pyproject.toml; the index shows the README beside none of the files it names."""
        super().parse_config_files(*args, **options)
        text = with_links(self.metadata.long_description, self.metadata.project_urls["Source"])
        self.metadata.long_description = text

    def has_ext_modules(self) -> bool:
        """Say so, which puts the package where libraries go."""
        return True


class BuildPackage(build_py):
    """Copies the modules, then builds the native files among them."""

    def run(self) -> None:
        """Build into the wheel's folder, or for an editable install in place."""
        out = HERE / "loaderx" if self.editable_mode else Path(self.build_lib) / "loaderx"
        if not self.editable_mode:
            # What an earlier build left there would go into the wheel.
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        try:
            build_native.build(out.resolve())
        except build_native.BuildError as error:
            sys.exit(f"loaderx: {error}")


class PlatformWheel(bdist_wheel):
    """Tags the wheel: any Python 3, no Python ABI, this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag: the library is reached through cffi's ABI mode."""
        return ("py3", "none", super().get_tag()[2])


class SourceDistribution(sdist):
    """Not from here: this folder lacks the Go sources."""

    def run(self) -> None:
        """Say what to do instead."""
        sys.exit(
            "loaderx: a source distribution has Go sources in it, which setuptools does not "
            "know: expected python3 scripts/build_wheels.py --only sdist in a checkout"
        )


@contextmanager
def copies_from_above(*names: str) -> Iterator[None]:
    """Have these files of the folder above here while the package is built.

    The standards for metadata do not let a package name files outside its own
    folder.
    """
    missing = [name for name in names if not (HERE / name).exists()]
    try:
        for name in missing:
            shutil.copyfile(ROOT / name, HERE / name)
        yield
    finally:
        for name in missing:
            (HERE / name).unlink(missing_ok=True)


with copies_from_above("README.md", "LICENSE", "THIRD_PARTY_LICENSES"):
    setup(
        distclass=PlatformDistribution,
        cmdclass={
            "build_py": BuildPackage,
            "bdist_wheel": PlatformWheel,
            "sdist": SourceDistribution,
        },
    )
