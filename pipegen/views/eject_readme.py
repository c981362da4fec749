"""Writes the README of ejected datasets: how to load them, in Python that runs as it is."""

from __future__ import annotations

from typing import Any

from pipegen.terminal import one_line

ABOUT = "datasets.json"
"""The file beside it that says the same for programs."""

_TEXT = """\
# {name}, as graphs

The datasets of spec `{spec_hash}`, compiled by pipegen {pipegen} with TensorFlow {tensorflow}. They need TensorFlow alone, and this folder
may be moved.

```python
import tensorflow as tf

{loaded}

for epoch in range(2):
    for {parts} in {first}.batches(epoch, 0):  # the epoch, and the step to begin with
        ...
```

- The epoch decides the order and what is drawn, so count it up. `{first}.batches(3, 2)` goes on at step 2 of epoch 3.
{moved}- A batch is the same to the bit as in pipegen, on the same version of TensorFlow and the same kind of processor.
- Nothing is cached: each epoch is computed anew. Behind a split that draws nothing, such as validation, `.cache()` keeps what it gives.
- `{about}` says the same for programs: steps, types of a batch, classes.

| split | examples | steps | a batch |
|---|---:|---:|---|
{rows}
"""
_MOVED = '- Files are read below `{root}`. Where the data has moved, say so: `{first}.batches(0, 0, "/new/place")`.\n'
_IN_PLACE = "- The files of records are mapped into memory where they are now. Where they have moved, put a link in their place.\n"


def readme(about: dict[str, Any]) -> str:
    """Returns the text for what the file `datasets.json` says."""
    splits, root = about["splits"], about["root"]
    split = "train" if "train" in splits else next(iter(splits))
    first, classes = _variable(split), ", ".join(map(one_line, about["class_names"]))
    rows = [f"| `{name}` | {one['examples']:,} | {one['steps']:,} | `{_typed(one['element_spec'])}` |" for name, one in splits.items()]
    text = _TEXT.format(
        name=one_line(about["name"] or "pipeline"),
        spec_hash=about["spec_hash"][:12],
        pipegen=about["pipegen"],
        tensorflow=about["tensorflow"],
        loaded="\n".join(f'{_variable(name)} = tf.saved_model.load("{name}")  # a folder beside this file' for name in splits),
        parts=", ".join(("x", "y", "weight")[: len(splits[split]["element_spec"].get("tuple", [None]))]),
        first=first,
        moved=_IN_PLACE if about["in_place"] else _MOVED.format(root=one_line(root), first=first) if root else "",
        about=ABOUT,
        rows="\n".join(rows),
    )
    return text + (f"\nClasses, in the order of their indices: {classes}.\n" if classes else "")


def _variable(split: str) -> str:
    return split if split.isidentifier() else f"split_{''.join(c if c.isalnum() else '_' for c in split)}"


def _typed(spec: dict[str, Any]) -> str:
    """The types of a batch in a line."""
    if "tuple" in spec:
        return f"({', '.join(map(_typed, spec['tuple']))})"
    if "dict" in spec:
        return "{" + ", ".join(f"{name}: {_typed(part)}" for name, part in spec["dict"].items()) + "}"
    return f"{spec['dtype']}[{', '.join('?' if side is None else str(side) for side in spec['shape'])}]"
