"""Values, operations, blocks and regions: tile IR in SSA form with structured control flow.

An operation is a class whose fields are declared with ``operand()``, ``optional()``,
``operands()``, ``attribute()`` and ``region()``; ``@op`` gives it its name and registers it.
Printing, parsing, cloning, use lists and verification are generic over these fields.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tritium.diagnostics import Loc

from .dtypes import Type

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:  # noqa: D103 - see typing
        return lambda cls: cls


class Value:
    """One result of an operation or one argument of a block.

    ``uses`` holds every place that reads it, as (operation, operand index), in order of creation.
    """

    __slots__ = ("name", "owner", "type", "uses")

    def __init__(self, type: Type, owner: Op | Block | None = None, name: str = "") -> None:
        self.type = type
        self.owner = owner
        self.name = name
        self.uses: dict[tuple[Op, int], None] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def scalar(self) -> Type:
        return self.type.scalar

    @property
    def defining_op(self) -> Op | None:
        """The operation this is a result of; None for a block argument."""
        return self.owner if isinstance(self.owner, Op) else None

    def users(self) -> list[Op]:
        """Every operation that reads this value, once each, in order."""
        return list(dict.fromkeys(user for user, _ in self.uses))

    def replace_all_uses_with(self, other: Value) -> None:
        """Let every reader read ``other`` instead."""
        for user, index in list(self.uses):
            user.set_operand(index, other)

    def add_use(self, user: Op, index: int) -> None:
        self.uses[(user, index)] = None

    def remove_use(self, user: Op, index: int) -> None:
        del self.uses[(user, index)]

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))}: {self.type}"


class ConcreteValue(Value):
    """A value that is known: eager mode's. ``data`` is a NumPy array of the storage dtype.

    ``fixed`` marks a scalar that is made of constants alone, so the compiler knows it as well;
    ``polled`` what is made of what was polled, read from memory that another program may change.

    Nothing rewrites eager operations, so their uses are not recorded and can be freed.
    """

    __slots__ = ("data", "fixed", "polled")

    def __init__(self, type: Type, data: Any, name: str = "") -> None:
        super().__init__(type, None, name)
        self.data = data
        self.fixed = False
        self.polled = False

    def add_use(self, user: Op, index: int) -> None:
        """Not recorded."""

    def remove_use(self, user: Op, index: int) -> None:
        """Not recorded."""


class Block:
    """Arguments and a list of operations, the last one a terminator."""

    __slots__ = ("args", "ops", "region")

    def __init__(self, arg_types: Sequence[Type] = (), names: Sequence[str] = ()) -> None:
        self.args = [
            Value(type, self, names[i] if i < len(names) else "")
            for i, type in enumerate(arg_types)
        ]
        self.ops: list[Op] = []
        self.region: Region | None = None

    def append(self, op: Op) -> None:
        op.parent = self
        self.ops.append(op)

    def insert(self, index: int, op: Op) -> None:
        op.parent = self
        self.ops.insert(index, op)

    def insert_before(self, anchor: Op, op: Op) -> None:
        self.insert(self.ops.index(anchor), op)

    @property
    def terminator(self) -> Op | None:
        return self.ops[-1] if self.ops and self.ops[-1].terminator else None

    @property
    def parent_op(self) -> Op | None:
        return self.region.parent if self.region is not None else None

    def add_arg(self, type: Type, name: str = "") -> Value:
        self.args.append(Value(type, self, name))
        return self.args[-1]


class Region:
    """The body of an operation: one block (control flow is structured)."""

    __slots__ = ("block", "parent")

    def __init__(self, block: Block | None = None) -> None:
        self.block = block if block is not None else Block()
        self.block.region = self
        self.parent: Op | None = None

    @property
    def args(self) -> list[Value]:
        return self.block.args

    @property
    def ops(self) -> list[Op]:
        return self.block.ops

    def walk(self) -> Iterator[Op]:
        """Every operation inside, outer before inner, in program order."""
        for each in list(self.block.ops):
            yield each
            for inner in each.regions:
                yield from inner.walk()


class Effects(enum.Flag):
    """What an operation does besides computing its results."""

    NONE = 0
    READS = enum.auto()
    """Reads memory."""
    WRITES = enum.auto()
    """Writes memory."""
    ORDERED = enum.auto()
    """Stays where it is in program order: prints, assertions, barriers."""


PURE = Effects.NONE
READS = Effects.READS
WRITES = Effects.WRITES
ORDERED = Effects.ORDERED


class FieldKind(enum.Enum):
    """How a field of an operation is stored and printed."""

    OPERAND = "operand"
    OPTIONAL = "optional"
    OPERANDS = "operands"
    ATTRIBUTE = "attribute"
    REGION = "region"


_REQUIRED: Any = object()


class Field:
    """A declared field of an operation class."""

    __slots__ = ("default", "kind", "name")

    def __init__(self, kind: FieldKind, default: Any = _REQUIRED) -> None:
        self.kind = kind
        self.default = default
        self.name = ""

    @property
    def required(self) -> bool:
        return self.default is _REQUIRED

    @property
    def is_operand(self) -> bool:
        return self.kind in (FieldKind.OPERAND, FieldKind.OPTIONAL, FieldKind.OPERANDS)


def operand() -> Any:
    """Exactly one operand."""
    return Field(FieldKind.OPERAND)


def optional() -> Any:
    """One operand or None."""
    return Field(FieldKind.OPTIONAL, None)


def operands() -> Any:
    """Any number of operands, as a tuple."""
    return Field(FieldKind.OPERANDS, ())


def attribute(default: Any = _REQUIRED) -> Any:
    """A compile-time constant: int, float, bool, str, None, a type, or a tuple of these."""
    return Field(FieldKind.ATTRIBUTE, default)


def region() -> Any:
    """A nested region."""
    return Field(FieldKind.REGION)


def _operand_property(position: int, kind: FieldKind, doc: str) -> property:
    if kind is FieldKind.OPERAND:

        def single(self: Op) -> Value:
            return self.operands[self.bounds[position]]

        return property(single, doc=doc)
    if kind is FieldKind.OPTIONAL:

        def maybe(self: Op) -> Value | None:
            start = self.bounds[position]
            return self.operands[start] if self.bounds[position + 1] > start else None

        return property(maybe, doc=doc)

    def several(self: Op) -> tuple[Value, ...]:
        return tuple(self.operands[self.bounds[position] : self.bounds[position + 1]])

    return property(several, doc=doc)


class OpMeta(type):
    """Turns declared fields into slots and operand properties."""

    fields: dict[str, Field]

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **extra: Any
    ) -> OpMeta:
        fields: dict[str, Field] = {}
        for base in bases:
            fields.update(getattr(base, "fields", {}))
        own = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, declared in own.items():
            declared.name = key
            del namespace[key]
        fields.update(own)
        slots = [key for key, declared in own.items() if not declared.is_operand]
        namespace["__slots__"] = (*namespace.get("__slots__", ()), *slots)
        position = 0
        for key, declared in fields.items():
            if declared.is_operand:
                if key in own:
                    namespace[key] = _operand_property(position, declared.kind, key)
                position += 1
        namespace["fields"] = fields
        namespace["region_names"] = tuple(
            key for key, declared in fields.items() if declared.kind is FieldKind.REGION
        )
        made = super().__new__(mcls, name, bases, namespace, **extra)
        return made


@dataclass_transform(
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(operand, optional, operands, attribute, region),
)
class Op(metaclass=OpMeta):
    """Base of every operation.

    Subclasses declare fields and define ``infer`` (result types from operands and attributes; the
    verifier runs it again) and ``evaluate`` (the reference rule on NumPy arrays: this *is* the
    meaning of the operation).
    """

    __slots__ = ("bounds", "loc", "operands", "parent", "results")

    mnemonic: ClassVar[str] = ""
    """``family.verb``, set by ``@op``, as are its parts."""
    family: ClassVar[str] = ""
    verb: ClassVar[str] = ""
    fields: ClassVar[dict[str, Field]] = {}
    region_names: ClassVar[tuple[str, ...]] = ()
    """Those of the fields that are regions, which most operations don't have."""
    effects: ClassVar[Effects] = PURE
    terminator: ClassVar[bool] = False
    unsupported: ClassVar[Mapping[str, str]] = {}
    """The executors that have no code for it, each with the reason: for which no such kernel is
    compiled."""

    operands: list[Value]
    bounds: tuple[int, ...]
    results: list[Value]
    loc: Loc | None
    parent: Block | None

    if not TYPE_CHECKING:

        def __init__(self, *, loc: Loc | None = None, **given: Any) -> None:
            self.loc = loc
            self.parent = None
            self.results = []
            flat: list[Value] = []
            bounds = [0]
            for key, declared in self.fields.items():
                value = given.pop(key, declared.default)
                if value is _REQUIRED:
                    raise TypeError(f"{self.mnemonic} needs the field {key}")
                kind = declared.kind
                if kind is FieldKind.ATTRIBUTE:
                    setattr(self, key, value)
                elif kind is FieldKind.REGION:
                    setattr(self, key, value)
                    if isinstance(value, Region):
                        value.parent = self
                else:
                    if kind is FieldKind.OPERANDS:
                        flat.extend(value)
                    elif value is not None:
                        flat.append(value)
                    bounds.append(len(flat))
            if given:
                raise TypeError(f"{self.mnemonic} has no field {next(iter(given))}")
            self.operands = flat
            self.bounds = tuple(bounds)
            for index, value in enumerate(flat):
                value.add_use(self, index)

    def infer(self) -> Type | tuple[Type, ...] | None:
        """Result types; None for no result. Raises a coded error for operands it refuses."""
        raise TypeError(f"{type(self).__name__} has no type rule")

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        """The results, as NumPy arrays in storage dtypes, from the operands' arrays.

        Absent optional operands arrive as None and a variadic field as a tuple, so the positional
        parameters after ``machine`` are the operand fields in order.
        """
        raise TypeError(f"{type(self).__name__} has no reference rule")

    def result_types(self) -> tuple[Type, ...]:
        """``infer`` as a tuple."""
        inferred = self.infer()
        if inferred is None:
            return ()
        return inferred if isinstance(inferred, tuple) else (inferred,)

    def make_results(self, name: str = "") -> list[Value]:
        """Create the result values from ``infer``."""
        self.results = [Value(type, self, name) for type in self.result_types()]
        return self.results

    @property
    def result(self) -> Value:
        """The only result."""
        (only,) = self.results
        return only

    @property
    def regions(self) -> tuple[Region, ...]:
        names = self.region_names
        if not names:
            return ()
        found = (getattr(self, name) for name in names)
        return tuple(each for each in found if isinstance(each, Region))

    @property
    def attributes(self) -> dict[str, Any]:
        """Attribute fields by name."""
        return {
            key: getattr(self, key)
            for key, declared in self.fields.items()
            if declared.kind is FieldKind.ATTRIBUTE
        }

    def operand_groups(self) -> list[Value | tuple[Value, ...] | None]:
        """Operand fields in order: a value, None, or a tuple for each."""
        return [getattr(self, key) for key, declared in self.fields.items() if declared.is_operand]

    def set_operand(self, index: int, value: Value) -> None:
        """Read ``value`` as the operand with that flat index."""
        self.operands[index].remove_use(self, index)
        self.operands[index] = value
        value.add_use(self, index)

    def set_group(self, name: str, values: Sequence[Value]) -> None:
        """Replace the values of one operand field; their number may change."""
        names = [key for key, declared in self.fields.items() if declared.is_operand]
        position = names.index(name)
        for index, value in enumerate(self.operands):
            value.remove_use(self, index)
        start, stop = self.bounds[position], self.bounds[position + 1]
        self.operands[start:stop] = values
        shift = len(values) - (stop - start)
        self.bounds = (
            *self.bounds[: position + 1],
            *(bound + shift for bound in self.bounds[position + 1 :]),
        )
        for index, value in enumerate(self.operands):
            value.add_use(self, index)

    def drop_operands(self) -> None:
        """Stop reading every operand, here and in nested regions."""
        for index, value in enumerate(self.operands):
            value.remove_use(self, index)
        self.operands = []
        self.bounds = (0,) * len(self.bounds)
        for inner in self.regions:
            for each in inner.ops:
                each.drop_operands()

    def erase(self) -> None:
        """Take the operation out of its block. Its results must have no readers left."""
        for result in self.results:
            if result.uses:
                raise ValueError(f"{self.mnemonic} is still used by {result.users()[0].mnemonic}")
        self.drop_operands()
        if self.parent is not None:
            self.parent.ops.remove(self)
            self.parent = None

    def clone(self, mapping: dict[Value, Value]) -> Op:
        """A copy that reads ``mapping``'s values; results and inner values are added to it."""
        given: dict[str, Any] = {}
        for key, declared in self.fields.items():
            value = getattr(self, key)
            if declared.kind is FieldKind.OPERANDS:
                value = tuple(mapping.get(each, each) for each in value)
            elif declared.is_operand and value is not None:
                value = mapping.get(value, value)
            elif declared.kind is FieldKind.REGION:
                value = clone_region(value, mapping)
            given[key] = value
        build: Any = type(self)  # its fields are only known to the class
        made: Op = build(loc=self.loc, **given)
        made.results = [Value(old.type, made, old.name) for old in self.results]
        mapping.update(zip(self.results, made.results))
        return made

    def __repr__(self) -> str:
        from .printer import op_text

        return op_text(self)


def clone_region(source: Region, mapping: dict[Value, Value]) -> Region:
    """A copy of a region; values from outside are looked up in ``mapping``."""
    block = Block([arg.type for arg in source.args], [arg.name for arg in source.args])
    mapping.update(zip(source.args, block.args))
    for each in source.ops:
        block.append(each.clone(mapping))
    return Region(block)


REGISTRY: dict[str, type[Op]] = {}
"""Every operation class by its mnemonic."""

OpClass = TypeVar("OpClass", bound=type[Op])


def op(
    mnemonic: str, *, effects: Effects = PURE, terminator: bool = False
) -> Callable[[OpClass], OpClass]:
    """Class decorator: name the operation ``family.verb``, state its effects, register it."""

    def register(cls: OpClass) -> OpClass:
        if mnemonic in REGISTRY:
            raise ValueError(f"operation {mnemonic} is defined twice")
        if not (cls.__doc__ or "").strip():
            raise ValueError(f"operation {mnemonic} needs a docstring")
        cls.mnemonic = mnemonic
        cls.family, _, cls.verb = mnemonic.partition(".")
        cls.effects = effects
        cls.terminator = terminator
        REGISTRY[mnemonic] = cls
        return cls

    return register


class Param:
    """A parameter of a kernel function: name, type and what is known of its values."""

    __slots__ = ("divisibility", "name", "value")

    def __init__(self, name: str, value: Value, divisibility: int = 1) -> None:
        self.name = name
        self.value = value
        self.divisibility = divisibility

    @property
    def type(self) -> Type:
        return self.value.type


class Function:
    """A kernel in tile IR: its parameters are the arguments of the body's block."""

    __slots__ = ("body", "loc", "name", "params")

    def __init__(
        self,
        name: str,
        params: Sequence[tuple[str, Type, int]],
        loc: Loc | None = None,
    ) -> None:
        self.name = name
        self.loc = loc
        self.body = Region(Block([p[1] for p in params], [p[0] for p in params]))
        self.params = [
            Param(name, value, divisibility)
            for (name, _, divisibility), value in zip(params, self.body.args)
        ]

    def walk(self) -> Iterator[Op]:
        """Every operation, outer before inner, in program order."""
        return self.body.walk()

    def __repr__(self) -> str:
        from .printer import function_text

        return function_text(self)
