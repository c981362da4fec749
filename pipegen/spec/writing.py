"""Writes values as YAML 1.2, as `scalars.py` reads it. Imported where something is written, since PyYAML takes a while."""

from __future__ import annotations

import re
from typing import Any

import yaml


class Dumper(yaml.SafeDumper):
    """Writes YAML, and quotes text that YAML 1.2 reads as a number: PyYAML follows YAML 1.1, where `1e5` and `-.1` are text."""


_FIRST = list("-+.0123456789")
Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z"), _FIRST)
Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"0o[0-7]+\Z"), _FIRST)


def to_yaml(value: Any, dumper: type[Dumper] = Dumper, **style: Any) -> str:
    """Returns a value as YAML, with its keys in their order; `style` is what `yaml.dump` takes."""
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, **style))
