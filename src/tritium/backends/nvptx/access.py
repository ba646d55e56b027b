"""One access to global memory: its instruction, with what the user says about caches.

What LLVM has no form for is inline assembly: a predicate, operators of caches, priorities in L1 by
the instruction, in L2 by a policy (PTX ISA, "Cache Operators", "Cache Eviction Priority Hints").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tritium.backends.emit import (
    LType,
    V,
    const,
    double,
    elem,
    float_,
    i8,
    i16,
    i32,
    i64,
    lanes,
    struct_type,
    vec,
    void,
)
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


def load_words(
    writer: Writer,
    op: memory.Load,
    type_: LType,
    address: V,
    others: Sequence[V],
    predicate: V | None = None,
) -> list[V]:
    """A load of as many neighbours of a type of memory as there are ``others``, which they are
    where the predicate fails. All of them are aligned to their size.

    A volatile load takes no predicate.
    """
    b, whole = writer.b, vec(type_, len(others))
    bytes_, words = _bytes(whole), _words(whole)
    if op.volatile:
        # Words, as LLVM splits volatile vectors of narrower elements.
        moved = type_ if bytes_ <= 2 else words.whole
        got = b.load(moved, address, align=bytes_, volatile=True)
        return _lanes(writer, b.bitcast(got, whole))
    constant = writer.is_constant(op)
    said = _said(writer, op.cache if op.cache in _LOADS else "", op.eviction)
    if said is None and predicate is None:
        return _lanes(writer, b.load(whole, address, align=bytes_, invariant=constant))
    marks, policy = said or ("", [])
    if constant and op.cache != "cg":
        # ptxas takes cg with nc too, and makes of it what goes through L1.
        marks = _constant(marks)
    count = words.registers
    text = f"ld.global{marks}{words.name} {_listed(0, count)}, [${count}]"
    text += f", ${count + 1};" if policy else ";"
    constraints = [f"={words.letter}"] * count + ["l"] * (1 + len(policy))
    given = [address, *policy]
    if predicate is not None:
        text = f"@${count + len(given)} {text}"
        constraints += ["b", *map(str, range(count))]
        given += [predicate, *_parts(writer, others, words)]
    # To the end of its code generator LLVM knows only whether there are side effects at all.
    alone = constant and not op.is_fresh
    got = b.asm(
        text,
        ",".join(constraints),
        struct_type(*[words.type] * count) if count > 1 else words.type,
        given,
        side_effects=not alone,
        attributes="nounwind" + ("" if op.is_fresh else " willreturn memory(argmem: read)"),
    )
    return _split(writer, got, words, whole)


def store_words(
    writer: Writer,
    op: memory.Store,
    values: Sequence[V],
    address: V,
    predicate: V | None = None,
) -> None:
    """A store of neighbours, aligned to their size together, where the predicate holds."""
    b, whole = writer.b, vec(values[0].type, len(values))
    said = _said(writer, op.cache if op.cache in _STORES else "", op.eviction)
    if said is None and predicate is None:
        b.store(_joined(writer, values, whole), address, align=_bytes(whole))
        return
    marks, policy = said or ("", [])
    words = _words(whole)
    count = words.registers
    text = f"st.global{marks}{words.name} [$0], {_listed(1, count)}"
    text += f", ${count + 1};" if policy else ";"
    constraints = ["l", *[words.letter] * count, *["l"] * len(policy)]
    given = [address, *_parts(writer, values, words), *policy]
    if predicate is not None:
        text = f"@${len(given)} {text}"
        constraints.append("b")
        given.append(predicate)
    b.asm(
        text,
        ",".join(constraints),
        void,
        given,
        side_effects=True,
        attributes="nounwind willreturn memory(argmem: write)",
    )


def _listed(first: int, count: int) -> str:
    """So many operands of an assembly's text."""
    listed = ", ".join(f"${number}" for number in range(first, first + count))
    return f"{{{listed}}}" if count > 1 else listed


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

_LETTERS = {float_: "f", double: "d", i64: "l", i32: "r"}
"""Of types in constraints."""


def _bytes(type_: LType) -> int:
    return elem(type_).bits * lanes(type_) // 8


def _words(type_: LType) -> _Words:
    """The words that hold a scalar or vector: its elements, or 32 bits of narrower ones."""
    bytes_ = _bytes(type_)
    if bytes_ <= 2:
        return _Words(i16, "h", f".b{8 * bytes_}", 1)
    word = elem(type_) if elem(type_) in _LETTERS else i32
    count = 8 * bytes_ // word.bits
    vector = f".v{count}" if count > 1 else ""
    return _Words(word, _LETTERS[word], f"{vector}.b{word.bits}", count)


def _lanes(writer: Writer, whole: V) -> list[V]:
    count = lanes(whole.type)
    return [writer.b.extract(whole, lane) for lane in range(count)] if count > 1 else [whole]


def _joined(writer: Writer, parts: Sequence[V], type_: LType) -> V:
    if len(parts) == 1:
        return parts[0]
    whole = V("poison", type_)
    for lane, part in enumerate(parts):
        whole = writer.b.insert(whole, part, lane)
    return whole


def _split(writer: Writer, got: V, words: _Words, type_: LType) -> list[V]:
    """The elements of a scalar or vector whose words an assembly gave."""
    b, count = writer.b, words.registers
    parts = [b.extract_value(got, number) for number in range(count)] if count > 1 else [got]
    if elem(type_) is words.type:
        return parts
    if _bytes(type_) == 1:
        return [b.trunc(got, i8)]
    return _lanes(writer, b.bitcast(_joined(writer, parts, words.whole), type_))


def _parts(writer: Writer, values: Sequence[V], words: _Words) -> list[V]:
    """The words that elements are."""
    b, type_ = writer.b, values[0].type
    if type_ is words.type:
        return list(values)
    if all(value.integer == 0 for value in values):
        return [const(words.type, 0)] * words.registers
    whole = vec(type_, len(values))
    if _bytes(whole) == 1:
        return [b.zext(values[0], i16)]
    return _lanes(writer, b.bitcast(_joined(writer, values, whole), words.whole))
