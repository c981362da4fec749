"""The kinds of features: a file for each, perhaps with its form for items; `base.py` finds them.

A kind defines how a feature is stored and which arguments describe it. Its parts define what steps do to it, how it is drawn and written
to files, and what it means: `pixels`, `geometry` and `meaning`, each an object or `None`. No other code depends on the name of a kind. To
add one, write `ops/kinds/NAME.py` with a subclass of `FeatureKind` and `tests/ops/kinds/test_NAME.py`; then run `python -m docs.generated`.
"""
