"""What a spec names besides itself is read only where it is a file, up to a size, and shown only where it is a spec."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spec_helpers import codes, only, read

from pipegen.data.collect import collect
from pipegen.diagnostics.machine_readable import render_github, render_json, render_sarif
from pipegen.diagnostics.text import render_text
from pipegen.errors import SpecError
from pipegen.phases.compilation import inspect
from pipegen.spec.load import load

pytestmark = pytest.mark.timeout(60)

SPEC = "pipegen: 1\nsource: {image_folder: {path: photos}}\n"
SECRETS = {
    "passwd": "root:x:0:0:hunter2:/root:/bin/bash\nhunter2:x:1:1::/:/bin/sh\n",
    "a YAML map": "password: hunter2\nhunter2: {seed: hunter2}\n",
    "a map with a section's name": "name: hunter2\nseed: hunter2\ntoken: hunter2\n",
    "a tab": "\thunter2: x\n",
    "a list": "- hunter2\n",
    "an open quote": 'key: "hunter2\n',
    "an anchor": "a: *hunter2\n",
    "a tag": "a: !hunter2 b\n",
    "twice": "hunter2: 1\nhunter2: 2\n",
    "JSON": '{"private_key": "hunter2", "seed": "hunter2"}',
    "INI": "[default]\nkey = hunter2\n",
    "binary": "hunter2\0hunter2",
    "latin": "hunter2\udce9\n",
    "a control character": "hunter2: \x07hunter2\n",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "a").mkdir(parents=True)
    (tmp_path / "photos" / "a" / "1.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    return tmp_path


def strange(here: Path, kind: str) -> Path:
    """Something that is no regular file."""
    path = here / "strange"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("strange")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link to a pipe":
        os.mkfifo(here / "pipe")
        path.symlink_to("pipe")
    else:
        path = Path(kind)
    return path


KINDS = [
    "pipe",
    "socket",
    "folder",
    "link to a pipe",
    "/dev/zero",
    "/dev/tty",
    "/dev/null",
    "/proc/self/environ",
    "/proc/cpuinfo",
    "/proc/kmsg",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_base_is_a_regular_file(here: Path, kind: str) -> None:
    path = strange(here, kind)
    (here / "spec.yaml").write_text(f"extends: {path}\n{SPEC}")
    assert "PG110" in codes(load("spec.yaml", env={}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_of_excluded_files_is_a_regular_file(here: Path, kind: str) -> None:
    path = strange(here, kind)
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "errors": {"exclude": str(path)}}, env={})
    assert loaded.spec is not None
    assert [d.code for d in collect(loaded.spec).diagnostics if d.code != "PG511"] == ["PG413"]


def everything_said(file: str, text: bytes | None = None) -> str:
    found = inspect(file, text=text)
    findings = found.diagnostics.sorted()
    return "".join(
        (
            render_text(findings, sources=found.loaded.texts),
            str(SpecError(findings)),
            render_json(findings),
            render_github(findings),
            render_sarif(findings),
        )
    )


@pytest.mark.parametrize("way", ["extends", "link", "chain"])
@pytest.mark.parametrize("name", SECRETS)
def test_nothing_of_a_file_that_is_no_spec_is_shown(here: Path, name: str, way: str) -> None:
    (here / "secret").write_text(SECRETS[name], encoding="utf-8", errors="surrogateescape")
    if way == "link":
        (here / "mine.pipegen.yaml").symlink_to("secret")
    else:
        (here / "middle.yaml").write_text("extends: secret\n")
        (here / "mine.pipegen.yaml").write_text(f"extends: {'secret' if way == 'extends' else 'middle.yaml'}\n{SPEC}")
    said = everything_said("mine.pipegen.yaml")
    assert "PG110" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("base", ["pipegen: 1\nseed: mistake\n", "seed: mistake\n", "pipegen: 1\nseed: [mistake\n"])
@pytest.mark.parametrize("way", ["extends", "link"])
def test_the_lines_of_a_base_that_is_a_spec_are_shown(here: Path, base: str, way: str) -> None:
    (here / "base.yaml").write_text(base)
    (here / "mine.yaml").symlink_to("base.yaml") if way == "link" else (here / "mine.yaml").write_text(f"extends: base.yaml\n{SPEC}")
    assert "mistake" in everything_said("mine.yaml")


NO_TEXT = {
    "a program": b"\x7fELF\x02\x01\0hunter2",
    "a photograph": b"\xff\xd8\xff\xe0\x10JFIF hunter2\n",
    "a text in Latin 1": b"hunter2: caf\xe9\n",
    "control characters": b"hunter2 \x01\x02\n",
    "too large": b"# hunter2 " + b"a" * 2**20,
}


@pytest.mark.parametrize("stdin", [False, True], ids=["file", "stdin"])
@pytest.mark.parametrize("name", NO_TEXT)
def test_nothing_is_shown_of_a_spec_that_is_no_text(here: Path, name: str, stdin: bool) -> None:
    (here / "photo.jpg").write_bytes(NO_TEXT[name])
    said = everything_said("-" if stdin else "photo.jpg", NO_TEXT[name] if stdin else None)
    assert ("PG003" if name == "too large" else "PG001") in said
    assert "hunter2" not in said
    assert ("this is a binary file" in said) == (name in ("a program", "a photograph"))


@pytest.mark.parametrize("content", [b"pipegen: 1\nname: mistake \xe9\n", b"pipegen: 1\nname: mistake \x01\n"])
def test_the_line_of_a_wrong_character_in_a_spec_is_shown(here: Path, content: bytes) -> None:
    (here / "mine.yaml").write_bytes(content)
    assert "mistake" in everything_said("mine.yaml")


@pytest.mark.parametrize("content", ["root:x:0:0:hunter2\nhunter2.x\n", "hunter2\n", "hunter2\x1b]0;x\x07.jpg\n"])
def test_the_lines_of_a_file_that_is_no_list_are_not_shown(here: Path, content: str) -> None:
    (here / "secret").write_text(content)
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "errors": {"exclude": "secret"}}, env={})
    assert loaded.spec is not None
    (found,) = (d for d in collect(loaded.spec).diagnostics if d.code == "PG413")
    assert "hunter2" not in found.message + str(found.help)
    assert "line 1" in str(found.help)


def test_a_misspelt_entry_of_a_list_is_shown(here: Path) -> None:
    (here / "list").write_text("a/2.jpg\n")
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "errors": {"exclude": "list"}}, env={})
    assert loaded.spec is not None
    assert any("a/2.jpg" in d.message for d in collect(loaded.spec).diagnostics)


def test_the_spec_itself_may_come_from_a_pipe(here: Path) -> None:
    command = f"cat spec.yaml | {sys.executable} -m pipegen validate /dev/stdin"
    (here / "spec.yaml").write_text(SPEC + "transforms: [{resize: {size: 8}}]\n")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_spec_itself_is_read_up_to_a_size() -> None:
    assert only(load("/dev/zero", env={})).code == "PG003"


def test_specs_found_in_a_folder_are_regular_files(here: Path) -> None:
    from pipegen.cli.common import spec_files

    (here / "a.pipegen.yaml").write_text(SPEC)
    (here / "c.pipegen.yaml").symlink_to("gone")
    os.mkfifo(here / "b.pipegen.yaml")
    assert spec_files([]) == ["a.pipegen.yaml", "c.pipegen.yaml"]


LONG = "x" * 60_000


@pytest.mark.parametrize(
    "use",
    ["transforms: [" + "{random_flip: {id: $p}}, " * 5_000 + "]", "name: '" + "$p" * 10_000 + "'", "name: '" + "${p}" * 16_000 + "'"],
    ids=["in many places", "many times in one text", "in braces"],
)
def test_the_limit_on_sizes_holds_for_what_params_put_in(use: str) -> None:
    started = time.process_time()
    loaded = read(f"params: {{p: {{type: str, default: {LONG}}}}}\n{use}\n")
    assert "PG003" in codes(loaded)
    assert loaded.raw == {}
    assert time.process_time() - started < 10


def test_the_limit_on_sizes_holds_for_a_param_from_outside() -> None:
    loaded = read("params: {p: {type: str}}\nname: $p\n", params={"p": LONG * 2})
    assert "PG003" in codes(loaded)


def test_the_limit_on_sizes_holds_for_aliases() -> None:
    loaded = read(f"name: &a {LONG}\nb: &b [*a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b]\n")
    assert codes(loaded) == ["PG003"]


def test_ordinary_params_are_far_from_the_limit() -> None:
    assert codes(read("params: {p: {type: str, default: abc}}\nname: $p-$p\ntransforms: [{resize: {size: 8}}]\n")) == []


def test_a_chain_of_bases_has_an_end(here: Path) -> None:
    for i in range(200):
        (here / f"{i}.yaml").write_text(f"extends: {i + 1}.yaml\n")
    assert "PG003" in codes(load("0.yaml", env={}))
