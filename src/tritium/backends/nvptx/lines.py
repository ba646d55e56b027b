"""Lines of Python for the code of a kernel: what ptxas, profilers and sanitizers name.

Metadata says of each instruction where it comes from, calls that were inlined included, and asks
for directives alone: a whole table of debug information would keep ptxas from optimising.
"""

from __future__ import annotations

import re

from tritium.backends.emit import Function, Module
from tritium.diagnostics import Loc

_SUBPROGRAM = "spFlags: DISPFlagDefinition | DISPFlagOptimized"
_UNIT = "isOptimized: true, runtimeVersion: 0, emissionKind: DebugDirectivesOnly"


class Lines:
    """The locations of one function of LLVM IR, as marks of its instructions."""

    def __init__(self, module: Module, function: Function, first: Loc | None) -> None:
        """``first`` is a place in the kernel; without it nothing has a location."""
        self._module = module
        self._marks: dict[Loc | None, str] = {None: ""}
        self._scopes: dict[tuple[str, str], str] = {}
        self._here = ""
        if first is None:
            return
        outermost = first.chain()[-1]
        version = module.metadata('!{i32 2, !"Debug Info Version", i32 3}')
        module.named_metadata("llvm.module.flags", version)
        file = self._file(outermost.file)
        self._unit = module.metadata(
            f'!DICompileUnit(language: DW_LANG_Python, file: {file}, producer: "", {_UNIT})',
            distinct=True,
        )
        module.named_metadata("llvm.dbg.cu", self._unit)
        self._type = module.metadata("!DISubroutineType(types: !{})")
        self._here = self._subprogram(function.name, file, outermost.line)
        self._kernel_file = outermost.file
        function.attributes.append(f"!dbg {self._here}")

    def mark(self, loc: Loc | None) -> str:
        """What stands behind an instruction that was made for a place in the source."""
        known = self._marks.get(loc)
        if known is None:
            known = self._marks[loc] = f", !dbg {self._location(loc)}" if loc and self._here else ""
        return known

    def _location(self, loc: Loc) -> str:
        if loc.call_site is None:
            scope, tail = self._in_kernel(loc.file), ""
        else:
            scope = self._function(loc)
            tail = f", inlinedAt: {self._location(loc.call_site)}"
        # LLVM's columns count from 1.
        return self._module.metadata(
            f"!DILocation(line: {loc.line}, column: {loc.col + 1}, scope: {scope}{tail})"
        )

    def _in_kernel(self, file: str) -> str:
        """The kernel's own scope, for lines of a file."""
        if file == self._kernel_file:
            return self._here
        where = self._file(file)
        return self._module.metadata(
            f"!DILexicalBlockFile(scope: {self._here}, file: {where}, discriminator: 0)"
        )

    def _function(self, loc: Loc) -> str:
        """The scope of a function that was inlined."""
        key = loc.file, loc.function
        known = self._scopes.get(key)
        if known is None:
            made = self._subprogram(loc.function or "function", self._file(loc.file), loc.line)
            known = self._scopes[key] = made
        return known

    def _subprogram(self, name: str, file: str, line: int) -> str:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        body = (
            f'name: "{plain}", scope: {file}, file: {file}, line: {line}, type: {self._type}, '
            f"scopeLine: {line}, {_SUBPROGRAM}, unit: {self._unit}"
        )
        return self._module.metadata(f"!DISubprogram({body})", distinct=True)

    def _file(self, path: str) -> str:
        # ptxas takes no other characters; a Python file is found by slashes everywhere.
        plain = re.sub(r'[^ -~]|"', "_", path.replace("\\", "/"))
        return self._module.metadata(f'!DIFile(filename: "{plain}", directory: "")')
