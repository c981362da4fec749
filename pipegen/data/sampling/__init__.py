"""Says which examples an epoch of the training split has: how often each is seen, and of which it draws."""
