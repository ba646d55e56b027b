"""The walk over one function's syntax tree, put together from its parts."""

from __future__ import annotations

from collections import deque

from tritium.diagnostics import InternalError

from .base import Returned
from .loops import Loops


class Walker(Loops):
    """Visits a function from its first statement to its last."""

    def function_body(self) -> Returned:
        """Visit the function; the operations of all its paths stand in the current block then."""
        # The body's end is one more step, so that it too may become part of a branch.
        flow = self.run(deque([*self.frame.source.tree.body, lambda work: Returned(implicit=True)]))
        if not isinstance(flow, Returned):
            raise InternalError(f"{self.frame.source.name} ends without a return")
        return flow
