"""`PointedSource`, the base of sources whose boxes, or images, have keypoints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.ops.arguments.item_rules import PointRules, pairs_by_name, swapped_places
from pipegen.ops.fields.columns import Ragged, most_items
from pipegen.ops.fields.notes import LeftOut, Note, count, quoted
from pipegen.ops.kinds.keypoints import check_names, keypoints_type
from pipegen.ops.kinds.label import item_label_type
from pipegen.ops.sources.annotations.source import POINT_LABELS, POINTS, BoxedSource, Found, PointNames
from pipegen.ops.sources.features.any_kind import NamesPoints

if TYPE_CHECKING:
    from pipegen.ops.fields.strings import Ints
    from pipegen.types import ElementType


class PointedSource(NamesPoints, BoxedSource):
    """Images with boxes, each of which may have a set of named keypoints."""

    keypoints: Literal["instances"] | None = None
    """`instances`: a set of named `keypoints` for each box, with `(x, y, visibility)` for each name. The names are those of the
    annotations, or of `names`. A mirror swaps names that differ by left and right, such as `left_eye` and `right_eye`, unless
    `mirror_pairs` names others."""

    @model_validator(mode="after")
    def _named_points(self) -> PointedSource:
        if self.keypoints is None:
            given = next((name for name in NamesPoints.model_fields if getattr(self, name) is not None), None)
            if given is not None:
                help_ = write("keypoints: instances", "arguments", "{} reads them")
                raise PartError(f"`{given}` is for keypoints, which only `keypoints` reads", given, help=help_)
        if self.names is not None:
            check_names(self.names, self.mirror_pairs or (), "")
        return self

    def _type(self, found: Found | None) -> ElementType:
        type_ = super()._type(found)
        if self.keypoints is None:
            return type_
        rules = self._point_rules(PointNames(()) if found is None or found.points is None else found.points)
        if rules.each or rules.names:
            return type_.replace(**{POINTS: keypoints_type("image", rules, home="boxes")})
        most = 0 if found is None else most_items(found.own[POINTS])  # type: ignore[arg-type]  # points are ragged
        classes = None if found is None or found.points is None else len(found.points.names) or None
        labels = item_label_type(POINTS, classes).with_(most=most)
        return type_.replace(**{POINTS: keypoints_type("image", rules, most=most), POINT_LABELS: labels})

    def _point_rules(self, stored: PointNames) -> PointRules:
        each = self.keypoints == "instances"
        names = self.names or (stored.names if each else ())
        pairs = self.mirror_pairs
        if pairs is None:
            pairs = pairs_by_name(names) if stored.pairs is None else stored.pairs
            pairs = tuple(pair for pair in pairs if {*pair} <= {*names})
        return PointRules(names, swapped_places(names, pairs), self.outside or "remove", each, relative=self.form.startswith("rel_"))

    def finished(self, found: Found) -> Found:
        """Orders the keypoints by `names`."""
        found = super().finished(found)
        if found.points is None:
            return found
        column = found.own.get(POINTS)
        values: Any = found.items[POINTS] if column is None else column.values
        if column is not None and self.names is None:
            if len(values):
                return found
            values = values[None]
        if not values[..., 2].any():
            what = count(len(values), "box", "boxes") if column is None else count(len(found.keys), "image")
            message = f"none of {what} has keypoints"
            raise OpError("PG475", message, field="keypoints", help="remove `keypoints`, or use annotations with keypoints")
        stored = found.points.names
        try:
            check_names(self.names or stored, self.mirror_pairs or (), "")
        except PartError as error:
            raise OpError("PG256", str(error), field="mirror_pairs", help=error.help) from None
        notes = list(found.notes)
        if self.names is not None:
            at = [stored.index(name) if name in stored else len(stored) for name in self.names]
            lacking = [name for name in self.names if name not in stored]
            if lacking:
                near = closest(lacking[0], list(stored))
                message, help_ = f"`names` lists {quoted(lacking)}, which the annotations lack", f"they have {quoted(stored)}"
                notes.append(Note("PG403", message, f"is {near!r} meant?" if near else help_, "names"))
            others = [i for i, name in enumerate(stored) if name not in self.names]
            number = int((values[:, others, 2] > 0).sum())
            if number:
                gone = LeftOut(number, "keypoint of a name that `names` does not list", "keypoints of names that `names` does not list")
                message = f"ignored: {gone}: {quoted([stored[i] for i in others])}"
                notes.append(Note("PG411", message, field="names", left_out=(gone,)))
            values = np.concatenate([values, np.zeros_like(values[:, :1])], 1)[:, at]
        if column is None:
            return replace(found, items={**found.items, POINTS: values}, notes=tuple(notes))
        lengths: Ints = np.full(len(values), values.shape[1], np.int64)
        return replace(found, own={**found.own, POINTS: Ragged(values.reshape(-1, 3), lengths)}, notes=tuple(notes))
