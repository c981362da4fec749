"""Tests of the data, for the section `tests` of a spec; `ops/data_test.py` defines what a test is."""
