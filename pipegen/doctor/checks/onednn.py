"""Says whether TensorFlow's operations on the processor use oneDNN."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line


def check(examination: Examination) -> Iterator[Line]:
    """Names the state and the variable that decides."""
    on = examination.answers.get("onednn")
    if on is None:
        return
    said = examination.machine.environment.get("TF_ENABLE_ONEDNN_OPTS")
    by = f", by TF_ENABLE_ONEDNN_OPTS={said}" if said is not None else ""
    figures = {"on": on, "variable": said}
    if on:
        yield Line("oneDNN", f"on{by}", figures=figures)
    else:
        remedy = "unset TF_ENABLE_ONEDNN_OPTS for faster models on the processor" if said is not None else ""
        yield Line("oneDNN", f"off{by}; the input does not need it", "note" if said is not None else "ok", remedy, figures)
