"""Nothing that a terminal would obey reaches it, whatever files, specs and messages hold; and `show` prints a spec all the same."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
from pathlib import Path

import pytest
from cli_helpers import ROOT, Cli

from pipegen import load
from pipegen.errors import DataError, SpecError
from pipegen.spec.compose import double_quoted, flow_scalar, resolve
from pipegen.terminal import json_text, log, one_line, visible

EVIL = "e\x1b]0;owned\x07\x1b[8m\x9b2J\u202e\x7f\u2028\u200b\U000e0041 é日\r\nseed: 9 # 'x'\t\"y\" \\n"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]")
WRITES = re.compile(r"(print|typer\.s?echo|typer\.secho|sys\.stdout\.write|sys\.stderr\.write)\(")
WRITES_PERHAPS = re.compile(r"\b(print|s?echo|stdout|stderr)\b")
"""What a file has that calls one of them, in whatever layout."""
WRITERS = {"terminal.py", "cli/app.py", "cli/failures.py", "cli/common.py", "ops/sources/stores/lmdb_keys.py"}
"""The only files that write to standard streams: the writers, the newline of Ctrl-C, and findings, which come clean; and a
process of ours that tells the one that waits for it why it failed."""


def evil_spec(folder: Path, *, wrong: bool = False) -> Path:
    file = folder / "spec\x1b[1m\u202e.pipegen.yaml"
    text = double_quoted(EVIL)
    file.write_text(
        "pipegen: 1\n"
        f"name: {text}\ndescription: $p\n"
        f"params: {{p: {{type: str, default: {text}}}}}\n"
        f"source: {{arrays: {{path: {text}, features: {{image: {{kind: image, key: {text}, size: 8, channels: 3}}}}}}}}\n"
        "splits: {parts: {train: 0.5, validation: 0.5}}\n"
        "transforms: [random_flip]\n"
        "output: {x: image, y: null}\n" + (f"{text}: {text}\nseed: {text}\n" if wrong else "") + f"runtime: {{cache: {{disk: {text}}}}}\n",
        encoding="utf-8",
    )
    return file


READING = ["show", "show --format json", "explain", "explain --format json", "validate"]
WRONG = [*READING, *(f"validate --format {f}" for f in ("json", "github", "sarif")), "preview", "export out", "bench", "fit", "cache ls"]


@pytest.mark.parametrize(("command", "wrong"), [*((c, False) for c in READING), *((c, True) for c in WRONG)])
def test_no_command_prints_what_a_terminal_obeys(cli: Cli, tmp_path: Path, command: str, wrong: bool) -> None:
    file = evil_spec(tmp_path, wrong=wrong)
    name, *options = command.split(" ")
    if name == "cache":
        options, file = options[:1], tmp_path / EVIL.replace("/", "")[:60]
        file.mkdir()
    sets = [] if name in ("cache", "validate") else ["--set", "p=x\x1b[31m"]
    result = cli(name, *([file.name, *options] if name == "export" else [*options, file.name]), *sets)
    assert "Traceback" not in result.output
    assert not OBEYED.findall(result.output)
    assert "owned" in result.output or not wrong


def test_what_show_prints_loads_to_the_same_spec(cli: Cli, tmp_path: Path) -> None:
    file = evil_spec(tmp_path)
    shown = cli("show", file.name)
    assert shown.exit_code == 0, shown.output
    (tmp_path / "again.pipegen.yaml").write_text(shown.output, encoding="utf-8")
    again = cli("show", "again.pipegen.yaml", "--format", "json")
    first = cli("show", file.name, "--format", "json")
    assert json.loads(again.output)["spec"] == json.loads(first.output)["spec"]
    assert json.loads(first.output)["spec"]["name"] == EVIL
    assert json.loads(again.output)["spec_hash"] == json.loads(first.output)["spec_hash"]


@pytest.mark.parametrize("text", [EVIL, "\ufdd0", "\uffff", "a\x85b", "😀\x1b", "null", "1", "a: b", "'", "\\", ""])
def test_any_text_can_be_written_into_a_spec(text: str) -> None:
    spec = load({"pipegen": 1, "name": text, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 8}}]})
    assert spec.model.name == text
    for written in (flow_scalar(text.replace("$", "")), double_quoted(text)):
        assert not OBEYED.search(written)
        from pipegen.diagnostics.diagnostic import Diagnostics
        from pipegen.spec.compose import compose

        tree = compose(f"a: [{written}]\n{written}: 1\n" if len(text) < 900 else "", "x", Diagnostics())
        assert tree is not None
        assert tree.value["a"] == [text]
        assert text in tree.value
    assert resolve("null") is None


def test_names_of_files_that_are_no_utf8(cli: Cli, tmp_path: Path) -> None:
    folder = os.fsdecode(b"caf\xe9\x1b[2J")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "a.pipegen.yaml").write_text(
        "pipegen: 1\nsource: {image_folder: {path: x}}\ntransforms: [{resize: {size: 8}}]\nsed: 1\n"
    )
    for command in ("validate", "show", "explain"):
        result = cli(command, f"{folder}/a.pipegen.yaml")
        assert "Traceback" not in result.output
        assert "internal" not in result.output
        assert not OBEYED.findall(result.output)


def test_what_is_raised_and_logged_is_visible(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not OBEYED.findall(str(DataError(f"{EVIL}\nhelp")))
    with pytest.raises(SpecError) as raised:
        load(evil_spec(tmp_path, wrong=True).rename(tmp_path / f"{EVIL[:20].replace('/', '')}.yaml"), params={"q": EVIL})
    assert not OBEYED.findall(str(raised.value) + repr(raised.value))
    spec = load({"pipegen": 1, "name": EVIL, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 8}}]})
    assert not OBEYED.findall(repr(spec))
    with caplog.at_level(logging.WARNING, "pipegen"):
        log.warning("%s of %d", EVIL, 3)
    assert "of 3" in caplog.text
    assert not OBEYED.findall(caplog.text)


def test_lines_and_tabs_stay() -> None:
    assert visible("a\tb\r\nc\x1b") == "a\tb\nc␛"
    assert one_line("a\tb\r\nc\x1b\u202e") == "a b c␛\ufffd"
    assert json.loads(json_text({"ü\x9b": "\x1b\u202e日\n"})) == {"ü\x9b": "\x1b\u202e日\n"}
    assert "日" in json_text("日")


def test_one_place_writes_to_the_terminal() -> None:
    for file in (ROOT / "pipegen").rglob("*.py"):
        name = file.relative_to(ROOT / "pipegen").as_posix()
        if name in WRITERS:
            continue
        text = file.read_text(encoding="utf-8")
        calls = ast.walk(ast.parse(text)) if WRITES_PERHAPS.search(text) else ()
        for call in (node for node in calls if isinstance(node, ast.Call)):
            assert not WRITES.match(f"{ast.unparse(call.func)}("), f"{name}:{call.lineno}"
        others = text.replace('logging.getLogger("tf2onnx")', "")  # that library's own, which is hushed
        assert "logging.getLogger" not in others or name == "terminal.py", name
