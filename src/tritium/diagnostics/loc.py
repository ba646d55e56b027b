"""Where something stands in the user's source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Loc:
    """A range of a source file, with the chain of calls that led to it.

    ``line`` counts from 1 and ``col`` from 0, in characters, as Python's tracebacks print them;
    ``end_col`` is one past the last character. ``call_site`` is the place in the caller where the
    function was inlined, so a location is a whole call chain, innermost first.
    """

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    function: str = ""
    call_site: Loc | None = None

    def chain(self) -> list[Loc]:
        """This location and its callers, innermost first."""
        chain: list[Loc] = []
        at: Loc | None = self
        while at is not None:
            chain.append(at)
            at = at.call_site
        return chain

    def called_from(self, site: Loc | None) -> Loc:
        """The same range, reached through the call at ``site``."""
        return Loc(self.file, self.line, self.col, self.end_line, self.end_col, self.function, site)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"
