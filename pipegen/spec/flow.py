"""Plain values on one line of YAML."""

from __future__ import annotations

import json
from typing import Any

from pipegen.spec.scalars import flow_scalar


def flow(value: Any) -> str:
    """Returns a value as it can stand anywhere in a spec: `{size: [224, 224]}`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(inner)}" if inner != {} else f"{key}: {{}}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return flow_scalar(value)
    if isinstance(value, float) and "e" in repr(value):
        return f"{value:.12f}".rstrip("0") if abs(value) < 1 else repr(value)
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
