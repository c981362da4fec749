"""Specs that are damaged or meant to do harm end in a finding, quickly. Each runs in a process of its own, so that a hang or a crash shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = b"pipegen: 1\nsource: {image_folder: {path: x}}\ntransforms: [{resize: {size: 8}}]\n"
CHILD = """
import json, sys
from pipegen.compilation import inspect
from pipegen.diagnostics.text import render_text

found = inspect(sys.argv[1])
shown = render_text(found.diagnostics, sources=found.loaded.texts)
longest = max([len(line) for line in shown.splitlines()] + [0])
print(json.dumps([[d.code for d in found.diagnostics], longest, len(shown)]))
"""


def nested(opening: bytes, closing: bytes, depth: int) -> bytes:
    return HEAD + b"name: " + opening * depth + closing * depth + b"\n"


def laughs(levels: int, width: int) -> bytes:
    lines = [b"a0: &a0 [lol, lol]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b", ".join([b"*a%d" % (i - 1)] * width)) for i in range(1, levels)]
    return b"\n".join(lines) + b"\n" + HEAD


HOSTILE: dict[str, tuple[bytes, set[str]]] = {
    "billion laughs": (laughs(9, 9), {"PG003"}),
    "few aliases, much text": (laughs(32, 2), {"PG003"}),
    "an alias inside itself": (HEAD + b"params: &p {a: *p}\n", {"PG003"}),
    "merge keys that multiply": (b"a: &a {x: 1}\nb: &b {<<: [*a, *a]}\nc: {<<: [*b, *b]}\n" + HEAD, {"PG009", "PG102"}),
    "10,000 lists deep": (nested(b"[", b"]", 10_000), {"PG003"}),
    "10,000 maps deep": (nested(b"{a: ", b"}", 10_000), {"PG003"}),
    "10,000 blocks deep": (HEAD + b"name:\n" + b"".join(b" " * i + b"a:\n" for i in range(1, 1_200)), {"PG003"}),
    "10,000 dashes": (HEAD + b"name:\n  " + b"- " * 10_000 + b"x\n", {"PG003"}),
    "10,000 brackets never closed": (HEAD + b"name: " + b"[" * 10_000, {"PG003"}),
    "10,000 question marks": (b"? " * 10_000 + b"a\n", {"PG003"}),
    "a scalar of 10 MB": (HEAD + b"name: " + b"x" * 10_000_000 + b"\n", {"PG003"}),
    "a scalar of 900 kB": (HEAD + b"name: " + b"x" * 900_000 + b"\n", {"PG003"}),
    "a key of 900 kB": (HEAD + b"x" * 900_000 + b": 1\n", {"PG003"}),
    "a comment of 10 MB": (HEAD + b"#" + b"x" * 10_000_000 + b"\n", {"PG003"}),
    "spaces for 1 MB": (b" " * 1_000_000 + HEAD, {"PG002"}),
    "30,000 steps": (HEAD[: HEAD.index(b"transforms")] + b"transforms:\n" + b"- random_flip\n" * 30_000, {"PG003"}),
    "a number of 60,000 digits": (HEAD + b"seed: " + b"9" * 60_000 + b"\n", {"PG104"}),
    "a number of 300 digits": (HEAD + b"seed: " + b"9" * 300 + b"\n", {"PG105"}),
    "a hexadecimal number of 300 digits": (HEAD + b"seed: 0x" + b"f" * 300 + b"\n", {"PG105"}),
    "1e999": (HEAD + b"transforms: [{random_rotation: {degrees: 1e999}}]\n", {"PG007"}),
    "1e999 degrees": (HEAD.replace(b"resize: {size: 8}", b"random_rotation: {degrees: 1e999}"), {"PG105"}),
    "not a number": (HEAD.replace(b"resize: {size: 8}", b"random_rotation: {degrees: .nan}"), {"PG105"}),
    "infinite batches": (HEAD + b"batch: {size: .inf}\n", {"PG105"}),
    "infinite fractions": (HEAD + b"splits: {parts: {train: -.inf}}\n", {"PG105"}),
    "a Python object": (HEAD + b"name: !!python/object/apply:os.system ['touch ran']\n", {"PG004", "PG104"}),
    "a Python name": (HEAD + b"name: !!python/name:os.system\n", {"PG004"}),
    "a binary tag": (HEAD + b"name: !!binary aGk=\n", {"PG004"}),
    "a tag directive": (b"%TAG ! tag:yaml.org,2002:python/\n---\n" + HEAD + b"name: !object:os.system x\n", {"PG004"}),
    "not UTF-8": (HEAD + b"name: caf\xe9\n", {"PG001"}),
    "UTF-16": ((HEAD + b"name: caf\n").decode().encode("utf-16"), {"PG001"}),
    "a JPEG": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(range(256)) * 40, {"PG001"}),
    "a PNG": (b"\x89PNG\r\n\x1a\n" + bytes(1000), {"PG001"}),
    "NUL bytes": (HEAD + b"name: a\x00b\n", {"PG001"}),
    "nothing but NUL bytes": (bytes(100_000), {"PG001"}),
    "a bell": (HEAD + b"name: a\x07b\n", {"PG001"}),
    "half a surrogate pair": (HEAD + b'name: "\\ud800"\n', {"PG001"}),
    "an empty file": (b"", {"PG006"}),
    "blank lines": (b"\n\n   \n", {"PG006"}),
    "a comment and nothing else": (b"# nothing yet\n", {"PG006"}),
    "a list": (b"- 1\n- 2\n", {"PG006"}),
    "a word": (b"flowers\n", {"PG006"}),
    "a very long line": (HEAD + b"splits: {" + b"a: 1, " * 15_000 + b"b: 2}\n", {"PG007", "PG102"}),
    "a very long unknown word": (HEAD.replace(b"resize", b"r" * 60_000), {"PG103"}),
    "a regular expression that explodes": (HEAD + b"splits: {parts: {train: 0.5}, group: {path: '(a+)+$'}}\n", set()),
    "60,000 dollars": (HEAD + b"name: " + b"$a" * 30_000 + b"\n", {"PG106"}),
    "60,000 open references": (HEAD + b"name: '" + b"${" * 30_000 + b"'\n", {"PG106"}),
}


@pytest.fixture(scope="module")
def run() -> Callable[[Path], list[str]]:
    """The codes of a spec, found in a process of its own; what is shown to people stays readable."""

    def codes(path: Path) -> list[str]:
        command = [sys.executable, "-c", CHILD, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=path.parent, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found, longest, shown = json.loads(done.stdout)
        assert longest < 1000
        assert shown < 200_000
        return found

    return codes


@pytest.mark.parametrize("name", HOSTILE)
def test_it_ends_in_a_finding(name: str, run: Callable[[Path], list[str]], tmp_path: Path) -> None:
    content, expected = HOSTILE[name]
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    found = [code for code in run(path) if not code.startswith("PG5")]
    assert set(found) == expected
    assert [p.name for p in tmp_path.iterdir()] == ["spec.yaml"], "nothing was run"


def test_a_folder_is_no_spec(run: Callable[[Path], list[str]], tmp_path: Path) -> None:
    assert run(tmp_path) == ["PG005"]


def test_a_file_that_is_not_there(run: Callable[[Path], list[str]], tmp_path: Path) -> None:
    assert run(tmp_path / "no.yaml") == ["PG005"]


def test_a_file_that_may_not_be_read(run: Callable[[Path], list[str]], tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(HEAD)
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        assert run(path) == ["PG005"]
    else:
        pytest.skip("this user may read every file")


def test_a_path_below_a_file(run: Callable[[Path], list[str]], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(HEAD)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "file" / "spec.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert json.loads(done.stdout)[0] == ["PG005"], done.stderr


def test_a_chain_of_a_hundred_bases(run: Callable[[Path], list[str]], tmp_path: Path) -> None:
    for i in range(100):
        (tmp_path / f"{i}.yaml").write_text(f"extends: {i + 1}.yaml\n", encoding="utf-8")
    (tmp_path / "100.yaml").write_bytes(HEAD)
    assert [code for code in run(tmp_path / "0.yaml") if not code.startswith("PG5")] == []
