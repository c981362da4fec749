"""Where kernels are cut: before every stage that reads a pixel of the one before it more than once, and nowhere else.

What a chain costs against the sum of its parts (at most 1.3 times) is measured by `python -m benchmarks.kernels`; what
stands here is the rule that keeps it there, and needs no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise, product

import pytest
from hypothesis import HealthCheck, given, settings
from planning import built, compiled, load_spec
from strategies import recipes

from pipegen.ops.families.combining import Combine
from pipegen.ops.families.lookup_tables import LookupTable
from pipegen.ops.families.neighbourhood import HostNeighbourhood, Neighbourhood
from pipegen.ops.stage import Stage
from pipegen.plan import stages as s
from pipegen.plan.nodes import Kernel, Plan, one_pass_each

WARP, WARP_2 = "{random_rotation: {degrees: 9, exact: true}}", "{random_shear: {degrees: 9, fill: {constant: 0}, exact: true}}"
MIRROR, ARITHMETIC = "random_flip", "{rescale: {to: [0, 100]}}"
COLOUR, MEAN, EACH = "{random_hue: {degrees: 9}}", "{random_contrast: {factor: 0.2}}", "{random_brightness: {factor: 0.2}}"
FILTER, ERASING = "{gaussian_blur: {sigma: 1}}", "random_erasing"
TABLE, HISTOGRAM = "{gamma: {gamma: 2}}", "equalization"
STEPS = {"warp": WARP, "mirror": MIRROR, "colour": COLOUR, "each": EACH, "filter": FILTER, "table": TABLE, "arithmetic": ARITHMETIC}


def kernels(*steps: str) -> list[tuple[str, ...]]:
    """What each kernel of the training plan does to the image, behind a resize."""
    text = f"{{transforms: [{{resize: {{size: 24}}}}, {', '.join(steps)}]}}"
    return [tuple(_kind(st) for st in k.stages) for k in kernels_of(text)]


def kernels_of(text: str) -> list[Kernel]:
    """The kernels of a spec's training plan."""
    plan: Plan = compiled(built(text, classes=3), load_spec(text)).plan
    return [n for n in plan.nodes if isinstance(n, Kernel)]


def _kind(stage: Stage) -> str:
    if isinstance(stage, s.Warp):
        return "mirror" if stage.mirrors else "warp"
    if isinstance(stage, LookupTable):
        return "histogram" if stage.reads_histogram else "table"
    if isinstance(stage, Neighbourhood):
        return "filter" if stage.starts_kernel else "erasing"
    if isinstance(stage, s.Colour):
        return "colour" if stage.mixes_channels or stage.uses_mean else "each"
    return {Combine: "combine", s.Pointwise: "arithmetic", s.ChannelsFirst: "channels first", s.EncodeLabel: "label"}[type(stage)]


def test_what_needs_the_host_is_a_kernel_that_xla_does_not_compile() -> None:
    """Nor under a branch, where it is rare."""
    steps = "{resize: {size: 24}}, random_flip, {random_jpeg: {quality: [30, 90]}}, {rescale: {to: [0, 1]}}"
    found = [(k.compiled, len(k.stages)) for k in kernels_of(f"{{transforms: [{steps}]}}")]
    assert found == [(True, 1), (False, 1), (True, 1)]
    text = "{transforms: [{resize: {size: 24}}, {random_jpeg: {quality: [30, 90], probability: 0.2}}, {random_clahe: {probability: 0.2}}]}"
    plan = compiled(built(text, classes=3), load_spec(text)).plan
    branches = [stage for stage in plan.part_stages() if isinstance(stage, s.Branch)] or [
        st for st in plan.stages() if isinstance(st, s.Branch)
    ]
    assert [branch.compiled for branch in branches] == [False], "what XLA compiles stays in the batch"


@pytest.mark.parametrize(("steps", "expected"), [
    ((MIRROR, ARITHMETIC), [("mirror", "arithmetic")]),
    ((WARP, ARITHMETIC), [("warp", "arithmetic")]),
    ((COLOUR, ARITHMETIC), [("colour", "arithmetic")]),
    ((MIRROR, COLOUR, ARITHMETIC), [("mirror",), ("colour", "arithmetic")]),  # each channel is read for three
    ((WARP, COLOUR, ARITHMETIC), [("warp",), ("colour", "arithmetic")]),
    ((WARP, MEAN, ARITHMETIC), [("warp",), ("colour", "arithmetic")]),  # the mean is there before the first pixel
    ((WARP, EACH, ARITHMETIC), [("warp", "each", "arithmetic")]),  # a channel is read for itself alone
    ((WARP, EACH, "{random_channel_shift: {delta: 9}}"), [("warp", "each")]),
    ((WARP, EACH, MEAN), [("warp",), ("colour",)]),  # one segment
    ((WARP, COLOUR, EACH), [("warp",), ("colour",)]),
    ((MIRROR, EACH, ARITHMETIC), [("mirror",), ("each", "arithmetic")]),
    ((FILTER, EACH), [("filter", "each")]),
    ((WARP, TABLE, EACH), [("warp",), ("table", "each")]),
    ((EACH, MIRROR), [("each",), ("mirror",)]),
    ((EACH, TABLE), [("each",), ("table", "arithmetic")]),
    ((EACH, WARP), [("each",), ("warp",)]),
    ((WARP, ERASING, EACH), [("warp", "erasing"), ("each",)]),
    ((WARP, WARP_2), [("warp",), ("warp", "arithmetic")]),  # each pixel is read for four neighbours
    ((COLOUR, WARP), [("colour",), ("warp",)]),
    ((ARITHMETIC, WARP), [("arithmetic",), ("warp",)]),
    ((COLOUR, MIRROR), [("colour",), ("mirror",)]),  # a mirror reads a pixel and its counterpart
    ((WARP_2, MIRROR), [("warp",), ("mirror", "arithmetic")]),
    ((FILTER, ARITHMETIC), [("filter", "arithmetic")]),
    ((ARITHMETIC, FILTER), [("arithmetic",), ("filter",)]),  # a filter reads many neighbours
    ((WARP, FILTER, COLOUR), [("warp",), ("filter",), ("colour",)]),
    ((FILTER, FILTER), [("filter",), ("filter", "arithmetic")]),
    ((WARP, ERASING, ARITHMETIC), [("warp", "erasing", "arithmetic")]),  # erasing reads a pixel once
    ((ERASING, COLOUR), [("erasing",), ("colour",)]),
    ((MIRROR, TABLE, ARITHMETIC), [("mirror", "table", "arithmetic")]),
    ((WARP, TABLE, ARITHMETIC), [("warp",), ("table", "arithmetic")]),
    ((TABLE, HISTOGRAM, TABLE), [("histogram", "arithmetic")]),  # folded into one
    ((TABLE, COLOUR), [("table",), ("colour",)]),
    ((MIRROR, HISTOGRAM), [("mirror",), ("histogram", "arithmetic")]),  # it counts every pixel before it reads the first
    ((COLOUR, HISTOGRAM, WARP), [("colour",), ("histogram",), ("warp", "arithmetic")]),
    ((WARP, COLOUR, WARP_2, COLOUR), [("warp",), ("colour",), ("warp",), ("colour",)]),
])  # fmt: skip
def test_where_kernels_are_cut(steps: tuple[str, ...], expected: list[tuple[str, ...]]) -> None:
    assert kernels(*steps) == expected


COSTLY = {"warp", "colour", "each", "filter", "erasing", "table", "histogram", "combine"}
"""What must not be computed more than once a pixel."""
READS_ONCE = {"arithmetic", "channels first", "erasing", "each"}
BETTER_APART = {("mirror", "colour"), ("mirror", "each"), ("erasing", "each")}
"""What is cut for another reason: it was measured."""
STARTS = {"warp", "filter", "histogram"}
"""What has to find its input computed."""


def holds(kernel: tuple[str, ...]) -> bool:
    """Whether no costly stage of a kernel has a reader of more than one pixel behind it, and a warp or a filter stands first."""
    image = [k for k in kernel if k != "label"]
    again = any(k in COSTLY and any(later not in READS_ONCE for later in image[i + 1 :]) for i, k in enumerate(image))
    return not again and not STARTS.intersection(image[1:]) and not BETTER_APART.intersection(combinations(image, 2))


@pytest.mark.by_day(86)
@pytest.mark.parametrize("names", list(product(STEPS, repeat=3)), ids=" ".join)
def test_no_chain_of_three_recomputes(names: tuple[str, ...]) -> None:
    found = kernels(*(STEPS[n] for n in names))
    assert all(holds(k) for k in found)
    for before, after in pairwise(found):
        assert not holds(before + after[:1]), "a cut that saves nothing costs a pass over memory"


@pytest.mark.nightly
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=recipes())
def test_no_recipe_recomputes(text: str) -> None:
    for kernel in (part for whole in kernels_of(text) for part in one_pass_each(whole)):  # by rows, stages are computed one after the other
        assert holds(tuple(_kind(st) for st in kernel.stages if st.feature == "image"))
        assert kernel.compiled or any(isinstance(st, HostNeighbourhood) for st in kernel.stages)


def test_features_do_not_cut_each_other() -> None:
    text = "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 9}}], output: {encode: {label: one_hot}}}"
    assert [{st.feature for st in k.stages} for k in kernels_of(text)] == [{"image", "label"}]


@pytest.mark.tf
def test_each_kernel_is_one_xla_program_whatever_the_batch() -> None:
    """A kernel compiles once, at the spec's batch size; a smaller last batch is padded in and runs the same program."""
    import numpy as np
    import tensorflow as tf

    from pipegen.backend.kernels import chain as lowered
    from pipegen.plan.nodes import Batch

    text = f"{{transforms: [{{resize: {{size: 16}}}}, {WARP}, {COLOUR}], batch: {{size: 4}}}}"
    plan = compiled(built(text), load_spec(text)).plan
    nodes = [n for n in plan.nodes if isinstance(n, Kernel)]
    assert len(nodes) == 2
    programs: list[object] = []

    class Counted(lowered._Program):
        def start(self, *args: int, **options: bool) -> Callable[..., object]:
            programs.append(self)
            return super().start(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowered, "_Program", Counted)
        entry = next(n.out for n in plan.nodes if isinstance(n, Batch))
        functions = []
        for node in nodes:
            functions.append(lowered.lower_kernel(node, entry, 4, "always"))
            entry = node.out
        compiled_at_first = len(programs)
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)
        draws = rng.random((4, plan.index.num_draws))
        whole, part = (run_all(functions, tf.constant(images[:n]), tf.constant(draws[:n])) for n in (4, 3))
    assert compiled_at_first == 3, "positions and pixels of the warp; pixels of the colours"
    assert len(programs) == compiled_at_first
    np.testing.assert_array_equal(whole[:3], part)


def run_all(functions: list[object], images: object, draws: object) -> object:
    """A batch through kernels, one after another."""
    features = {"image": images, "@draws": draws}
    for function in functions:
        features = function(features)  # type: ignore[operator]
    return features["image"].numpy()  # type: ignore[attr-defined]
