"""Computations that are known before they run."""

from __future__ import annotations

from weft._graph.planning import plan_offsets

__all__ = ["plan_offsets"]
