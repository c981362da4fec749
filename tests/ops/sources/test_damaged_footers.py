"""A damaged footer is an error, and never the end of the process: PyArrow aborts where what it throws in C++ is not caught."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

from pipegen.ops.sources.tables.parquet import leaves_of  # noqa: E402

SCRIPT = """
import os, random, signal, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pipegen.errors import OpError
from pipegen.ops.sources.arrow import ArrowTables
from pipegen.ops.sources.stores.field_types import StoreError
from pipegen.ops.sources.tables.parquet import RowGroups, read_parquet

form, folder, every = sys.argv[1], sys.argv[2], int(sys.argv[3])
table = pa.table({
    "file": [f"{i}.png" for i in range(6)], "image": [b"x" * i for i in range(6)], "kind": pa.array(["a", "b"] * 3).dictionary_encode(),
})
path = f"{folder}/good"
if form == "parquet":
    pq.write_table(table, path, row_group_size=3)
else:
    new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
    with pa.OSFile(path, "wb") as out, new(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
good = open(path, "rb").read()
tail = {"parquet": 8, "arrow": 10}.get(form, 0)
begin = len(good) - tail - int.from_bytes(good[-tail : len(good) - tail + 4], "little") if tail else 0
bits = range(8 * begin, 8 * len(good))
random.seed(7)
chosen = bits if every == 1 else sorted({*bits[280:312], *random.sample(bits, 90)})


def read(path):
    if form == "parquet":
        read_parquet([path])  # reading columns would need threads, which do not outlive a fork
        RowGroups([path], {"image": ("image", None)})
    else:
        store = ArrowTables(path)
        store.check()
        store.read(tuple(store.columns()), np.arange(store.rows))


def outcome(bit):
    damaged, path = bytearray(good), f"{folder}/bad-{bit}"  # a path of its own: what was read before may be mapped yet
    if bit is not None:
        damaged[bit // 8] ^= 1 << bit % 8
    with open(path, "wb") as file:
        file.write(damaged)
    try:
        read(path)
    except (OpError, StoreError, OSError):
        return 1
    except BaseException as error:
        print(bit, repr(error), flush=True)
        return 2
    finally:
        os.remove(path)
    return 0


def outcomes(bits):
    # A fork takes as long as reading many, so one process reads them all; where that ends, each half of them has one of its own.
    here, there = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(60)
        os.write(there, bytes(map(outcome, bits)))
        os._exit(0)
    os.close(there)
    with open(here, "rb") as told:
        found = [*told.read()]
    end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not end:
        return found
    half = len(bits) // 2
    return [end] if len(bits) == 1 else outcomes(bits[:half]) + outcomes(bits[half:])


ends, every_bit = {}, [None, *chosen]
for begin in range(0, len(every_bit), 32):
    for bit, end in zip(bits := every_bit[begin : begin + 32], outcomes(bits), strict=True):
        assert not end or bit is not None, "the file is whole"
        ends.setdefault(end, []).append(bit)
print({end: len(bits) for end, bits in ends.items()}, {end: bits[:9] for end, bits in ends.items() if end not in (0, 1)})
sys.exit(0 if set(ends) <= {0, 1} and len(ends.get(1, ())) > 50 else 1)
"""


@pytest.mark.by_day(1)
@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("every", [0, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_no_bit_of_a_footer_ends_the_process(form: str, every: int, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, form, str(tmp_path), str(every)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_columns_lie_where_pyarrow_says(tmp_path: Path) -> None:
    file = str(tmp_path / "t.parquet")
    table = pa.table({"a": [1, 2, 3, 4, 5], "s": [{"x": "p", "y": [1.5]}] * 5, "d": pa.array(list("ababa")).dictionary_encode()})
    for options in ({}, {"compression": "zstd"}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"write_page_index": True}):
        pq.write_table(table, file, row_group_size=2, **options)
        meta = pq.read_metadata(file)
        expected = []
        for i in range(meta.num_row_groups):
            leaves = [meta.row_group(i).column(j) for j in range(meta.num_columns)]
            starts = [c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in leaves]
            ends = [start + c.total_compressed_size for start, c in zip(starts, leaves, strict=True)]
            names = [c.path_in_schema.split(".")[0] for c in leaves]
            expected.append([*zip(names, ends, [c.total_uncompressed_size for c in leaves], strict=True)])
        assert [[*map(tuple, leaves)] for leaves in leaves_of(file)] == expected


@pytest.mark.parametrize("length", [2**32 - 1, 10**6, 0])
def test_a_length_beyond_the_file_is_an_error(length: int, tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    content = file.read_bytes()
    file.write_bytes(content[:-8] + length.to_bytes(4, "little") + content[-4:])
    with pytest.raises(ValueError, match="its footer is"):
        leaves_of(str(file))
