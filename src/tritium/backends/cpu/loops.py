"""A counted loop whose bounds may be given after its body was written."""

from __future__ import annotations

from tritium.backends.emit import Builder, Function, V, const, i64


class OpenLoop:
    """``b`` writes the body, ``index`` counts. ``close`` says from where the loop is entered.

    The body is written first because writing it finds out what must be known before the loop.
    """

    def __init__(self, function: Function, name: str) -> None:
        self.head = function.block(f"{name}.head")
        self.first = function.block(f"{name}.body")
        self.done = function.block(f"{name}.done")
        self.b = Builder(self.first)
        with self.b.at(self.head):
            self.index = self.b.phi(i64, name)

    def close(self, before: Builder, low: V, high: V, step: int) -> None:
        """Enter the loop from where ``before`` stands; it goes on after the loop."""
        self.index.add(low, before.block)
        before.br(self.head)
        body = self.b
        following = body.add(self.index, const(i64, step), "nsw")
        self.index.add(following, body.block)
        body.br(self.head)
        with body.at(self.head):
            body.cbr(body.icmp("slt", self.index, high), self.first, self.done)
        before.goto(self.done)
