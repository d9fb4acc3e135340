"""The examples run, and do what they say, where their frameworks are installed.

``pip install -r scripts/requirements-extras.txt`` installs them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from support import output_of, script_output

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def needs(*modules: str) -> pytest.MarkDecorator:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(
        bool(missing),
        reason=f"{', '.join(missing)} not installed: see scripts/requirements-extras.txt",
    )


@needs("torch")
def test_torch_device() -> None:
    assert script_output(EXAMPLES / "torch_device.py", "cpu") == "50 batches on cpu, equal: True"


@needs("torch", "torchdata")
def test_torch_stateful() -> None:
    found = script_output(EXAMPLES / "torch_stateful.py")
    assert found == "went on with step 7, equal: True"


@needs("jax")
def test_jax_device() -> None:
    assert script_output(EXAMPLES / "jax_device.py") == "50 batches on cpu, equal: True"


@needs("jax")
def test_jax_takes_a_batch_without_a_copy(tmp_path: Path) -> None:
    code = """
        import sys
        import jax, numpy as np
        from loaderx import DataLoader, DenseStore
        store = DenseStore(sys.argv[1], np.uint8, (784,), codec="raw")
        store.append(np.arange(500 * 784, dtype=np.uint32).astype(np.uint8).reshape(500, 784))
        with DataLoader({"x": store}, 2, 64) as loader:
            for _ in range(100):
                batch = next(loader)["x"]
                array = jax.device_put(batch)
                assert array.unsafe_buffer_pointer() == batch.ctypes.data
        store.close()
        print("shared")
    """
    assert output_of(code, tmp_path / "store") == "shared"


@needs("torch", "torchdata")
def test_a_loader_is_stateful_as_torchdata_has_it(tmp_path: Path) -> None:
    code = """
        import sys
        import numpy as np
        from torchdata.stateful_dataloader.stateful import Stateful
        from loaderx import DataLoader, DenseStore
        store = DenseStore(sys.argv[1], np.uint8, (), codec="raw")
        store.append(np.arange(9, dtype=np.uint8))
        print(isinstance(DataLoader({"x": store}, batch_size=2), Stateful))
        store.close()
    """
    assert output_of(code, tmp_path / "store") == "True"
