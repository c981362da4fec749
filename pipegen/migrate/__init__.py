"""Turns training code that uses Keras' `ImageDataGenerator` into a spec. It reads the source as a syntax tree and never runs it.

file ── reading ──▶ Code, its tree and what line is where
     ── scopes, evaluate, interpret ──▶ generators, iterators and all their uses
     ── groups ──▶ one pipeline for related iterators
     ── hoisting ──▶ calls of functions that make iterators become splits
     ── steps, write_spec ──▶ the spec; rewrite ──▶ the changed code; mistakes, findings ──▶ the report
"""

from __future__ import annotations
