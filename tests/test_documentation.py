"""The documentation is true: its specs are fine, its commands and their options exist, its reference is complete and up to date."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

import pipegen
from docs.generated import every_page
from docs.generated.command_pages import every_command
from docs.generated.python_names import NAMES
from pipegen import compat
from pipegen.cli.reference.ops import all_ops
from pipegen.cli.reference.section_pages import PAGES, keys_named, source_text
from pipegen.diagnostics.catalog import CODES
from pipegen.diagnostics.diagnostic import Severity
from pipegen.diagnostics.text import render_text
from pipegen.migrate.findings import RULES
from pipegen.ops.model import Model, field_docs
from pipegen.phases.compilation import inspect
from pipegen.spec.models import PipelineSpec

ROOT = Path(__file__).parents[1]
GENERATED_ELSEWHERE = {"docs/reference/findings.md", "docs/reference/migration-findings.md", "docs/imagedatagenerator.md"}
"""Pages whose examples have tests of their own; many are wrong on purpose."""
PAGE_NAMES = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in p.parts]
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in [*PAGE_NAMES, "README.md"]}
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"\n]+)\")? *\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[tuple[str, str]]:
    """The title and the content of every block in a language."""
    return [(title, content) for kind, title, content in FENCE.findall(text) if kind == language]


@pytest.mark.parametrize("name", [n for n in TEXTS if n not in GENERATED_ELSEWHERE and blocks(TEXTS[n], "yaml")])
def test_every_spec_is_fine(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASK_DATA", "photos/")
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "shared" / "team-specs" / "src"))  # as if installed
    found = blocks(TEXTS[name], "yaml")
    for title, content in found:
        if title:
            Path(title).parent.mkdir(parents=True, exist_ok=True)
            Path(title).write_text(content, encoding="utf-8")
    for title, content in found:
        value = yaml.safe_load(content)
        assert value is None or "pipegen" in value or "extends" in value, f"a whole spec, or comments alone: {content}"
        if value is not None:
            result = inspect(title or "example.pipegen.yaml", text=content)
            remarks = [d for d in result.diagnostics.items if d.severity is not Severity.INFO]
            assert not remarks, render_text(result.diagnostics.sorted(), sources=result.loaded.texts)


def options_of(command: object) -> set[str]:
    import inspect as signatures
    from typing import get_args, get_type_hints

    hints = get_type_hints(command, include_extras=True)
    found = {"--help"}
    for parameter in signatures.signature(command).parameters.values():  # type: ignore[arg-type]
        info = (*get_args(hints[parameter.name]), None, None)[1]
        names = [n for n in (getattr(info, "default", None), *(getattr(info, "param_decls", None) or ())) if isinstance(n, str)]
        found |= set(names) or {f"--{parameter.name.replace('_', '-')}"}
    return found


def command_lines(text: str) -> list[str]:
    """Lines of console blocks, and commands in running text."""
    lines = [line[2:].partition("  #")[0] for line in text.splitlines() if line.startswith("$ pipegen ")]
    return lines + re.findall(r"`(pipegen [a-z][^`]*)`", text)


@pytest.mark.parametrize("name", [n for n in TEXTS if command_lines(TEXTS[n])])
def test_every_command_and_option_exists(name: str) -> None:
    known = dict(every_command())
    groups = {n.partition(" ")[0] for n in known if " " in n}
    for line in command_lines(TEXTS[name]):
        words = shlex.split(line.replace("'", ""))[1:]
        words = words[: words.index("--")] if "--" in words else words
        command = " ".join(words[:2]) if words[0] in groups else words[0]
        if words in (["COMMAND", "--help"], ["--help"]) or (words[0] in groups and len(words) == 1):
            continue
        assert command in known, line
        options = {word.partition("=")[0] for word in words[1:] if word.startswith("--")}
        assert options <= options_of(known[command]), line


@pytest.mark.parametrize("name", [n for n in TEXTS if blocks(TEXTS[n], "python") and n not in GENERATED_ELSEWHERE])
def test_python_parses(name: str) -> None:
    for _, code in blocks(TEXTS[name], "python"):
        compile(code, name, "exec")


def test_generated_pages_are_up_to_date() -> None:
    for path, text in every_page().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: run `python -m docs.generated`"


def test_every_section_has_a_page_with_every_key() -> None:
    alone = {"pipegen", "name", "description"}
    assert {*PipelineSpec.model_fields, "extends"} - alone <= set(PAGES)
    listed = {section: re.findall(r"^- \*\*\[?([\w.]+)", TEXTS[f"docs/reference/{section}.md"], re.MULTILINE) for section in PAGES}
    assert set(listed["spec"]) == {"extends", *PipelineSpec.model_fields}
    for section, keys in listed.items():
        assert section == "source" or keys, section
        info = PipelineSpec.model_fields.get(section)
        model = getattr(info, "annotation", None)
        if isinstance(model, type) and issubclass(model, Model) and section != "source":
            assert set(field_docs(model)) == set(model.model_fields)
            assert set(model.model_fields) <= set(keys), section
    assert {"cache.disk", "shard.index", "shard.count", "prefetch.device"} <= set(listed["runtime"]), "nested keys, too"
    assert {"decode.skip", "decode.skip.max_fraction", "decode.skip.report"} <= set(listed["errors"])
    assert all(f"[`{source}`]" in TEXTS["docs/reference/source.md"] for source, op in all_ops().items() if not hasattr(op, "random"))


def test_every_key_says_what_it_accepts_and_means() -> None:
    markers = [m for section in PAGES for m in re.findall(r"<!-- keys: (.+) -->", source_text(section))]
    assert len(markers) >= len(PAGES) - 1
    for key in (key for marker in markers for key in keys_named(marker)):
        assert key.text, key.path
        assert "something else" not in key.accepts, key.path
        assert "{" not in key.default or key.default == "default {}", key.path


def test_every_finding_and_every_public_name_is_there() -> None:
    for code in CODES.values():
        assert f"\n### {code.code} {code.name}\n" in TEXTS["docs/reference/findings.md"]
        assert f"(#{code.code.lower()}-{code.name})" in TEXTS["docs/reference/findings.md"]
    for rule in RULES.values():
        assert f"\n### {rule.code} {rule.name}\n" in TEXTS["docs/reference/migration-findings.md"]
    for page, module in (("python", pipegen), ("compat", compat)):
        documented = set(re.findall(r"^### (\w+)$", TEXTS[f"docs/reference/{page}.md"], re.MULTILINE))
        assert {n for n in module.__all__ if n != "__version__"} <= documented
    for name, _ in every_command():
        assert f"\n## pipegen {name}\n" in TEXTS["docs/reference/commands.md"]


@pytest.mark.parametrize("page", NAMES)
def test_python_s_names_read_well_in_the_checkout(page: str) -> None:
    """The page is text, with what each argument means, and not a mark that a site fills in."""
    text = TEXTS[f"docs/reference/{page}.md"]
    assert ":::" not in text
    assert not re.search(r"^(Args|Returns|Raises|Attributes):", text, re.MULTILINE), "sections of docstrings are lists"
    sections = re.split(r"^#{3,4} (.+)$", text.partition("<!--")[0], flags=re.MULTILINE)
    told = {
        name: re.sub(r"```.*?```", "", body, flags=re.DOTALL).strip() for name, body in zip(sections[1::2], sections[2::2], strict=True)
    }
    assert [name for name, body in told.items() if not body] == []
    if page == "python":
        assert {f"Pipeline.{name}" for name in dir(pipegen.Pipeline) if not name.startswith("_")} <= set(told)


def test_the_site_has_every_page_and_fetches_nothing() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry
        return [page for inner in values for page in pages(inner)]  # type: ignore[attr-defined]

    assert sorted(f"docs/{page}" for page in pages(site["nav"])) == PAGE_NAMES
    assert site["theme"]["font"] is False
    assert not [v for v in (*site["extra_css"], *site.get("extra_javascript", ())) if "//" in v]


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_about_the_code_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = [name for name in re.findall(r"`([\w./-]+)`", text) if name.endswith((".py", "/"))]
    assert len(named) > 10
    for name in named:
        assert any((ROOT / folder / name).exists() for folder in ("", "pipegen")), name
    if page == "docs/architecture.md":
        folders = {folder.name for folder in (ROOT / "pipegen").iterdir() if (folder / "__init__.py").exists()}
        assert folders <= {name.strip("/") for name in named}, "each folder has a paragraph"
        assert len(text.splitlines()) <= 120
