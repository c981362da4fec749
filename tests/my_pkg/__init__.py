"""A user's package, whose functions the specs of tests call."""
