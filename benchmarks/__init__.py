"""Side-by-side measurements of pipegen and its peers: recipes × systems in one run. `python -m benchmarks --help`."""

from __future__ import annotations
