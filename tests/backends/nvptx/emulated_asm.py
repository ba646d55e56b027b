"""Accesses of global memory that are written as inline assembly, in LLVM IR for the host."""

from __future__ import annotations

import re

_CALL = re.compile(
    r'call (?P<result>\{[^}]*\}|\S+) asm (?:sideeffect )?"(?P<text>[^"]*)", "[^"]*"'
    r"\((?P<arguments>(?:[^()\n]|\(\d+\))*)\)[^\n]*"
)
_ACCESS = re.compile(
    r"(?P<kind>ld|st)\.global(?P<marks>\S*?)(?:\.v(?P<lanes>\d))?\.b(?P<bits>\d+) "
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
        name = f"@asm.{found['kind']}.{lanes}.{bits}.{len(types)}"
        build = _load if found["kind"] == "ld" else _store
        made[name] = build(name, match["result"], types, lanes, bits)
        return f"call {match['result']} {name}({match['arguments']})"

    text = _CALL.sub(call, text)
    return "\n".join([text, *made.values()])


def _signature(name: str, result: str, types: list[str]) -> str:
    listed = ", ".join(f"{type_} %a{number}" for number, type_ in enumerate(types))
    return f"define internal {result} {name}({listed}) {{"


def _address(lane: int, bits: int) -> str:
    return f"  %p{lane} = getelementptr i8, ptr addrspace(1) %a0, i64 {lane * bits // 8}"


def _load(name: str, result: str, types: list[str], lanes: int, bits: int) -> str:
    lines = [_signature(name, result, types)]
    for lane in range(lanes):
        load = f"  %v{lane} = load i{bits}, ptr addrspace(1) %p{lane}, align {bits // 8}"
        lines += [_address(lane, bits), load]
    if lanes > 1:
        whole = "poison"
        for lane in range(lanes):
            lines.append(f"  %w{lane} = insertvalue {result} {whole}, i{bits} %v{lane}, {lane}")
            whole = f"%w{lane}"
    elif bits == 8:
        lines.append(f"  %w = zext i8 %v0 to {result}")
        whole = "%w"
    else:
        whole = "%v0"
    return "\n".join([*lines, f"  ret {result} {whole}", "}", ""])


def _store(name: str, result: str, types: list[str], lanes: int, bits: int) -> str:
    lines = [_signature(name, result, types)]
    for lane in range(lanes):
        value = f"%a{lane + 1}"
        if bits == 8:
            lines.append(f"  %n{lane} = trunc {types[lane + 1]} {value} to i8")
            value = f"%n{lane}"
        store = f"  store i{bits} {value}, ptr addrspace(1) %p{lane}, align {bits // 8}"
        lines += [_address(lane, bits), store]
    return "\n".join([*lines, "  ret void", "}", ""])
