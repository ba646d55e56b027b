"""Passes: rewriting and analysis of tile IR. Importing this module registers them all."""

from __future__ import annotations

from . import canonicalize, carried, contract, cse, dce, forget, hoist
from .pipeline import (
    DEFAULT,
    DEVICE,
    PASSES,
    NoOptions,
    Pass,
    PassRun,
    Step,
    contracted,
    parse_pipeline,
    register_pass,
    run_pipeline,
)

__all__ = [
    "DEFAULT",
    "DEVICE",
    "PASSES",
    "NoOptions",
    "Pass",
    "PassRun",
    "Step",
    "canonicalize",
    "carried",
    "contract",
    "contracted",
    "cse",
    "dce",
    "forget",
    "hoist",
    "parse_pipeline",
    "register_pass",
    "run_pipeline",
]
