"""Specs that are damaged or meant to do harm end in a finding, quickly.

One process of its own reads them all, each against a limit of time, so that a hang or a crash shows and has a name.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipegen.spec.load import load

HEAD = b"pipegen: 1\nsource: {image_folder: {path: x}}\ntransforms: [{resize: {size: 8}}]\n"
SOURCE = HEAD[: HEAD.index(b"transforms")]
SECONDS = 30
"""No more than a guard against a hang."""
QUICK = 2.5
"""Seconds of processor time that the slowest may take; it takes 0.8."""
CHILD = """
import json, os, signal, sys, time
from pipegen.phases.compilation import inspect
from pipegen.diagnostics.text import render_text

def stop(*_):
    raise BaseException("too slow")

signal.signal(signal.SIGALRM, stop)
for name, path in json.loads(sys.stdin.read()):
    os.chdir(os.path.dirname(path) if os.path.isdir(os.path.dirname(path)) else "/")
    signal.alarm(int(sys.argv[1]))
    began = time.process_time()
    try:
        found = inspect(path)
        shown = render_text(found.diagnostics, sources=found.loaded.texts)
        longest = max([len(line) for line in shown.splitlines()] + [0])
        result = [name, sorted({d.code for d in found.diagnostics}), longest, len(shown)]
    except BaseException as error:
        result = [name, [repr(error)[:2000]], 0, 0]
    took = time.process_time() - began
    signal.alarm(0)
    print(json.dumps([*result, took]), flush=True)
"""


def nested(opening: bytes, closing: bytes, depth: int) -> bytes:
    return HEAD + b"name: " + opening * depth + closing * depth + b"\n"


def laughs(levels: int, width: int) -> bytes:
    lines = [b"a0: &a0 [lol, lol]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b", ".join([b"*a%d" % (i - 1)] * width)) for i in range(1, levels)]
    return b"\n".join(lines) + b"\n" + HEAD


def lines(pattern: bytes, count: int, end: bytes = b"\n") -> bytes:
    return b"".join(pattern % i + end for i in range(count))


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
    "a scalar of 200 kB": (HEAD + b"name: " + b"x" * 200_000 + b"\n", {"PG003"}),
    "a key of 200 kB": (HEAD + b"x" * 200_000 + b": 1\n", {"PG003"}),
    "a key of 900 kB after a question mark": (HEAD + b"? " + b"x" * 60_000 + b"\n: 1\n", {"PG003"}),
    "a key of 60 kB in braces": (HEAD.replace(b"resize", b"r" * 60_000), {"PG003"}),
    "a comment of 10 MB": (HEAD + b"#" + b"x" * 10_000_000 + b"\n", {"PG003"}),
    "spaces for 300 kB": (b" " * 300_000 + HEAD, {"PG002"}),
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
    "a very long line": (HEAD + b"splits: {" + b"a: 1, " * 900 + b"b: 2}\n", {"PG007", "PG102"}),
    "a very long line of repeated keys": (HEAD + b"splits: {" + b"a: 1, " * 1_100 + b"b: 2}\n", {"PG007", "PG003"}),
    "a very long unknown word": (HEAD.replace(b"{resize: {size: 8}}", b"r" * 60_000), {"PG103"}),
    "1,100 unknown sections": (HEAD + lines(b"secton%d: 1", 1_100), {"PG102", "PG003"}),
    "1,100 unknown steps": (SOURCE + b"transforms:\n" + lines(b"- rezise%d", 1_100), {"PG103", "PG003"}),
    "1,100 numbers as keys": (HEAD + lines(b"%d: 1", 1_100), {"PG102", "PG003"}),
    "1,100 numbers as classes": (
        HEAD.replace(b"path: x", b"path: x, classes: [" + b", ".join(b"%d" % i for i in range(1_100)) + b"]"),
        {"PG104", "PG003"},
    ),
    "many params and as many misspelt": (
        HEAD + b"params:\n" + lines(b"  param_%d: {type: int, default: 1}", 600) + b"name: " + lines(b"$wrong_%d", 1_100, b""),
        {"PG106", "PG003"},
    ),
    "300 splits": (
        HEAD + b"splits:\n  parts:\n" + lines(b"    s%d: 1", 300) + b"batch: {remainder: {" + lines(b"t%d: keep,", 300, b"") + b"}}\n",
        {"PG105"},
    ),
    "300 sources": (b"pipegen: 1\nsource:\n  by_split:\n" + lines(b"    s%d: {image_folder: {path: x}}", 300), {"PG105"}),
    "100 splits and 1,000 misspelt": (
        SOURCE
        + b"splits:\n  parts:\n"
        + lines(b"    s%d: 1", 100)
        + b"transforms: [{resize: {size: 8}}, {random_flip: {when: ["
        + lines(b"split%d,", 1_000, b"")
        + b"]}}]\n",
        {"PG220"},
    ),
    "a regular expression that explodes": (HEAD + b"splits: {parts: {train: 0.5}, group: {path: '(a+)+$'}}\n", set()),
    "60,000 dollars": (HEAD + b"name: " + b"$a" * 30_000 + b"\n", {"PG106"}),
    "60,000 open references": (HEAD + b"name: '" + b"${" * 30_000 + b"'\n", {"PG106"}),
}


@dataclass(frozen=True)
class Outcome:
    """What a spec came to: the codes, lints apart, or what was raised; what is shown to people; and the seconds of processor time."""

    codes: list[str]
    longest: int
    shown: int
    took: float
    left: list[str]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The outcome of every case, by name; the case that the process did not outlive is missing, with all after it."""
    root = tmp_path_factory.mktemp("hostile")
    paths = {**{name: root / str(i) / "spec.yaml" for i, name in enumerate(HOSTILE)}, **others(root)}
    for name, (content, _) in HOSTILE.items():
        paths[name].parent.mkdir()
        paths[name].write_bytes(content)
    command = [sys.executable, "-c", CHILD, str(SECONDS)]
    work = json.dumps([[name, str(path)] for name, path in paths.items()])
    try:
        done = subprocess.run(command, input=work, capture_output=True, text=True, timeout=300, check=False)
        said = done.stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
    found: dict[str, Outcome] = {}
    for name, codes, longest, shown, took in map(json.loads, said.splitlines()):
        left = [p.name for p in paths[name].parent.iterdir()] if name in HOSTILE else []
        found[name] = Outcome([code for code in codes if not code.startswith("PG5")], longest, shown, took, left)
    return found


def others(root: Path) -> dict[str, Path]:
    """Paths that are no spec, and a chain of a hundred bases."""
    chain = root / "chain"
    chain.mkdir()
    for i in range(100):
        (chain / f"{i}.yaml").write_text(f"extends: {i + 1}.yaml\n", encoding="utf-8")
    (chain / "100.yaml").write_bytes(HEAD)
    (root / "folder").mkdir()
    (root / "file").write_bytes(HEAD)
    wide = root / "wide"
    wide.mkdir()
    (wide / "spec.yaml").write_bytes(b"extends: base.yaml\n" + lines(b"new%d: 1", 1_100))
    (wide / "base.yaml").write_bytes(HEAD + lines(b"old%d: 1", 1_100))
    return {
        "a folder": root / "folder",
        "no file": root / "no.yaml",
        "below a file": root / "file" / "spec.yaml",
        "a hundred bases": chain / "0.yaml",
        "two wide files": wide / "spec.yaml",
    }


def outcome(name: str, outcomes: dict[str, Outcome]) -> Outcome:
    assert name in outcomes, f"reading ended at the case after {[*outcomes][-1:]}"
    return outcomes[name]


@pytest.mark.parametrize("name", HOSTILE)
def test_it_ends_in_a_finding(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcome(name, outcomes)
    assert set(found.codes) == HOSTILE[name][1]
    assert found.longest < 1000
    assert found.shown < 200_000
    assert found.took < QUICK
    assert found.left == ["spec.yaml"], "nothing was run"


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("a folder", ["PG005"]),
        ("no file", ["PG005"]),
        ("below a file", ["PG005"]),
        ("a hundred bases", []),
        ("two wide files", ["PG003", "PG102"]),
    ],
)
def test_odd_files(name: str, codes: list[str], outcomes: dict[str, Outcome]) -> None:
    assert outcome(name, outcomes).codes == codes


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "spec.yaml"
    path.write_bytes(HEAD)
    monkeypatch.setattr(Path, "open", refuse)  # taking the permission away would not keep out the superuser
    loaded = load(path)
    assert [(d.code, "permission denied" in d.message) for d in loaded.diagnostics] == [("PG005", True)]
