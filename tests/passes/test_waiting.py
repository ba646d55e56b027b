"""Which loops wait for memory to change, and which end by themselves."""

from __future__ import annotations

import pytest
from tests.frontend.kernels import I32, PTR, define, ir

from tritium.ops.callable import DeviceFunction
from tritium.passes.waiting import waits

WAIT = {
    "a spin lock": """
        while tl.atomic_cas(p, 0, 1) == 1:
            pass
    """,
    "a spin lock by exchange": """
        while tl.atomic_xchg(p, 1) == 1:
            pass
    """,
    "a spin lock by sums that are taken back": """
        while tl.atomic_add(p, 1) != 0:
            tl.atomic_add(p, -1)
    """,
    "a spin lock by sums, stored back": """
        while tl.atomic_add(p, 1) != 0:
            tl.store(p, 0)
    """,
    "a flag": """
        while tl.load(p, volatile=True) == 0:
            pass
    """,
    "a flag past the caches": """
        while tl.load(p, cache_modifier=".cv") == 0:
            pass
    """,
    "a barrier": """
        tl.atomic_add(p, 1)
        while tl.atomic_load(p) < n:
            pass
    """,
    "a barrier by a sum of nothing": """
        tl.atomic_add(p, 1)
        while tl.atomic_add(p, 0) < n:
            pass
    """,
    "bits that may be set": """
        while tl.atomic_or(p, 1) & 2 == 0:
            pass
    """,
    "the largest": """
        while tl.atomic_max(p, n) > n:
            pass
    """,
    "a sum of what may be nothing": """
        while tl.atomic_add(p, n) < 10:
            pass
    """,
    "a sum that may be masked off": """
        while tl.atomic_add(p, 1, mask=n > 3) < 10:
            pass
    """,
    "a float sum, which rounds": """
        f = p.to(tl.pointer_type(tl.float32))
        while tl.atomic_add(f, 1.0) < 1e30:
            pass
    """,
    "a tile of flags": """
        seen = 0
        while seen < 4:
            seen = tl.sum(tl.load(p + tl.arange(0, 4), volatile=True))
    """,
    "flags in turn": """
        seen = 0
        while seen < n:
            seen = 0
            for i in range(n):
                seen += tl.atomic_load(p + i)
    """,
    "a look back": """
        place = n
        while place >= 0:
            flag = tl.atomic_load(p + place)
            if flag == 2:
                place = -1
            elif flag == 1:
                place -= 1
    """,
    "what a polled place leads to": """
        seen = 0
        while seen == 0:
            seen = tl.load(p + tl.atomic_load(p + 1))
    """,
    "a loop inside of a loop": """
        for i in range(n):
            while tl.atomic_load(p + i) == 0:
                pass
    """,
    "pieces that may be stored over their number": """
        piece = tl.atomic_add(p, 1)
        while piece < n:
            tl.store(p + piece, 1)
            piece = tl.atomic_add(p, 1)
    """,
    "a bit of what others count": """
        while tl.atomic_add(p, 2) & 1 == 0:
            pass
    """,
    "a count that moves away from its bound": """
        while tl.atomic_add(p, 1) >= n:
            pass
    """,
    "a count that moves away downwards": """
        while n > tl.atomic_add(p, -1):
            pass
    """,
    "a count that is to be met": """
        while tl.atomic_add(p, 2) != n:
            pass
    """,
    "a remainder of a count": """
        while tl.atomic_add(p, 1) % 4 < n:
            pass
    """,
    "a bound that moves along": """
        bound = n
        while tl.atomic_add(p, 1) < bound:
            bound += 1
    """,
    "a bound that is polled": """
        while tl.atomic_add(p, 1) < tl.atomic_load(q):
            pass
    """,
    "the next piece, or another one": """
        piece = 0
        while piece < n:
            if piece % 2 == 0:
                piece = tl.atomic_add(p, 1)
            else:
                piece = tl.atomic_load(q)
    """,
    "a piece that may stay": """
        piece = tl.atomic_add(p, 1)
        while piece < n:
            if tl.atomic_load(q) == 1:
                piece = tl.atomic_add(p, 1)
    """,
    "pieces of ever another counter": """
        place = 0
        while tl.atomic_add(p + place, 1) < n:
            place += 1
    """,
    "a short counter, which may be below n for ever": """
        f = p.to(tl.pointer_type(tl.int8))
        while tl.atomic_add(f, 64) < n:
            pass
    """,
    "a counter without a sign, downwards": """
        f = p.to(tl.pointer_type(tl.uint32))
        while tl.atomic_add(f, -2) > 0:
            pass
    """,
    "pieces or a flag": """
        while (tl.atomic_add(p, 1) < n) | (tl.atomic_load(q) == 0):
            pass
    """,
    "what is polled goes through memory": """
        while tl.load(q) == 0:
            tl.store(q, tl.load(p, volatile=True))
    """,
    "what is polled decides what is stored": """
        while tl.load(q) == 0:
            if tl.atomic_load(p) == 1:
                tl.store(q, 1)
    """,
    "what is polled goes through memory by exchange": """
        while tl.load(q) == 0:
            tl.atomic_xchg(q, tl.load(p, volatile=True))
    """,
    "a ticket": """
        mine = tl.atomic_add(p, 1)
        while tl.atomic_load(p + 1) != mine:
            pass
        tl.atomic_add(p + 1, 1)
    """,
}

END = {
    "counted": """
        i = 0
        while i < n:
            tl.atomic_max(p, i)
            tl.atomic_or(p + 1, 1)
            i += 1
    """,
    "reads on the way": """
        i, total = 0, 0
        while i < n:
            total += tl.load(p, volatile=True) + tl.atomic_load(p + 1)
            i += 1
        tl.store(p, total)
    """,
    "pieces of work": """
        piece = tl.atomic_add(p, 1)
        while piece < n:
            tl.store(q + piece, 1)
            piece = tl.atomic_add(p, 1)
    """,
    "pieces of work, one by one": """
        while tl.atomic_add(p, 1) < n:
            pass
    """,
    "pieces of work downwards": """
        left = tl.atomic_add(p, -4)
        while left > 0:
            tl.store(q + left, 1)
            left = tl.atomic_add(p, -4)
    """,
    "pieces of work, the bound first": """
        piece = tl.atomic_add(p + 1, 64)
        while n - 1 >= piece:
            piece = tl.atomic_add(p + 1, 64)
    """,
    "pieces of work of another width": """
        piece = tl.atomic_add(p, 1)
        while piece < n.to(tl.int64):
            piece = tl.atomic_add(p, 1)
    """,
    "a number of pieces of work": """
        done, piece = 0, tl.atomic_add(p, 1)
        while (piece < n) & (done < 5):
            piece = tl.atomic_add(p, 1)
            done += 1
    """,
    "loads and stores of its own": """
        while tl.load(q) < n:
            tl.store(q, tl.load(q) + 1)
    """,
    "loads of what nobody here writes": """
        i = 0
        while tl.load(q + i) > 0:
            tl.atomic_max(p, tl.load(q + i))
            i += 1
    """,
    "pieces by an If": """
        piece = 0
        while piece < n:
            if piece % 2 == 0:
                piece = tl.atomic_add(p, 2)
            else:
                piece = tl.atomic_add(p, 1)
    """,
    "a bounded number of attempts": """
        for i in range(n):
            if tl.atomic_cas(p, 0, 1) == 0:
                tl.store(q, i)
    """,
    "an answer that comes too late": """
        found = tl.atomic_load(p)
        i = 0
        while i < found:
            i += 1
    """,
}


def kernel_of(body: str) -> DeviceFunction:
    lines = [line[4:] for line in body.strip("\n").splitlines()]
    return define("@jit\ndef kernel(p, q, n):\n" + "\n".join(lines).rstrip() + "\n")


@pytest.mark.parametrize("name", WAIT)
def test_loops_that_wait(name: str) -> None:
    assert waits(ir(kernel_of(WAIT[name]), PTR, PTR, I32))


@pytest.mark.parametrize("name", END)
def test_loops_that_end_by_themselves(name: str) -> None:
    assert not waits(ir(kernel_of(END[name]), PTR, PTR, I32))
