"""Measures a running pipeline: where its time goes (`profile`), and which `runtime:` suits the machine (`tune`)."""
