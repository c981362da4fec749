"""Says how often the examples of a sampled split are seen: the rarest and the commonest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipegen.data.buckets import bucket_line
from pipegen.data.mix.manifest import MixedManifest
from pipegen.data.sampling.choice import epochs_of
from pipegen.data.sampling.epochs import Easiest
from pipegen.data.windows import window_bytes
from pipegen.ops.sources.listing.wording import count
from pipegen.plan.render import order_text
from pipegen.spec.joined import joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.data.manifest import Manifest
    from pipegen.data.sampling.epochs import Epochs, Repeats
    from pipegen.spec.models import PipelineSpec


def visits(spec: PipelineSpec, manifest: Manifest, split: str) -> tuple[str, ...]:
    """Returns a line for each thing to say of the examples of a split's epochs; none where each is seen once.

    Args:
        spec: The spec.
        manifest: Its data.
        split: The split.
    """
    buckets = bucket_line(spec, manifest, split)
    if split != "train" or buckets:
        return (f"batches are of one bucket each: {buckets}",) if buckets else ()
    if isinstance(manifest, MixedManifest):
        parts = manifest.of(split).items()
        said = ((name, (*_windows(spec, part), *_of_part(spec, manifest, name))) for name, part in parts)
        return tuple(f"{name}: {line}" for name, lines in said for line in lines)
    epochs = epochs_of(spec, manifest) if spec.samples else None
    drawn = (epochs.size, epochs.size) if epochs is not None else (0, 0)
    return tuple(_said(spec, manifest, epochs, "epoch", drawn))


def _of_part(spec: PipelineSpec, mix: MixedManifest, name: str) -> Iterator[str]:
    """Yields what there is to say of a part of a mix."""
    made = mix.mixture("train")
    place = list(mix.of("train")).index(name)
    drawn = (made.counts(0)[place], made.examples * made.shares[place] / made.unit) if made is not None else (0, 0)
    yield from _said(joined(spec, name), mix.parts[name], mix.sampled.get(name), "pass", drawn)


def _said(spec: PipelineSpec, manifest: Manifest, epochs: Epochs | None, each: str, drawn: tuple[float, float]) -> Iterator[str]:
    """Yields what there is to say of one source; `drawn` are the examples that epoch 0 has of it, and those of a late epoch."""
    if manifest.spared:
        left = manifest.num_examples("train")
        yield f"the subset has {left:,} of {left + manifest.spared:,} examples, the same in every {each}"
    if epochs is not None:
        yield from _easiest(epochs, *drawn) if isinstance(epochs, Easiest) else _repeats(spec, manifest, epochs, each)
        if manifest.listing.shards is not None:
            yield f"the labels of all {manifest.total:,} records were read for this, once for each process"


def _windows(spec: PipelineSpec, part: Manifest) -> Iterator[str]:
    """Says how a part of a mix is shuffled whose records are read by blocks: the order that the plan shows is that of the others."""
    reader = part.listing.reader("train")
    if reader.at_once > 1 and spec.shuffle != "none":
        asked = None if spec.shuffle == "global" else spec.shuffle.window
        yield order_text("window", window_bytes(asked, part, "train"), blocks=reader.called)


def _easiest(epochs: Easiest, begun: float, late: float) -> Iterator[str]:
    n, counts = len(epochs.members), epochs.counts
    first, last = int(counts[0]), int(counts[-1])
    yield f"epoch 0 draws {begun:,} examples from the {first:,} easiest of {n:,}: each is seen {_often(begun / first)}"
    if last != first:
        settled, which = int(np.flatnonzero(counts != last)[-1]) + 1, "all" if last == n else f"the {last:,} easiest"
        yield f"from epoch {settled} on it draws from {which}: each is seen {_often(late / last)}"


def _repeats(spec: PipelineSpec, manifest: Manifest, epochs: Repeats, each: str) -> Iterator[str]:
    often, sampling = epochs.visits, spec.sampling
    yield f"{'an' if each == 'epoch' else 'a'} {each} has {epochs.size:,} examples, drawn from {manifest.num_examples('train'):,}"
    if epochs.sizes is None:
        yield f"the rarest example is seen {_often(float(often.min()), each)}, the commonest {_often(float(often.max()), each)}"
        return
    feature = sampling.feature if sampling is not None else None
    by_main = feature == spec.source.class_feature()
    names = manifest.class_names if by_main else manifest.listing.column_classes.get(str(feature), ())
    there = np.flatnonzero(epochs.sizes)
    for what, place in (("rarest", np.argmin), ("commonest", np.argmax)):
        at = int(there[place(epochs.sizes[there])])
        called = f"`{names[at]}`" if at < len(names) else "none at all"
        seen = _often(float(often[at]), each)
        yield f"an example of the {what} class, {called} ({count(int(epochs.sizes[at]), 'example')}), is seen {seen}"


def _often(times: float, each: str = "epoch") -> str:
    """A mean number of times an epoch, in words."""
    if 0 < times < 0.5:
        return f"once in {1 / times:,.3g} {each}{'es' if each == 'pass' else 's'}"
    an = f"{'an' if each == 'epoch' else 'a'} {each}"
    return "never" if times == 0 else f"once {an}" if times == 1 else f"{times:,.3g} times {an}"
