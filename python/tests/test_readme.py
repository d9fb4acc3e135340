"""The examples of the README, and a script written for version 1.7.7, as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support import script_output

README = Path(__file__).parents[2] / "README.md"


def test_first_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not README.exists():
        pytest.skip(f"there is no {README}: these tests are not in a checkout")
    block = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    lines = [line for line in block[1].splitlines() if line.strip()]
    assert len(lines) == 7
    (tmp_path / "example.py").write_text(block[1])
    monkeypatch.chdir(tmp_path)
    assert script_output(tmp_path / "example.py") == "(64, 28, 28)"


def test_all_examples_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not README.exists():
        pytest.skip(f"there is no {README}: these tests are not in a checkout")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    ends = "\nprint('given', len(batch['label']))\n"
    (tmp_path / "examples.py").write_text("\n".join(blocks) + ends)
    monkeypatch.chdir(tmp_path)
    lines = script_output(tmp_path / "examples.py").splitlines()
    assert (lines[0], lines[-1]) == ("(64, 28, 28)", "given 232")  # 1000 records, 256 at a time


def test_a_script_of_version_1_7_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "data.npy", np.arange(600 * 12, dtype=np.float32).reshape(600, 3, 4))
    np.save(tmp_path / "label.npy", np.arange(600) % 10)
    (tmp_path / "script.py").write_text(
        """
import numpy as np
from loaderx.zrecord import DenseStore
from loaderx.dataloader import DataLoader

data = np.load('data.npy', mmap_mode='r')
label = np.load('label.npy', mmap_mode='r')
with DenseStore('train_data', data.dtype, data.shape[1:]) as ds:
    ds.append(data)
with DenseStore('train_label', label.dtype, label.shape[1:]) as ds:
    ds.append(label)

loader = DataLoader({'data': DenseStore('train_data'), 'label': DenseStore('train_label')},
                    transform=lambda batch: batch)

for i, batch in enumerate(loader):
    if i >= 256:
        break

print(batch['data'].shape)
print(batch['label'].shape)
"""
    )
    monkeypatch.chdir(tmp_path)
    assert script_output(tmp_path / "script.py") == "(256, 3, 4)\n(256,)"


def test_a_ragged_script_of_version_1_7_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script.py").write_text(
        """
import numpy as np
from loaderx.zrecord import RaggedStore
from loaderx.dataloader import DataLoader

seqs = [np.arange(L, dtype=np.int32) for L in (3, 1, 4, 1, 5)]
with RaggedStore('tokens', np.int32) as rs:
    rs.append(seqs)                       # dtype explicit; each record keeps its shape
rs = RaggedStore('tokens')

records = rs[0, 2, 4]                # list of ndarray, one per record, exact shapes
lengths = np.array([len(r) for r in records])
padded = np.zeros((len(records), lengths.max()), dtype=records[0].dtype)
for i, r in enumerate(records):
    padded[i, :len(r)] = r

def collate(batch):
    return {'input_ids': batch['tokens']}

loader = DataLoader({'tokens': rs}, batch_size=2, transform=collate)
print(padded.tolist(), len(next(loader)['input_ids']))
"""
    )
    monkeypatch.chdir(tmp_path)
    assert script_output(tmp_path / "script.py") == (
        "[[0, 1, 2, 0, 0], [0, 1, 2, 3, 0], [0, 1, 2, 3, 4]] 2"
    )
