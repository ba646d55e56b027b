"""One access to global memory: its instruction, with what the user says about caches.

What LLVM has no form for is inline assembly: operators of caches, priorities in L1 by the
instruction, in L2 by a policy (PTX ISA, "Cache Operators", "Cache Eviction Priority Hints").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tritium.backends.emit import LType, V, elem, i8, i16, i32, i64, lanes, struct_type, vec, void
from tritium.ops import memory

if TYPE_CHECKING:
    from .kernel import Writer

_LOADS = ("ca", "cg", "cs", "cv")
_STORES = ("wb", "cg", "cs", "wt")
"""The cache operators of each kind of access. Another one is for the other kind: nothing is said.
"""
_PRIORITIES = ("evict_first", "evict_last")
"""Those that say something; ``evict_normal`` is what is done anyhow."""


class _Words(NamedTuple):
    """An access in registers of PTX: how many of a type, its letter in constraints, its name."""

    type: LType
    letter: str
    name: str
    registers: int

    @property
    def whole(self) -> LType:
        """All of them as one type of LLVM."""
        return vec(self.type, self.registers)


def load_words(writer: Writer, op: memory.Load, type_: LType, address: V) -> V:
    """A load of a scalar or vector of memory that is aligned to its size."""
    b = writer.b
    bytes_ = _bytes(type_)
    if op.volatile:
        # Words, as LLVM splits volatile vectors of narrower elements.
        words = _words(type_)
        moved = type_ if bytes_ <= 2 else words.whole
        return b.bitcast(b.load(moved, address, align=bytes_, volatile=True), type_)
    constant = writer.is_constant(op)
    said = _said(writer, op.cache if op.cache in _LOADS else "", op.eviction)
    if said is None:
        return b.load(type_, address, align=bytes_, invariant=constant)
    marks, policy = said
    words = _words(type_)
    if constant and op.cache != "cg":
        # ptxas takes cg with nc too, and makes of it what goes through L1.
        marks = _constant(marks)
    targets = ", ".join(f"${number}" for number in range(words.registers))
    target = f"{{{targets}}}" if words.registers > 1 else targets
    hint = f", ${words.registers + 1}" if policy else ""
    text = f"ld.global{marks}{words.name} {target}, [${words.registers}]{hint};"
    constraints = [f"={words.letter}"] * words.registers + ["l"] * (1 + len(policy))
    result = struct_type(*[words.type] * words.registers) if words.registers > 1 else words.type
    fresh = op.is_fresh
    got = b.asm(
        text,
        ",".join(constraints),
        result,
        [address, *policy],
        side_effects=fresh,
        attributes="nounwind" if fresh else "nounwind willreturn memory(argmem: read)",
    )
    return _joined(writer, got, words, type_)


def store_words(writer: Writer, op: memory.Store, value: V, address: V) -> None:
    """A store of a scalar or vector to memory that is aligned to its size."""
    b = writer.b
    said = _said(writer, op.cache if op.cache in _STORES else "", op.eviction)
    if said is None:
        b.store(value, address, align=_bytes(value.type))
        return
    marks, policy = said
    words = _words(value.type)
    parts = _parts(writer, value, words)
    sources = ", ".join(f"${number}" for number in range(1, words.registers + 1))
    source = f"{{{sources}}}" if words.registers > 1 else sources
    hint = f", ${words.registers + 1}" if policy else ""
    b.asm(
        f"st.global{marks}{words.name} [$0], {source}{hint};",
        ",".join(["l", *[words.letter] * words.registers, *["l"] * len(policy)]),
        void,
        [address, *parts, *policy],
        attributes="nounwind willreturn memory(argmem: write)",
    )


def _said(writer: Writer, cache: str, eviction: str) -> tuple[str, list[V]] | None:
    """The marks of an instruction, and the policy it takes if any; None where nothing is said.

    Beside an operator of caches PTX takes no priority in L1.
    """
    keeps = eviction in _PRIORITIES
    policy = [_policy(writer, eviction)] if keeps and writer.target.at_least(8) else []
    marks = f".{cache}" if cache else ""
    if keeps and not cache:
        marks = f".L1::{eviction}"
    if not marks and not policy:
        return None
    return marks + (".L2::cache_hint" if policy else ""), policy


def _constant(marks: str) -> str:
    """The marks of a load of what nothing writes while the grid runs."""
    operator = marks.partition(".L")[0]
    return f"{operator}.nc{marks[len(operator) :]}"


def _policy(writer: Writer, eviction: str) -> V:
    """The policy that gives all lines of an access a priority in L2."""
    return writer.entry.asm(
        f"createpolicy.fractional.L2::{eviction}.b64 $0, 1.0;",
        "=l",
        i64,
        attributes="nounwind willreturn memory(none)",
        pure=True,
    )


# ---- registers -----------------------------------------------------------------------------------


def _bytes(type_: LType) -> int:
    return elem(type_).bits * lanes(type_) // 8


def _words(type_: LType) -> _Words:
    bytes_ = _bytes(type_)
    if bytes_ <= 2:
        return _Words(i16, "h", f".b{8 * bytes_}", 1)
    wide = elem(type_).bits == 64
    count = bytes_ // (8 if wide else 4)
    vector = f".v{count}" if count > 1 else ""
    if wide:
        return _Words(i64, "l", f"{vector}.b64", count)
    return _Words(i32, "r", f"{vector}.b32", count)


def _joined(writer: Writer, got: V, words: _Words, type_: LType) -> V:
    b = writer.b
    if words.registers == 1:
        return b.bitcast(b.trunc(got, i8) if _bytes(type_) == 1 else got, type_)
    whole = V("poison", words.whole)
    for number in range(words.registers):
        whole = b.insert(whole, b.extract_value(got, number), number)
    return b.bitcast(whole, type_)


def _parts(writer: Writer, value: V, words: _Words) -> list[V]:
    b = writer.b
    if _bytes(value.type) == 1:
        return [b.zext(value, i16)]
    whole = b.bitcast(value, words.whole)
    if words.registers == 1:
        return [whole]
    return [b.extract(whole, number) for number in range(words.registers)]
