"""bench_ragged.py: records that each have a shape of their own."""

from __future__ import annotations

import argparse
from dataclasses import replace

from bench_lib.backends import names
from bench_lib.data import DataSet
from bench_lib.session import Session, chosen, parser
from bench_lib.stores import StoreRun
from bench_lib.targets import Rule

SETS = {
    "images": DataSet("images", "images", "uint8", (), 2048, 256, True, 3),
    "tokens": DataSet("tokens", "tokens", "int32", (), 1 << 17, 256, True, 1),
}

RULES = {
    "images": [Rule("ragged images, list", "loaderx_raw", "ram_list", 1.1)],
    "tokens": [
        Rule("ragged tokens, list", "loaderx_raw", "ram_list", 2),
        Rule("ragged tokens, list", "loaderx_raw", "loaderx_1.7.7_raw", 10),
        Rule("ragged tokens, packed", "loaderx_raw_packed", "loaderx_2.8.19_raw", 20),
    ],
}
ZSTD = Rule("ragged gather", "loaderx_zstd", "zstd_alone", 0.85)


def main() -> None:
    """Run the script."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--shape",
        action="append",
        choices=[*SETS, "all"],
        help="which set; may be given several times (default: all)",
    )
    args: argparse.Namespace = options.parse_args()
    wanted = args.shape or ["all"]
    with Session("bench_ragged", args) as session:
        only = chosen(args.only, names("ragged"))
        for name, found in SETS.items():
            if name not in wanted and "all" not in wanted:
                continue
            count, batch = session.count(found.count), args.batch or found.batch
            data = replace(found, count=count, batch=min(batch, count))
            run = StoreRun(session, data, only, cover=True)
            session.verdicts += run.run([*RULES[name], ZSTD])
        session.finish()
