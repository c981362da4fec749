"""Golden cases: Markdown files whose fenced blocks are inputs and expected outputs, so that they read as documentation.

A block's info string names it: a kind, then words (`plan before`) and `key=value` settings (`plan built split=train`).
`yaml` starts a case; `yaml NAME` is a further input of it: a file that stands beside.
`--update-golden` writes the outputs anew into the same place; prose and inputs stay as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FENCE = re.compile(r"^```([^\n`]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    info: str
    body: str
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The info string without its settings."""
        return " ".join(w for w in self.info.split() if "=" not in w)


@dataclass(frozen=True)
class Case:
    """The blocks from one `yaml` block to the next, under the heading before them."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def source(self) -> Block:
        """The block that starts the case."""
        return self.blocks[0]


def cases(text: str) -> list[Case]:
    """The cases of a file, in order."""
    found: list[tuple[str, list[Block]]] = []
    for match in _FENCE.finditer(text):
        info, body = match[1].strip(), match[2]
        block = Block(info, body, dict(w.split("=", 1) for w in info.split() if "=" in w))
        if block.name == "yaml":
            headings = _HEADING.findall(text[: match.start()])
            found.append((headings[-1] if headings else "", [block]))
        elif found:
            found[-1][1].append(block)
    return [Case(title, tuple(blocks)) for title, blocks in found]


def check(path: Path, produce: Callable[[Case, Block], str], *, update: bool) -> None:
    """Compare every output block of a file with what `produce` gives; with `update`, write it instead."""
    text = path.read_text(encoding="utf-8")
    everything = cases(text)
    assert everything, f"{path.name} holds no case"
    wanted = iter([produce(case, block) for case in everything for block in case.blocks if block.info.split()[0] != "yaml"])

    def renewed(match: re.Match[str]) -> str:
        if match[1].split()[0] == "yaml":
            return match[0]
        return f"```{match[1]}\n{next(wanted).rstrip()}\n```"

    fresh = _FENCE.sub(renewed, text)
    if update:
        path.write_text(fresh, encoding="utf-8")
    assert fresh == text or update, f"{path.name} is out of date; look at the difference and run pytest with --update-golden\n{fresh}"
