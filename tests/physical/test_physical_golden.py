"""The golden files of physical plans: what runs for a recipe in each of its forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from golden import check
from planning import built, compiled, load_spec

from pipegen.physical.decide import assumed_examples, decide, extent_of
from pipegen.physical.nodes import Setting, forms_of
from pipegen.physical.physical_text import render_physical

if TYPE_CHECKING:
    from golden import Block, Case

FILES = sorted((Path(__file__).parents[1] / "golden" / "physical").glob("*.md"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_runs_is_as_its_file_shows(path: Path, update_golden: bool) -> None:
    """A block says its form by `enters` (`variable` for training, `queue` for single batches, …), and `derived` for what is built on it;
    or by its name, `form`, with `_` for spaces. `sending` leaves kernels to a device."""

    def produce(case: Case, block: Block) -> str:
        settings = case.source.settings | block.settings
        split = settings.get("split", "train")
        spec = load_spec(case.source.body)
        plan = compiled(built(case.source.body, split=split, classes=3), spec, ram_budget=2**40, num_examples=5000).plan
        forms = {(form.enters, form.derived): form for form in reversed(forms_of(plan))}
        form = forms[settings.get("enters", forms_of(plan)[0].enters), "derived" in block.info.split()]
        form = form.sending() if "sending" in block.info.split() else form
        form = next((f for f in forms_of(plan) if f.name.replace(" ", "_") == settings.get("form")), form)
        share, of = map(int, settings.get("share", "0/1").split("/"))
        extent = extent_of(spec, plan, int(settings.get("examples", assumed_examples(plan))), (share, of))
        replaces = spec.errors.skip is not None and split == "train"
        return render_physical(decide(plan, form, Setting(extent, 2, spec.runtime.jit != "never", replaces)))

    check(path, produce, update=update_golden)
