"""The containers of emitted LLVM IR: module, function, block, phi. `emit.Builder` fills them.

A block keeps its phis, its lines and its terminator apart, so lines can be appended to any block at
any time, also after its terminator is written: a loop's body is being written while its invariants
go to the preheader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .emit_types import EmitError, LType, V, array, i8, ptr

_PLAIN_NAME = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*")


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', "") + '"'


class Phi(V):
    """A phi. Its incoming values are added when they are known (`add`)."""

    __slots__ = ("incoming",)

    def __init__(self, text: str, type_: LType) -> None:
        super().__init__(text, type_)
        self.incoming: list[tuple[V, Block]] = []

    def add(self, value: V, block: Block) -> None:
        """`value` is what this phi holds when control comes from `block`."""
        if value.type is not self.type:
            raise EmitError(f"phi of {self.type.text} takes {value}")
        self.incoming.append((value, block))

    def line(self) -> str:
        """The instruction's text."""
        if not self.incoming:
            raise EmitError(f"phi {self.text} without incoming values")
        pairs = ", ".join(f"[ {value.text}, %{block.label} ]" for value, block in self.incoming)
        return f"  {self.text} = phi {self.type.text} {pairs}"


class Block:
    """A basic block: its phis, lines and terminator.

    `known` maps the text of its pure instructions to their values: the same text again is the same
    value.
    """

    __slots__ = ("function", "known", "label", "lines", "phis", "terminator")

    def __init__(self, function: Function, label: str) -> None:
        self.function = function
        self.label = label
        self.phis: list[Phi] = []
        self.lines: list[str] = []
        self.known: dict[str, V] = {}
        self.terminator: str | None = None

    def terminate(self, line: str) -> None:
        """Set the block's one terminator."""
        if self.terminator is not None:
            raise EmitError(f"block {self.label} is terminated twice: {self.terminator}; {line}")
        self.terminator = line + self.function.mark

    def text(self) -> list[str]:
        """The block's lines, label first."""
        if self.terminator is None:
            raise EmitError(f"block {self.label} of {self.function.name} has no terminator")
        phis = [phi.line() for phi in self.phis]
        return [f"{self.label}:", *phis, *self.lines, f"  {self.terminator}"]


class Function:
    """A function under construction.

    `params` are its arguments as values. `entry` is the first block; allocas go to its front
    whatever block is being written. `mark` is appended to each instruction that is written: the
    reference of its location (", !dbg !4").
    """

    def __init__(
        self,
        module: Module,
        name: str,
        result: LType,
        params: Sequence[tuple[LType, str]],
        *,
        linkage: str,
        convention: str,
        attributes: Sequence[str],
    ) -> None:
        self.module = module
        self.name = name
        self.result = result
        self.linkage = linkage
        self.convention = convention
        self.attributes = list(attributes)
        self.param_attributes: dict[int, str] = {}
        self.params = [V(f"%{_quoted(param)}", type_) for type_, param in params]
        self.blocks: list[Block] = []
        self.allocas: list[str] = []
        self.mark = ""
        self._counter = 0
        # Values and labels: LLVM keeps them in one table.
        self._names = {param for _, param in params}
        self.entry = self.block("entry")

    @property
    def address(self) -> V:
        """The function's address, to be called or stored."""
        return V(f"@{_quoted(self.name)}", ptr)

    def block(self, label: str = "block") -> Block:
        """A new block at the end of the function; the label is made unique."""
        unique, suffix = label, 0
        while unique in self._names:
            suffix += 1
            unique = f"{label}.{suffix}"
        self._names.add(unique)
        block = Block(self, unique)
        self.blocks.append(block)
        return block

    def fresh(self, stem: str = "") -> str:
        """A new local name, `%`-prefixed; `stem` makes the IR readable."""
        if not stem:
            # No label and no parameter begins so.
            self._counter += 1
            return f"%.{self._counter}"
        stem = stem.replace(".", "_")
        name = stem
        while name in self._names:
            self._counter += 1
            name = f"{stem}.{self._counter}"
        self._names.add(name)
        return f"%{_quoted(name)}"

    def text(self) -> str:
        """The definition."""
        params = ", ".join(
            " ".join(filter(None, (p.type.text, self.param_attributes.get(i), p.text)))
            for i, p in enumerate(self.params)
        )
        head = " ".join(filter(None, ("define", self.linkage, self.convention, self.result.text)))
        attributes = " ".join(self.attributes)
        lines = [f"{head} @{_quoted(self.name)}({params}) {attributes} {{"]
        entry = self.entry.text()
        lines += [entry[0], *self.allocas, *entry[1:]]
        for block in self.blocks[1:]:
            lines += block.text()
        lines.append("}")
        return "\n".join(lines)


class Module:
    """A module under construction: functions, globals, declarations, metadata.

    `text()` is the whole of it; the target triple and data layout are added by `llvm.optimise`.
    """

    def __init__(self, name: str = "tile") -> None:
        self.name = name
        self.functions: list[Function] = []
        self._globals: dict[str, str] = {}
        self._declarations: dict[str, str] = {}
        self._declared: dict[tuple[object, ...], V] = {}
        self._intrinsics: dict[tuple[object, ...], V] = {}
        self._metadata: list[str] = []
        self._metadata_ids: dict[str, str] = {}
        self._named_metadata: dict[str, list[str]] = {}

    def function(
        self,
        name: str,
        result: LType,
        params: Sequence[tuple[LType, str]],
        *,
        linkage: str = "",
        convention: str = "",
        attributes: Sequence[str] = ("nounwind",),
    ) -> Function:
        """Define a function with parameters `(type, name)`.

        `linkage` is LLVM's word ("internal"), `convention` the calling convention ("ptx_kernel");
        attributes of the target are in `llvm.Target.attributes`.
        """
        if any(function.name == name for function in self.functions):
            raise EmitError(f"function {name} is defined twice")
        function = Function(
            self,
            name,
            result,
            params,
            linkage=linkage,
            convention=convention,
            attributes=attributes,
        )
        self.functions.append(function)
        return function

    def declare(
        self,
        name: str,
        result: LType,
        params: Sequence[LType],
        *,
        attributes: str = "",
        variadic: bool = False,
    ) -> V:
        """Declare an external function (once; a second, different declaration is an error)."""
        signature = (name, result, *params, attributes, variadic)
        declared = self._declared.get(signature)
        if declared is not None:
            return declared
        inner = ", ".join([param.text for param in params] + (["..."] if variadic else []))
        text = f"declare {result.text} @{_quoted(name)}({inner}) {attributes}".rstrip()
        known = self._declarations.setdefault(name, text)
        if known != text:
            raise EmitError(f"{name} is declared as `{known}` and as `{text}`")
        made = self._declared[signature] = V(f"@{_quoted(name)}", ptr)
        return made

    def intrinsic(
        self, name: str, result: LType, params: tuple[LType, ...], overloads: tuple[LType, ...]
    ) -> V:
        """Declare `llvm.<name>` with the suffixes of `overloads`."""
        key = name, result, params, overloads
        made = self._intrinsics.get(key)
        if made is None:
            full = ".".join(("llvm", name, *(overload.mangled for overload in overloads)))
            made = self._intrinsics[key] = self.declare(full, result, params)
        return made

    def global_(
        self,
        name: str,
        type_: LType,
        initial: str | None,
        *,
        constant: bool = False,
        linkage: str = "internal",
        address: LType = ptr,
        align: int,
    ) -> V:
        """Define a global variable; `initial` is LLVM's constant text, None for an external one."""
        space = f"addrspace({address.address_space})" if address.address_space else ""
        words = (
            f"@{_quoted(name)} =",
            "external" if initial is None else linkage,
            space,
            "constant" if constant else "global",
            type_.text,
            initial,
        )
        text = " ".join(filter(None, words)) + f", align {align}"
        known = self._globals.setdefault(name, text)
        if known != text:
            raise EmitError(f"global {name} is defined as `{known}` and as `{text}`")
        return V(f"@{_quoted(name)}", address)

    def constant_table(self, name: str, values: Sequence[V], *, align: int) -> V:
        """An internal constant array of scalar constants of one type; returns its address."""
        element = values[0].type
        inner = ", ".join(str(value) for value in values)
        type_ = array(element, len(values))
        return self.global_(name, type_, f"[{inner}]", constant=True, align=align)

    def string(self, name: str, data: bytes) -> V:
        """An internal constant byte string, not terminated by itself; returns its address."""
        inner = "".join(f"\\{byte:02X}" for byte in data)
        type_ = array(i8, len(data))
        return self.global_(name, type_, f'c"{inner}"', constant=True, align=1)

    def metadata(self, body: str, *, distinct: bool = False) -> str:
        """A metadata node (`!{i32 1}`) and its reference (`!0`); equal nodes are shared."""
        if not distinct and body in self._metadata_ids:
            return self._metadata_ids[body]
        reference = f"!{len(self._metadata)}"
        self._metadata.append(f"{reference} = {'distinct ' if distinct else ''}{body}")
        if not distinct:
            self._metadata_ids[body] = reference
        return reference

    def alias_scopes(self, names: Sequence[str]) -> list[str]:
        """References of fresh alias scopes of one domain, for `!alias.scope` and `!noalias`."""
        domain = f"!{len(self._metadata)}"
        self._metadata.append(f'{domain} = distinct !{{{domain}, !"tiles"}}')
        scopes = []
        for name in names:
            scope = f"!{len(self._metadata)}"
            self._metadata.append(f'{scope} = distinct !{{{scope}, {domain}, !"{name}"}}')
            scopes.append(scope)
        return scopes

    def named_metadata(self, name: str, reference: str) -> None:
        """Append a node to a named list (`!nvvm.annotations`, `!llvm.module.flags`)."""
        self._named_metadata.setdefault(name, []).append(reference)

    def text(self) -> str:
        """The module in LLVM's textual form."""
        parts = [f"; {self.name}", *self._globals.values()]
        parts += [function.text() for function in self.functions]
        defined = {function.name for function in self.functions}
        parts += [text for name, text in self._declarations.items() if name not in defined]
        parts += [
            f"!{name} = !{{{', '.join(refs)}}}" for name, refs in self._named_metadata.items()
        ]
        parts += self._metadata
        return "\n".join(parts) + "\n"
