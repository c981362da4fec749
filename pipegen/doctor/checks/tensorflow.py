"""Sees whether TensorFlow can be imported, and is one that pipegen works with."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

FIRST, LAST = (2, 16), (2, 21)
"""The oldest and the newest release that pipegen's tests run with."""
_SLOW = 20.0
"""Seconds; from there on the import is worth a word."""


def check(examination: Examination) -> Iterator[Line]:
    """Names the version and how long importing it took."""
    answers = examination.answers
    if "tensorflow" not in answers:
        yield _broken(answers.get("failed", "it says nothing"))
        return
    version, seconds, cpu_s = answers["tensorflow"], answers["seconds"], answers["cpu_s"]
    fact = f"{version}, imported in {seconds:.1f} s, {cpu_s:.1f} s of them at work"
    figures = {"version": version, "import_s": seconds, "import_cpu_s": cpu_s}
    release = tuple(int(part) for part in version.split(".")[:2])
    if not FIRST <= release <= LAST:
        wanted = f"tensorflow>={FIRST[0]}.{FIRST[1]},<{LAST[0]}.{LAST[1] + 1}"
        yield Line("TensorFlow", f"{fact}, which pipegen is not tested with", "warning", f"pip install '{wanted}'", figures)
    elif seconds > _SLOW:
        remedy = "either the machine is busy, or the environment lies on slow storage: importing reads thousands of files"
        yield Line("TensorFlow", fact, "note", remedy, figures)
    else:
        yield Line("TensorFlow", fact, figures=figures)


def _broken(why: str) -> Line:
    if "No module named 'tensorflow'" in why:
        return Line("TensorFlow", "is not installed in this environment", "error", "pip install tensorflow")
    remedies = {
        "SIGILL": "its builds need AVX: use a machine whose processor has it, or a build for this one",
        "not done after": "its storage is too slow, or an import hangs: python -X importtime -c 'import tensorflow'",
        "numpy": "NumPy and TensorFlow do not fit each other: pip install --upgrade --force-reinstall tensorflow",
    }
    remedy = next((r for word, r in remedies.items() if word in why), "pip install --force-reinstall tensorflow")
    return Line("TensorFlow", f"cannot be imported: {why}", "error", remedy)
