"""The benchmarks' targets, tables, options and environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench_lib import dense, environment, report
from bench_lib.session import Session, chosen, parser
from bench_lib.targets import Rule, better, judge

FIGURES = {"mine": 30.0, "other": 10.0}


@pytest.mark.parametrize(
    ("rule", "ratio", "reached"),
    [
        (Rule("w", "mine", "other", 3), 3.0, True),
        (Rule("w", "mine", "other", 3.1), 3.0, False),
        (Rule("w", "mine", "other", 3, at_most=True), 3.0, True),
        (Rule("w", "mine", "other", 2.9, at_most=True), 3.0, False),
        (Rule("w", "mine", "other", 1.5, times=2), 1.5, True),
        (Rule("w", "mine", "", 20, at_most=True, unit="ms"), 30.0, False),
    ],
)
def test_judge(rule: Rule, ratio: float, reached: bool) -> None:
    (verdict,) = judge([rule], FIGURES)
    assert verdict.ratio == ratio and verdict.reached is reached
    assert verdict.row()[-1] == ("yes" if reached else "NO")


def test_what_was_not_measured_is_left_out() -> None:
    assert judge([Rule("w", "mine", "absent", 1), Rule("w", "absent", "", 1)], FIGURES) == []


def test_the_better_try_counts() -> None:
    rules = [Rule("w", "mine", "other", 3), Rule("w", "mine", "other", 3, at_most=True)]
    low, high = judge(rules, {"mine": 10, "other": 10}), judge(rules, FIGURES)
    kept = better(low, high)
    assert [v.ratio for v in kept] == [3.0, 1.0]
    assert kept == better(high, low)


def test_table() -> None:
    text = report.table(["name", "figure"], [["a", "1"], ["longer", "22"]])
    assert text.splitlines() == [
        "| name   | figure |",
        "| ------ | -----: |",
        "| a      |      1 |",
        "| longer |     22 |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.012345, "0.0123"), (12.345, "12.3"), (12345.6, "12,300")],
)
def test_number(value: float, text: str) -> None:
    assert report.number(value) == text


def test_only() -> None:
    assert chosen(None, ["a", "b"]) == ["a", "b"]
    assert chosen("b, a", ["a", "b", "c"]) == ["a", "b"]
    with pytest.raises(SystemExit, match="expected some of a, b; got 'c'"):
        chosen("c", ["a", "b"])
    with pytest.raises(SystemExit, match="expected some of a, b; got ''"):
        chosen("", ["a", "b"])


def test_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_lib.machine.scaling", lambda threads: 0.5 * threads)
    where = ["--dir", str(tmp_path / "data"), "--json", str(tmp_path / "results.json")]
    args = parser("what").parse_args(["--quick", *where])
    with Session("it", args) as session:
        assert session.folder.is_dir()
        assert session.count(1000) == 250
        session.verdicts += judge([Rule("w", "mine", "other", 4)], FIGURES)
        session.finish()
    assert not session.folder.exists()
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["targets"][0]["reached"] is False
    assert "the machine is busy" in found["notes"][0]


def test_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_lib.machine.scaling", lambda threads: float(threads))
    args = parser("what").parse_args(["--dir", str(tmp_path), "--batch", "5"])
    with Session("it", args) as session:
        assert dense.dataset("2048", session).name == "tokens"
        assert dense.dataset("3,300,25,2", session).kind == "ntu"
        other = dense.dataset("(30, 40)", session)
        assert (other.item_shape, other.batch, other.dtype) == ((30, 40), 5, "uint8")
        with pytest.raises(SystemExit, match="--shape: expected .* got '3,x'"):
            dense.dataset("3,x", session)


def test_an_interpreter_that_is_too_old_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "candidates", lambda: iter(["/a/python", "/b/python"]))
    versions = {"/a/python": (3, 9), "/b/python": None}
    monkeypatch.setattr(environment, "version_of", versions.get)
    error = environment.MissingEnvironmentError
    with pytest.raises(error, match="need CPython 3.12 or newer") as found:
        environment.find_python()
    assert "/a/python (3.9), /b/python (does not run)" in str(found.value)


def test_the_first_interpreter_that_will_do_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "candidates", lambda: iter(["/a", "/b", "/c"]))
    versions = {"/a": (3, 11), "/b": (3, 12), "/c": (3, 13)}
    monkeypatch.setattr(environment, "version_of", versions.get)
    assert environment.find_python() == "/b"
    assert environment.version_of("/no/such/python") is None


@pytest.mark.parametrize("name", environment.REQUIREMENTS)
def test_every_requirement_is_pinned(name: str) -> None:
    lines = environment.REQUIREMENTS[name].read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert wanted and all("==" in line for line in wanted)
