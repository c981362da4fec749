"""Takes RandAugment and its kin apart into the steps that do their work."""

from __future__ import annotations

from pipegen.ops.families.augmentation import COLOUR, FILTERS, GEOMETRY, HISTOGRAM_TABLES, KINDS, PLAIN_TABLES, Augmentation
from pipegen.ops.families.augmentation_matrices import AllColour, AllGeometry
from pipegen.ops.families.augmentation_tables import LayerFilter, LayerHistogramTable, LayerTable
from pipegen.ops.transform import Part


class LayeredAugmentation(Augmentation):
    """A policy of layers with what does their work: the base of the steps."""

    def parts(self) -> tuple[Part, ...]:
        kinds = ((PLAIN_TABLES, LayerTable), (HISTOGRAM_TABLES, LayerHistogramTable), (FILTERS, LayerFilter))
        shares, found = self.shares(), []
        for layer, own in enumerate(shares):
            for kind, (names, part) in enumerate(kinds):
                if any(own.get(name, 0) for name in names):
                    step = part(policy=self, layer=layer, feature=self.feature)
                    found.append(Part(step, layer * len(KINDS) + kind))
        used = {name for own in shares for name, share in own.items() if share}
        if used & set(GEOMETRY):
            found.append(Part(AllGeometry(policy=self, fill=self.fill, interpolation=self.interpolation, feature=self.feature)))
        if used & set(COLOUR):
            found.append(Part(AllColour(policy=self, feature=self.feature)))
        return tuple(found)
