"""What belongs to stores but to no single one: dictionaries, advice, aligned deletion.

- ``train_dict`` trains a dictionary for stores of codec "zstd_dict",
- ``advise`` measures which codec suits some data,
- ``delete_aligned`` deletes the same records from several stores.
"""

from __future__ import annotations

from loaderx._advise import Advice, AdviceRow, advise
from loaderx._align import delete_aligned
from loaderx._train import train_dict

__all__ = ["Advice", "AdviceRow", "advise", "delete_aligned", "train_dict"]
