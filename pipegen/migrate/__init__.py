"""Turns training code that uses Keras' `ImageDataGenerator` into a spec. It reads the source as a syntax tree and never runs it.

file ── reading ──▶ Code, its tree and what line is where
     ── scopes, evaluate, interpret ──▶ generators, iterators and every use of them
     ── groups ──▶ one pipeline for the iterators that belong together
     ── repeated, hoisting ──▶ a function that makes them goes with its calls, or keeps a pipeline of its own
     ── steps, write_spec ──▶ the spec; rewrite ──▶ the changed code; mistakes, findings ──▶ what to know about it
"""

from __future__ import annotations
