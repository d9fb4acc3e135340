"""The platforms that wheels are built for: the one place that maps their names."""

from __future__ import annotations

from dataclasses import dataclass

# The oldest systems that a wheel promises to run on, which its tag names and
# its library must keep to.
GLIBC = (2, 17)
MACOS = (12, 0)  # of Go 1.26


@dataclass(frozen=True)
class Platform:
    """One platform: what pip, Go and the C compiler call it."""

    tag: str
    goos: str
    goarch: str
    triple: str
    """Of zig cc -target."""
    libc: str
    """glibc, musl, macos or windows: what decides how to link and to check."""

    @property
    def wheel_tag(self) -> str:
        """The last three parts of the wheel's name."""
        return f"py3-none-{self.tag}"


def _platforms() -> list[Platform]:
    glibc = f"{GLIBC[0]}.{GLIBC[1]}"
    many = f"manylinux_{GLIBC[0]}_{GLIBC[1]}"
    macos, mac = f"{MACOS[0]}.{MACOS[1]}", f"macosx_{MACOS[0]}_{MACOS[1]}"
    return [
        Platform(f"{many}_x86_64", "linux", "amd64", f"x86_64-linux-gnu.{glibc}", "glibc"),
        Platform(f"{many}_aarch64", "linux", "arm64", f"aarch64-linux-gnu.{glibc}", "glibc"),
        Platform("musllinux_1_2_x86_64", "linux", "amd64", "x86_64-linux-musl", "musl"),
        Platform("musllinux_1_2_aarch64", "linux", "arm64", "aarch64-linux-musl", "musl"),
        Platform(f"{mac}_x86_64", "darwin", "amd64", f"x86_64-macos.{macos}", "macos"),
        Platform(f"{mac}_arm64", "darwin", "arm64", f"aarch64-macos.{macos}", "macos"),
        Platform("win_amd64", "windows", "amd64", "x86_64-windows-gnu", "windows"),
        Platform("win_arm64", "windows", "arm64", "aarch64-windows-gnu", "windows"),
    ]


PLATFORMS = {platform.tag: platform for platform in _platforms()}
SDIST = "sdist"
"""Stands for the source distribution where a tag is asked for."""
