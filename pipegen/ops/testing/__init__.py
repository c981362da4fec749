"""The contract of tests of the data, and the base classes of each kind of test."""
