"""The C compiler for musl targets, as scripts/build_wheels.py names it to Go.

python muslcc.py COMPILER [OPTION ...] runs COMPILER with the options; when it is
to link Go's object into a shared library, wheels.musl comes first.
"""

from __future__ import annotations

import subprocess
import sys

from wheels import elfobject, musl


def main() -> int:
    """Run the compiler and return its exit status."""
    command = sys.argv[1:]
    try:
        command = musl.prepare(command)
    except (elfobject.ObjectError, subprocess.CalledProcessError) as error:
        print(f"muslcc: {error}", file=sys.stderr)
        return 1
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
