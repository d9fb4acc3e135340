"""Every store example of 1.7.7's README runs as it was written there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import script_output

# What the examples take for granted.
GIVEN = """
import warnings
import numpy as np
warnings.simplefilter("ignore", UserWarning)   # small data make small dictionaries
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (4096, 28, 28), np.uint8)
joint = rng.random((600, 25, 3), np.float32)
label = rng.integers(0, 10, 600)
seqs = [rng.integers(0, 100, n).astype(np.int32) for n in rng.integers(1, 50, 600)]
np.save('data.npy', joint), np.save('label.npy', label)
"""

EXAMPLES = {
    "creating a dense store": (
        """
import numpy as np
from loaderx.zrecord import DenseStore

data = np.load('data.npy', mmap_mode='r')
with DenseStore('train_data', data.dtype, data.shape[1:]) as ds:
    ds.append(data)

ds = DenseStore('train_data')
""",
        "print(ds.dtype, len(ds), (ds[:] == data).all())",
        "float32 600 True",
    ),
    "records": (
        """
import numpy as np
from loaderx.zrecord import DenseStore

data = np.arange(64, dtype=np.float32).reshape(8, 2, 4)
with DenseStore('data', data.dtype, data.shape[1:]) as ds:
    ds.append(data)
ds = DenseStore('data')
ds[0, 5, 2]                          # (3, 2, 4) - shape from the persisted identity
""",
        "print(ds[0, 5, 2].shape, (ds[0, 5, 2] == data[[0, 5, 2]]).all())",
        "(3, 2, 4) True",
    ),
    "ragged records": (
        """
from loaderx.zrecord import RaggedStore

seqs = [np.arange(L, dtype=np.int32) for L in (3, 1, 4, 1, 5)]
with RaggedStore('tokens', np.int32) as rs:
    rs.append(seqs)                       # dtype explicit; each record keeps its shape
rs = RaggedStore('tokens')

records = rs[0, 2, 4]                # list of ndarray - one per record, exact shapes
lengths = np.array([len(r) for r in records])
padded = np.zeros((len(records), lengths.max()), dtype=records[0].dtype)
for i, r in enumerate(records):
    padded[i, :len(r)] = r             # (B, max_len) - your policy, your loop
""",
        "print(padded.tolist())",
        "[[0, 1, 2, 0, 0], [0, 1, 2, 3, 0], [0, 1, 2, 3, 4]]",
    ),
    "writable stores": (
        """
from loaderx.zrecord import DenseStore, RaggedStore

i, single_image, (seq_a, seq_b, seq_c) = 1024, images[7], seqs[:3]

ds = DenseStore('mnist/x', dtype=np.uint8, item_shape=(28, 28))  # type identity committed now
ds.append(images[i:i + 1024])        # (B, 28, 28) -> one batch, returns first index
ds.append(single_image[None])        # one sample is batch_size 1 - add the axis yourself
ds[:4]                               # read path is unchanged

tok = RaggedStore('tokens', dtype=np.int32)     # each record keeps its own shape
tok.append([seq_a, seq_b, seq_c])    # list in, list out - `tok[0, 2]` returns a list
before, stats = ds[:], ds.stats()
ds.delete(np.arange(0, len(ds), 2))   # swap-last: index space stays dense, survivors reindex
left = ds.stats()
ds.stats()                            # {'records', 'live_bytes', 'chunk_bytes', 'reclaimable'}
ds.compact()                          # reclaim the deleted bytes, in place - offline only
""",
        "print(len(before), (before[:1024] == images[i:i + 1024]).all(), type(tok[0, 2]))\n"
        "print(list(stats), len(ds), left['reclaimable'] > 0, ds.stats()['reclaimable'])\n"
        "print(sorted(map(bytes, ds)) == sorted(map(bytes, before[1::2])))",
        "1025 True <class 'list'>\n"
        "['records', 'live_bytes', 'chunk_bytes', 'reclaimable'] 512 True 0\nTrue",
    ),
    "a dictionary": (
        """
settled_array = joint
data, token_generator = joint, (seq for seq in seqs)

from loaderx.utils import train_dict
from loaderx.zrecord import DenseStore, RaggedStore

# train once on the settled data - a standalone, reusable artifact
d = train_dict(settled_array, tier="balanced")

# then any new store can install it and append explicitly
with RaggedStore('tokens', np.int32, codec='zstd_dict', dict_bytes=d) as ds:
    ds.append(token_generator)
with DenseStore('data', data.dtype, data.shape[1:],
                codec='zstd_dict', dict_bytes=d) as ds:
    ds.append(data)
""",
        "print(len(RaggedStore('tokens')), (DenseStore('data')[:] == data).all(), type(d))",
        "600 True <class 'bytes'>",
    ),
    "another codec": (
        """
from loaderx.zrecord import DenseStore
with DenseStore("src", np.float32, (25, 3)) as s:
    s.append(joint)

from loaderx.utils import train_dict
from loaderx.zrecord import DenseStore

CHUNK = 1 << 16
with DenseStore("src") as s, \\
     DenseStore("dst", dtype=s.dtype, item_shape=s.item_shape,
                codec="zstd_dict", dict_bytes=train_dict(s)) as d:
    for start in range(0, len(s), CHUNK):
        d.append(s[start:start + CHUNK])       # records copied in index order
""",
        "print((DenseStore('dst')[:] == DenseStore('src')[:]).all(), DenseStore('dst').codec)",
        "True zstd_dict",
    ),
    "several streams": (
        """
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.dataloader import DataLoader

root = "xsub/train"
with DenseStore(root + "/joint", joint.dtype, joint.shape[1:]) as s:
    s.append(joint)
with DenseStore(root + "/label", label.dtype, label.shape[1:]) as s:
    s.append(label)
with RaggedStore(root + "/token", np.int32) as s:
    s.append(seqs)

streams = {
    "joint": DenseStore(root + "/joint"),
    "label": DenseStore(root + "/label"),
    "token": RaggedStore(root + "/token"),
}
streams["joint"][0, 5, 2]            # each stream keeps its own index API
loader = DataLoader(streams, batch_size=256)
batch = next(loader)                      # {name: values}, index-aligned
""",
        "print(batch['joint'].shape, batch['label'].shape, len(batch['token']))\n"
        "where = {j.tobytes(): i for i, j in enumerate(joint)}\n"
        "found = [where[j.tobytes()] for j in batch['joint']]\n"
        "print((label[found] == batch['label']).all())\n"
        "print(all((seqs[i] == t).all() for i, t in zip(found, batch['token'])))\n"
        "loader.close()",
        "(256, 25, 3) (256,) 256\nTrue\nTrue",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example, check, expected = EXAMPLES[name]
    (tmp_path / "example.py").write_text(GIVEN + example + "\n" + check + "\n")
    monkeypatch.chdir(tmp_path)
    assert script_output(tmp_path / "example.py") == expected
