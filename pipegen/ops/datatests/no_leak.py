"""`no_leak`: no example is in two splits."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipegen.errors import OpError
from pipegen.ops.data_test import DataTest, Failure, Listed, Outcome, listed_splits, many
from pipegen.ops.datatests.columns import needs_two_splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.ops.data_test import Copies, Known, Reads

_SHOWN = 3


class NoLeak(DataTest):
    """Finds images of one split that are also in another: a model would be evaluated on images it was trained on.

    A copy has the same content, or is an image whose perceptual hash and pixels are nearly the same; a possible copy is a warning.
    """

    op = "no_leak"
    bare = "by"
    reads: ClassVar[Reads] = "files"
    examples = ("no_leak: exact", "no_leak: {by: near, split: [train, test]}")

    by: Literal["exact", "near"]
    """What counts as a copy: the same bytes (`exact`), or also an image that was saved again, made smaller, cropped a little or mirrored
    (`near`), which decodes every file."""

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from needs_two_splits(self.op, self.splits(known.splits), given=self.split is not None)

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        pairs, looked_at = data.copies(splits, self.by == "near")
        total = sum(map(data.num_examples, splits))
        if total and not looked_at:
            message = f"none of the {many(total, 'record')} of {listed_splits(splits)} could be compared"
            raise OpError("PG702", message, help="`pipegen validate SPEC --data` names files that cannot be read")
        compared = many(total, "record") if looked_at == total else f"{looked_at:,} of {many(total, 'record')}"
        seen = f"{compared} of {listed_splits(splits)} compared"
        help_ = _HELP if data.known.source.split_names() is None else _HELP[:1]
        both = [(severity, [p for p in pairs if p.severity == severity]) for severity in ("error", "warning")]
        return Outcome(seen, tuple(_failure(some, help_, doubtful=severity == "warning") for severity, some in both if some))


def _failure(pairs: Sequence[Copies], help_: tuple[str, ...], *, doubtful: bool) -> Failure:
    between = Counter((p.split, p.other_split) for p in pairs)
    where = "; ".join(f"{n:,} in `{a}` and `{b}`" for (a, b), n in between.items())
    shown = ", ".join(f"{p.key!r} {_like(p)} {p.other_key!r}" for p in pairs[:_SHOWN])
    rest = f" and {len(pairs) - _SHOWN:,} more" if len(pairs) > _SHOWN else ""
    what = many(len(pairs), "image is", "images are")
    message = f"{what} {'probably ' if doubtful else ''}in two splits ({where}): {shown}{rest}"
    return Failure("PG721", message, None, help_, doubtful)


def _like(pair: Any) -> str:
    return "is the same as" if pair.same else "mirrors" if pair.mirrored else "looks like"


_HELP = (
    "`pipegen report SPEC --write-exclude copies.txt` shows both of each pair, and lists one for `splits: {exclude: copies.txt}`",
    "what belongs together stays in one split by `splits.group`",
)
