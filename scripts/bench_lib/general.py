"""bench.py: the sampler, small calls, the loader and dictionaries."""

from __future__ import annotations

import argparse
from dataclasses import replace

from bench_lib import calls, dictionary, loader, sampler
from bench_lib.loaders import REGISTRY, STORES
from bench_lib.session import Session, chosen, parser

SECTIONS = ("sampler", "calls", "loader", "dictionary")


def run_loaders(session: Session, args: argparse.Namespace, names: list[str]) -> None:
    """Measure the loaders on both sets, with raw stores and with zstd."""
    for found in loader.SETS:
        if args.shape and found.name not in args.shape:
            continue
        count, batch = session.count(found.count), args.batch or found.batch
        data = replace(found, count=count, batch=batch)
        for codec in chosen(args.codec, STORES):
            run = loader.LoaderRun(session, data, codec, names, args.transform == "augment")
            session.verdicts += run.run()


def main() -> None:
    """Run the script."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--shape",
        action="append",
        choices=[data.name for data in loader.SETS],
        help="the loader's set; may be given several times (default: both)",
    )
    options.add_argument("--codec", help="raw, zstd: the loader's stores (default: both)")
    options.add_argument(
        "--transform", choices=["augment"], help="give the loaders a transform bound by Python"
    )
    args: argparse.Namespace = options.parse_args()
    with Session("bench_augment" if args.transform else "bench", args) as session:
        only = chosen(args.only, [*SECTIONS, *REGISTRY])
        # A loader's name asks for the loaders, and for that one of them.
        names = [name for name in REGISTRY if name in only]
        if "sampler" in only:
            session.verdicts += sampler.run(session)
        if "calls" in only:
            session.verdicts += calls.run(session)
        if "loader" in only or names:
            run_loaders(session, args, names or list(REGISTRY))
        if "dictionary" in only:
            dictionary.run(session)
        session.finish()
