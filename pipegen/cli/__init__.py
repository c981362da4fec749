"""The command line: one thin file for each command. What they do is in the layers below."""
