"""A fix that writes settings into the `runtime` section of a spec, without other changes to the file.

It inserts text at a place that is known. ruamel.yaml, which writes a file anew, changes the indentation of lists in most specs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from pipegen.diagnostics.diagnostic import Applicability, Edit, Fix, Span, split_lines
from pipegen.spec.compose import flow
from pipegen.spec.load import Loaded
from pipegen.spec.source_map import lookup


def runtime_fix(loaded: Loaded, settings: Mapping[str, Any]) -> Fix | None:
    """The change that writes settings of `runtime` into the file of a spec; `None` without a file, or for an unusual layout.

    Existing values are replaced. Others come first in the section, or in a new one at the end of the file. The caller should
    read the changed spec to check the result.
    """
    file = loaded.file
    if file is None or file not in loaded.texts:
        return None
    spans, edits, missing = loaded.locate.spans, [], {}
    for name, value in settings.items():
        at = spans.values.get(("runtime", name))
        if at is not None and at.file == file:
            edits.append(Edit(at, flow(value)))
        else:
            missing[name] = value
    if missing:
        new = _into_section(loaded, missing, file) or _new_section(loaded.texts[file], missing, file)
        if new is None:
            return None
        edits.append(new)
    said = ", ".join(f"{name}: {flow(value)}" for name, value in settings.items())
    return Fix(f"write `runtime: {{{said}}}`", tuple(edits), Applicability.SAFE)


def _into_section(loaded: Loaded, settings: Mapping[str, Any], file: str) -> Edit | None:
    """Adds settings to the section of the file, in its style."""
    spans = loaded.locate.spans
    whole = spans.values.get(("runtime",))
    if whole is None or whole.file != file or not isinstance(lookup(loaded.raw, ("runtime",)), dict):
        return None
    lines = split_lines(loaded.texts[file])
    if lines[whole.line - 1][whole.column - 1 :].startswith("{"):
        rest = lines[whole.line - 1][whole.column :].lstrip()
        comma = "" if rest.startswith("}") else ", "
        return Edit(_point(file, whole.line, whole.column + 1), ", ".join(_lines(settings)) + comma)
    keys = [span for path, span in spans.keys.items() if path[:1] == ("runtime",) and len(path) == 2 and span.file == file]
    if not keys:
        return None
    first = min(keys, key=lambda span: (span.line, span.column))
    indent = lines[first.line - 1][: first.column - 1]
    if indent.strip():
        return None
    return Edit(_point(file, first.line, first.column), "".join(f"{line}\n{indent}" for line in _lines(settings)))


def _new_section(text: str, settings: Mapping[str, Any], file: str) -> Edit | None:
    """Adds the section at the end of the file."""
    lines = split_lines(text)
    if any(line.startswith(("...", "{")) for line in lines):
        return None
    end = "\r\n" if "\r\n" in text else "\n"
    section = "".join(f"{line}{end}" for line in ("runtime:", *(f"  {line}" for line in _lines(settings))))
    last = lines[-1]
    return Edit(_point(file, len(lines), len(last) + 1), end + section if last else section)


def _lines(settings: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {flow(value)}" for name, value in settings.items()]


def _point(file: str, line: int, column: int) -> Span:
    return Span(file, line, column, line, column)


class Dumper(yaml.SafeDumper):
    """A writer of YAML that quotes all numbers of YAML 1.2: PyYAML follows YAML 1.1, where `1e5` and `-.1` are text."""


_FIRST = list("-+.0123456789")
Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z"), _FIRST)
Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"0o[0-7]+\Z"), _FIRST)


def to_yaml(value: Any, dumper: type[Dumper] = Dumper, **style: Any) -> str:
    """A value as YAML, keys in their order; `style` are arguments of `yaml.dump`."""
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, **style))
