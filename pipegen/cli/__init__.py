"""The command line: thin files for one command, or a few of a kind. What they do is in the layers below."""
