"""Says which pipegen and which Python run."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line
from pipegen.release import __version__


def check(_: Examination) -> Iterator[Line]:
    """Names the versions, and the Python that is meant: a wrong environment is the most common mistake."""
    fact = f"pipegen {__version__}, Python {platform.python_version()} in {sys.prefix}, {platform.platform(terse=True)}"
    yield Line("software", fact, figures={"pipegen": __version__, "python": platform.python_version(), "prefix": sys.prefix})
