"""Sees whether Keras is there, and new enough to take our iterators."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

FIRST = (3, 7)
"""From here on `fit` takes an iterator of ours."""


def check(examination: Examination) -> Iterator[Line]:
    """Names the version and the backend."""
    answers = examination.answers
    if "tensorflow" not in answers:
        return
    if "keras" not in answers:
        yield Line("Keras", f"cannot be imported: {answers.get('failed', 'it says nothing')}", "error", "pip install --upgrade keras")
        return
    version, backend = answers["keras"], answers["keras_backend"]
    old = tuple(int(part) for part in version.split(".")[:2]) < FIRST
    fact = f"{version} on {backend}{', too old for pipegen' if old else ''}"
    remedy = f"pip install --upgrade 'keras>={FIRST[0]}.{FIRST[1]}'" if old else ""
    yield Line("Keras", fact, "error" if old else "ok", remedy, {"version": version, "backend": backend})
