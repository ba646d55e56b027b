"""Accesses of global memory that are written as inline assembly, in LLVM IR for the host."""

from __future__ import annotations

import re

_CALL = re.compile(
    r'call (?P<result>\{[^}]*\}|\S+) asm (?:sideeffect )?"(?P<text>[^"]*)", "[^"]*"'
    r"\((?P<arguments>(?:[^()\n]|\(\d+\))*)\)[^\n]*"
)
_ACCESS = re.compile(
    r"(?:@\$(?P<predicate>\d+) )?(?P<kind>ld|st)\.global\S*?(?:\.v(?P<lanes>\d))?\.b(?P<bits>\d+) "
)


def replaced(text: str) -> str:
    """The module with each assembly turned into a call of what does the same on the host."""
    made: dict[str, str] = {}

    def call(match: re.Match[str]) -> str:
        if match["text"].startswith("createpolicy"):
            return "add i64 0, 0"
        found = _ACCESS.match(match["text"])
        assert found, f"no emulation of {match['text']}"
        lanes, bits = int(found["lanes"] or 1), int(found["bits"])
        types = [part.rsplit(" ", 1)[0].strip() for part in match["arguments"].split(", ")]
        loads = found["kind"] == "ld"
        # An assembly's operands are numbered results first.
        asked = None
        if found["predicate"]:
            asked = int(found["predicate"]) - (lanes if loads else 0)
        build = _load if loads else _store
        body = build(match["result"], types, lanes, bits, asked)
        name = made.setdefault(body, f"@asm.{found['kind']}.{len(made)}")
        return f"call {match['result']} {name}({match['arguments']})"

    text = _CALL.sub(call, text)
    return "\n".join([text, *(body.replace("@asm", name, 1) for body, name in made.items())])


def _opening(result: str, types: list[str], asked: int | None, otherwise: str) -> list[str]:
    """The beginning of a function that does nothing where the operand ``asked`` is false."""
    listed = ", ".join(f"{type_} %a{number}" for number, type_ in enumerate(types))
    lines = [f"define internal {result} @asm({listed}) {{"]
    if asked is not None:
        lines += [f"  br i1 %a{asked}, label %do, label %skip", "skip:", otherwise, "do:"]
    return lines


def _struct(result: str, parts: list[str], prefix: str) -> tuple[list[str], str]:
    """Instructions that make a result of its parts, and its name."""
    if len(parts) == 1:
        return [], parts[0].rsplit(" ", 1)[1]
    lines, whole = [], "poison"
    for lane, part in enumerate(parts):
        lines.append(f"  %{prefix}{lane} = insertvalue {result} {whole}, {part}, {lane}")
        whole = f"%{prefix}{lane}"
    return lines, whole


def _load(result: str, types: list[str], lanes: int, bits: int, asked: int | None) -> str:
    otherwise = ""
    if asked is not None:
        first = asked + 1
        given = [f"{types[first + lane]} %a{first + lane}" for lane in range(lanes)]
        built, whole = _struct(result, given, "o")
        otherwise = "\n".join([*built, f"  ret {result} {whole}"])
    lines = _opening(result, types, asked, otherwise)
    element = re.findall(r"[\w.]+", result)[0]
    moved = "i8" if bits == 8 else element
    whole = f"<{lanes} x {moved}>" if lanes > 1 else moved
    lines.append(f"  %v = load {whole}, ptr addrspace(1) %a0, align {lanes * bits // 8}")
    if bits == 8:
        lines.append(f"  %w = zext i8 %v to {result}")
    parts = [f"{result} {'%w' if bits == 8 else '%v'}"]
    if lanes > 1:
        lines += [f"  %v{lane} = extractelement {whole} %v, i32 {lane}" for lane in range(lanes)]
        parts = [f"{element} %v{lane}" for lane in range(lanes)]
    built, made = _struct(result, parts, "r")
    return "\n".join([*lines, *built, f"  ret {result} {made}", "}", ""])


def _store(result: str, types: list[str], lanes: int, bits: int, asked: int | None) -> str:
    lines = _opening(result, types, asked, "  ret void")
    value, moved = "%a1", types[1]
    if bits == 8:
        lines.append(f"  %n = trunc {moved} {value} to i8")
        value, moved = "%n", "i8"
    if lanes > 1:
        whole = f"<{lanes} x {moved}>"
        value, made = "%w", "poison"
        for lane in range(lanes):
            name = value if lane == lanes - 1 else f"%w{lane}"
            part = f"{moved} %a{lane + 1}, i32 {lane}"
            lines.append(f"  {name} = insertelement {whole} {made}, {part}")
            made = name
        moved = whole
    lines.append(f"  store {moved} {value}, ptr addrspace(1) %a0, align {lanes * bits // 8}")
    return "\n".join([*lines, "  ret void", "}", ""])
