"""Random programs of nested branches, loops, calls and early returns: the IR does what Python does.

The programs' variables are int32 scalars that all exist from the start, so that every program is
valid; eager mode, which runs Python's own control flow, says what it must store.
"""

from __future__ import annotations

import random

import pytest
from tests.frontend.kernels import I32, PTR, define, ir, results

VARIABLES = ("x", "y", "z")


class Program:
    """Writes one random program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.budget = 40
        self.counters = 0

    def expression(self, depth: int = 2) -> str:
        choice = self.random.random()
        if depth == 0 or choice < 0.3:
            return self.random.choice([*VARIABLES, *VARIABLES, "a", str(self.random.randint(0, 9))])
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        if choice < 0.75:
            return f"({left} {self.random.choice('+-*&|^')} {right})"
        if choice < 0.85:
            return f"({left} {self.random.choice(['//', '%'])} {self.random.randint(2, 5)})"
        return f"({left} + 0 * a if {self.condition(depth - 1)} else {right} + 0 * a)"

    def condition(self, depth: int = 1) -> str:
        parts = [self.expression(depth) for _ in range(3)]
        compare = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        text = f"{parts[0]} {compare} {parts[1]} + 0 * a"
        choice = self.random.random()
        if choice < 0.15:
            return f"not ({text})"
        if choice < 0.3:
            return f"({text}) {self.random.choice(['and', 'or'])} ({parts[2]} > a)"
        if choice < 0.35:
            return self.random.choice(["FLAG", "not FLAG", f"FLAG and {text}", f"FLAG or {text}"])
        return text

    def block(self, indent: int, loops: int, in_loop: bool) -> None:
        before = len(self.lines)
        for _ in range(self.random.randint(1, 4)):
            self.statement(indent, loops, in_loop)
        if len(self.lines) == before:
            self.write(indent, "pass")

    def write(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, indent: int, loops: int, in_loop: bool) -> None:
        self.budget -= 1
        choice = self.random.random()
        name = self.random.choice(VARIABLES)
        if self.budget < 0 or choice < 0.35 or indent > 5:
            operator = self.random.choice(["", "", "+", "-", "^"])
            self.write(indent, f"{name} {operator}= {self.expression()} + 0 * a")
        elif choice < 0.42:
            first, second = self.random.sample(VARIABLES, 2)
            self.write(indent, f"{first}, {second} = {second}, {first} + {self.expression(1)}")
        elif choice < 0.72:
            self.branch(indent, loops, in_loop)
        elif choice < 0.8 and not in_loop:
            self.write(indent, f"return {self.expression()} + 0 * a")
        elif loops < 2:
            self.loop(indent, loops, in_loop)
        else:
            self.write(indent, f"{name} = {self.expression(1)} + a")

    def branch(self, indent: int, loops: int, in_loop: bool) -> None:
        self.write(indent, f"if {self.condition()}:")
        self.block(indent + 1, loops, in_loop)
        while self.random.random() < 0.25:
            self.write(indent, f"elif {self.condition()}:")
            self.block(indent + 1, loops, in_loop)
        if self.random.random() < 0.5:
            self.write(indent, "else:")
            self.block(indent + 1, loops, in_loop)

    def loop(self, indent: int, loops: int, in_loop: bool) -> None:
        self.counters += 1
        counter = f"i{self.counters}"
        kind = self.random.choice(["range", "down", "static_range", "while"])
        bound = self.random.randint(0, 4)
        if kind == "while":
            self.write(indent, f"{counter} = {bound} + 0 * a")
            self.write(indent, f"while {counter} > 0:")
            self.write(indent + 1, f"{counter} -= 1")
        elif kind == "static_range":
            self.write(indent, f"for {counter} in tl.static_range({min(bound, 3)}):")
        elif kind == "down":
            self.write(indent, f"for {counter} in range(a % 3 + {bound}, 0, -2):")
        else:
            self.write(indent, f"for {counter} in range(0, (a & 3) + {bound}):")
        name = self.random.choice(VARIABLES)
        self.write(indent + 1, f"{name} += {counter}")
        self.block(indent + 1, loops + 1, in_loop or kind != "static_range")

    def source(self) -> str:
        self.write(0, "@jit")
        self.write(0, "def f(a, x, y, z, FLAG: tl.constexpr):")
        self.write(1, "x, y, z = x + 0 * a, y + 0 * a, z + 0 * a")
        self.block(1, 0, False)
        self.block(1, 0, False)
        self.write(1, "return x + y * 3 + z * 5")
        self.write(0, "@jit")
        self.write(0, "def kernel(out, a, b, FLAG: tl.constexpr):")
        self.write(1, "first = f(a, b, a - b, 3, FLAG)")
        self.write(1, "if first > b:")
        self.write(2, "tl.store(out + 1, f(b, 1, first, a, not FLAG))")
        self.write(1, "tl.store(out, first)")
        return "\n".join(self.lines) + "\n"


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    source = Program(seed).source()
    kernel = define(source)
    for a, b, flag in ((7, -3, False), (-6, 2, True)):
        results(kernel, a, b, flag, size=2)


def test_programs_do_not_explode() -> None:
    """Ifs that return on some paths, one after the other: the IR grows with their number only."""

    def size(count: int) -> int:
        lines = ["@jit", "def kernel(out, a, b):"]
        for place in range(count):
            lines += [
                f"    if a > {place}:",
                f"        if b > {place}:",
                "            return",
                f"        tl.store(out, {place})",
            ]
        kernel = define("\n".join([*lines, "    tl.store(out, a)"]) + "\n")
        return len(list(ir(kernel, PTR, I32, I32).walk()))

    assert size(16) - size(8) == size(8) - size(0)
