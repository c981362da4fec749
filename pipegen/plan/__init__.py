"""The plan: a typed, linear program that says what happens to an example from its index to the batch a model sees."""
