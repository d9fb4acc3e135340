"""bench_dense.py: records of one shape."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

from bench_lib import cold
from bench_lib.backends import names
from bench_lib.data import DIGITS, IMAGES, DataSet
from bench_lib.session import Session, chosen, parser
from bench_lib.stores import StoreRun
from bench_lib.targets import Rule
from bench_lib.timing import cores

# The sets of the design, by the name that --shape takes: about 256 MiB each.
SETS = {
    "512,512": IMAGES,
    "784": DIGITS,
    "64": DataSet("64", "images", "uint8", (64,), 1 << 21, 1024),
    "tokens": DataSet("tokens", "tokens", "int32", (512,), 1 << 17, 256),
    "ntu": DataSet("ntu", "ntu", "float32", (3, 300, 25, 2), 1024, 64),
}
# Other ways to say the same.
ALIASES = {"2048": "tokens", "3,300,25,2": "ntu"}
OTHER_BYTES = 256 << 20


def dataset(shape: str, session: Session) -> DataSet:
    """Return the set of a --shape: one of SETS, or images of any shape.

    Raises:
        SystemExit: it is neither.
    """
    shape = shape.replace(" ", "").strip("()").rstrip(",")
    found = SETS.get(ALIASES.get(shape, shape))
    if found is None:
        parts = shape.split(",")
        if not all(part.isdigit() and int(part) > 0 for part in parts):
            raise SystemExit(
                f"error: --shape: expected {', '.join(SETS)}, all, or positive numbers "
                f"separated by commas; got {shape!r}"
            )
        item = tuple(map(int, parts))
        count = max(1, OTHER_BYTES // math.prod(item))
        found = DataSet(shape, "images", "uint8", item, count, 256)
    count, batch = session.count(found.count), session.args.batch or found.batch
    return replace(found, count=count, batch=batch)


def rules(shape: str) -> list[Rule]:
    """The targets of a set."""
    raw, table = "loaderx_raw", "loaderx_raw_table"
    take, old = "numpy_take", "loaderx_1.7.7_raw"
    by_shape = {
        "512,512": [(raw, take, 2), (raw, "numpy_take_out", 1.4), (raw, old, 3)],
        "tokens": [(raw, take, 1.4), (raw, old, 5)],
        "784": [(raw, take, 1.3)],
        "64": [(raw, take, 2), (table, take, 1.4), (raw, old, 40)],
    }
    work = f"gather {shape}"
    found = [Rule(work, mine, other, bound) for mine, other, bound in by_shape.get(shape, [])]
    found.append(Rule(work, "loaderx_zstd", "zstd_alone", 0.85))
    if shape == "512,512":
        found.append(Rule("write", "loaderx_raw.write", "npy_memmap.write", 0.9))
        n = cores()
        found.append(Rule("write", "loaderx_zstd.write", "zstd_alone.write", 0.85, times=n))
    return found


def main() -> None:
    """Run the script."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--shape",
        action="append",
        help="512,512 (the default), 784, 64, tokens (2 KiB), ntu, any other shape of uint8, "
        "or all; may be given several times",
    )
    options.add_argument(
        "--cold", action="store_true", help="from the disk: the page cache is emptied first"
    )
    args: argparse.Namespace = options.parse_args()
    shapes: list[str] = args.shape or (["4096", "512,512"] if args.cold else ["512,512"])
    if "all" in shapes:
        shapes = list(SETS)
    with Session("bench_dense_cold" if args.cold else "bench_dense", args) as session:
        if args.cold:
            known = list(cold.READERS)
        else:
            known = names("dense")
        only = chosen(args.only, known)
        for shape in shapes:
            data = dataset(shape, session)
            if args.cold:
                session.verdicts += cold.run(session, data, only)
            else:
                session.verdicts += StoreRun(session, data, only).run(rules(data.name))
        session.finish()
