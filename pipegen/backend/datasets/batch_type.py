"""Says what the batches of a dataset hold, in words and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.notebook import box, table

if TYPE_CHECKING:
    from collections.abc import Iterator


def describe(spec: Any) -> str:
    """Describes tensor specs in words, nested as a batch is: `{picture: float32 64×224×224×3}`."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in spec.items()) + "}"
    if isinstance(spec, tuple):
        return "(" + ", ".join(describe(v) for v in spec) + ")"
    dims = "×".join("?" if d is None else str(d) for d in spec.shape)
    return f"{spec.dtype.name} {dims}"


def parts(spec: Any) -> list[tuple[str, Any]]:
    """Names the parts of a batch: `x`, `y` and `sample_weight`."""
    given = spec if isinstance(spec, tuple) else (spec,)
    return list(zip(("x", "y", "sample_weight"), given, strict=False))


def leaves(name: str, part: Any) -> Iterator[tuple[str, str]]:
    """Yields a row for each tensor of a part, named as a model's inputs and outputs are."""
    if isinstance(part, dict):
        for key, inner in part.items():
            yield from leaves(f"{name}: {key}", inner)
    elif isinstance(part, tuple):
        for number, inner in enumerate(part):
            yield from leaves(f"{name}[{number}]", inner)
    else:
        yield name, describe(part)


def batches_html(title: str, spec: Any) -> str:
    """Returns a dataset as HTML for notebooks: what its batches hold."""
    return box(title, "", table((), [row for name, part in parts(spec) for row in leaves(name, part)]))
