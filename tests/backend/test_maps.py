"""Shards mapped into memory: any size of them, without a copy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.tf


@pytest.mark.skipif(sys.platform != "linux", reason="the system's table of what is mapped is Linux's")
def test_small_shards_are_mapped_and_not_read(tmp_path: Path) -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.stored_readers import Maps

    content = np.random.default_rng(0).bytes(1 << 16)
    files = []
    for name in ("first", "empty", "last"):
        own = b"" if name == "empty" else name.encode() + content
        (tmp_path / name).write_bytes(own)
        files.append((str(tmp_path / name), len(own)))
    maps = Maps(files)
    at = tf.constant([2, 3, 5000], tf.int64)
    cut = tf.function(lambda at: maps.cut(maps.every(), at[0], at[1], at[2]))
    assert cut(at).numpy() == (b"last" + content)[3:5003]
    mapped = Path("/proc/self/maps").read_text()
    assert [name for name, _ in files if name in mapped] == [files[0][0], files[2][0]]
