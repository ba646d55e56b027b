"""Passes: rewriting and analysis of tile IR. Importing this module registers them all."""

from __future__ import annotations

from . import canonicalize, carried, contract, cse, dce, hoist
from .pipeline import (
    CONTRACTED,
    DEFAULT,
    PASSES,
    NoOptions,
    Pass,
    PassRun,
    Step,
    parse_pipeline,
    register_pass,
    run_pipeline,
)

__all__ = [
    "CONTRACTED",
    "DEFAULT",
    "PASSES",
    "NoOptions",
    "Pass",
    "PassRun",
    "Step",
    "canonicalize",
    "carried",
    "contract",
    "cse",
    "dce",
    "hoist",
    "parse_pipeline",
    "register_pass",
    "run_pipeline",
]
