"""The Python interface: `build` and the `Pipeline` that it returns."""
