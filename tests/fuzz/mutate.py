"""Mutations of kernels: what a user mistypes, misorders or misunderstands, one to three a program.

A mutation changes the syntax tree of one function of a module's text. What comes out is Python (it
compiles), but seldom a valid kernel.
"""

from __future__ import annotations

import ast
import copy
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

CONSTANTS: tuple[Any, ...] = (
    *(0, 1, 2, -1, 3, 7, 16, 64, 1000, 2**20, 2**31 - 1, 2**31, 2**32, 2**63, -(2**63), 2**64),
    *(1.5, 0.0, -0.0, 1e-40, 1e300, float("inf"), None, True, False, "x", "", "tf32", b"x", 1j),
    ...,
)
EXTENTS = (0, 1, 2, 3, 5, 8, 16, 17, 64, 100, 1024, 4096, 2**20, 2**31, -1, -8)
DTYPES = (
    *("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16"),
    *("bfloat16", "float32", "float64", "float8e5", "float8e4nv", "void", "constexpr", "tensor"),
)
KEYWORDS = (
    *("mask", "other", "axis", "dim", "dtype", "keep_dims", "bitcast", "volatile", "reverse"),
    *("descending", "return_indices", "acc", "out_dtype", "input_precision", "sem", "scope"),
    *("cache_modifier", "eviction_policy", "boundary_check", "padding_option", "propagate_nan"),
    *("fp_downcast_rounding", "exclusive", "hex", "num_stages", "nonsense"),
)
BINARY = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult),
    *(ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift),
)
COMPARISONS = (
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot),
)
UNARY = (ast.USub, ast.UAdd, ast.Invert, ast.Not)
METHODS = ("to", "sum", "max", "T", "shape", "dtype", "store", "reshape", "nope", "value", "item")
MOST_TRIES = 40

Place: TypeAlias = "tuple[ast.AST, str, int | None]"
"""A field of a node, and the number in the list that the field holds."""


def parsed(text: str) -> Any:
    """One expression of a text."""
    return ast.parse(text, mode="eval").body


@dataclass(frozen=True)
class Mutant:
    """A mutated module: its text and what was done to it."""

    source: str
    kinds: tuple[str, ...]


class Mutator:
    """Changes one function's tree in place, by choices of ``random``."""

    def __init__(
        self, function: ast.FunctionDef, surface: tuple[str, ...], chance: random.Random
    ) -> None:
        self.function = function
        self.surface = surface
        self.random = chance

    # ---- places ----------------------------------------------------------------------------------

    def get(self, place: Place) -> Any:
        node, field, index = place
        held = getattr(node, field)
        return held if index is None else held[index]

    def put(self, place: Place, made: Any) -> None:
        node, field, index = place
        if index is None:
            setattr(node, field, made)
        else:
            getattr(node, field)[index] = made

    def places(self, cls: Any, *, stored: bool = False) -> list[Place]:
        """The places of nodes of a class in the function's body; values only unless ``stored``."""
        found: list[Place] = []
        for node in self.nodes():
            for field, held in ast.iter_fields(node):
                each = enumerate(held) if isinstance(held, list) else [(None, held)]
                for index, child in each:
                    wanted = isinstance(child, cls)
                    if wanted and (stored or not isinstance(_context(child), ast.Store)):
                        found.append((node, field, index))
        return found

    def nodes(self) -> Iterator[ast.AST]:
        for statement in self.function.body:
            yield from ast.walk(statement)

    def some(self, places: Any) -> Any:
        """One of these, or None where there are none."""
        places = list(places)
        return self.random.choice(places) if places else None

    def an_expression(self) -> Place | None:
        places = [each for each in self.places(ast.expr) if each[1] not in ("annotation", "keys")]
        return self.some(places)

    def constant(self) -> Any:
        value = self.random.choice(CONSTANTS)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            text = 'float("inf")' if value == float("inf") else repr(value)
            return parsed(text)
        return ast.Constant(value)

    def blocks(self) -> list[list[ast.stmt]]:
        """The lists of statements of the function."""
        found = [self.function.body]
        for node in self.nodes():
            for field in ("body", "orelse"):
                held = getattr(node, field, None)
                if isinstance(node, ast.stmt) and isinstance(held, list) and held:
                    found.append(held)
        return found

    def names(self) -> list[str]:
        found = {node.id for node in self.nodes() if isinstance(node, ast.Name)}
        return sorted({"n", *found, *(each.arg for each in self.function.args.args)})

    # ---- expressions -----------------------------------------------------------------------------

    def operator(self) -> bool:
        kinds = {ast.operator: BINARY, ast.cmpop: COMPARISONS, ast.unaryop: UNARY}
        place = self.some(self.places((*kinds, ast.boolop)))
        if place is None:
            return False
        old = self.get(place)
        if isinstance(old, ast.boolop):
            self.put(place, ast.Or() if isinstance(old, ast.And) else ast.And())
            return True
        choices = next(made for kind, made in kinds.items() if isinstance(old, kind))
        self.put(place, self.random.choice(choices)())
        return True

    def number(self) -> bool:
        place = self.some(self.places(ast.Constant))
        if place is None:
            return False
        self.put(place, self.constant())
        return True

    def extent(self) -> bool:
        """Another number among a shape's, a range's, or arguments."""
        inside = (ast.Tuple, ast.List, ast.Call, ast.Slice)
        places = self.places(ast.Constant)
        place = self.some(each for each in places if isinstance(each[0], inside))
        if place is None:
            return False
        self.put(place, parsed(repr(self.random.choice(EXTENTS))))
        return True

    def operand(self) -> bool:
        place = self.an_expression()
        if place is None:
            return False
        self.put(place, self.constant())
        return True

    def name(self) -> bool:
        place = self.some(self.places(ast.Name))
        if place is None:
            return False
        chosen = self.random.choice([*self.names(), "undefined", "tl"])
        self.put(place, ast.Name(chosen, ast.Load()))
        return True

    def exchange(self) -> bool:
        """An expression in another one's place."""
        source, target = self.an_expression(), self.an_expression()
        if source is None or target is None or source == target:
            return False
        self.put(target, copy.deepcopy(self.get(source)))
        return True

    def dtype(self) -> bool:
        places = [each for each in self.places(ast.Attribute) if self.get(each).attr in DTYPES]
        place = self.some(places) if places else self.an_expression()
        if place is None:
            return False
        made = parsed(f"tl.{self.random.choice(DTYPES)}")
        if not places:
            made = ast.Call(ast.Attribute(self.get(place), "to", ast.Load()), [made], [])
        self.put(place, made)
        return True

    def attribute(self) -> bool:
        """Another function of the library, another method, another attribute."""
        place = self.some(self.places(ast.Attribute))
        if place is None:
            return False
        node = copy.deepcopy(self.get(place))
        of_library = isinstance(node.value, ast.Name) and node.value.id == "tl"
        node.attr = self.random.choice(self.surface if of_library else METHODS)
        self.put(place, node)
        return True

    def index(self) -> bool:
        place = self.an_expression()
        if place is None:
            return False
        texts = (":", "None", "0", "-1", "::2", "::-1", "1:3", "...", "0, 0", "None, :", ":, None")
        texts += ("1.5", "2**31", "tl.arange(0, 4)", "n", "0:0", "None:2**40", "::0", "()", "'x'")
        subscript = parsed(f"x[{self.random.choice(texts)}]")
        subscript.value = self.get(place)
        self.put(place, subscript)
        return True

    def wrap(self) -> bool:
        """An expression inside of another form."""
        place = self.an_expression()
        if place is None:
            return False
        forms = (
            *("(HERE,)", "[HERE]", "(HERE, HERE)", "{HERE}", "{HERE: HERE}", "(lambda: HERE)"),
            *("(lambda: HERE)()", "not HERE", "-HERE", "~HERE", "+HERE", "HERE()", "f'{HERE}'"),
            *("HERE if HERE else HERE", "HERE if n else 0", "(kept := HERE)", "HERE and HERE"),
            *("HERE < HERE < HERE", "HERE is None", "HERE in (HERE,)", "len(HERE)", "int(HERE)"),
            *("float(HERE)", "bool(HERE)", "abs(HERE)", "str(HERE)", "range(HERE)", "print(HERE)"),
            *("tl.constexpr(HERE)", "tl.tuple(HERE)", "tl.to_tensor(HERE)", "HERE.dtype", "HERE.T"),
            *("HERE.shape[0]", "[q for q in HERE]", "[q for q in (HERE, 1) if q]", "min(HERE, 3)"),
            *("max(HERE)", "hasattr(HERE, 'x')", "getattr(HERE, 'shape')", "isinstance(HERE, int)"),
            *("HERE ** 2", "HERE @ HERE", "2 ** HERE", "HERE << 40", "1 << HERE", "HERE // 0"),
            *(
                "HERE.to(tl.float32)",
                "HERE.nope",
                "HERE[0]",
                "HERE * 'x'",
                "type(HERE)",
                "id(HERE)",
            ),
        )
        made = parsed(self.random.choice(forms))
        old = self.get(place)

        class Fill(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> Any:
                return copy.deepcopy(old) if node.id == "HERE" else node

        self.put(place, Fill().visit(made))
        return True

    def unwrap(self) -> bool:
        """A part of an expression in the place of the whole."""
        place = self.an_expression()
        if place is None:
            return False
        parts = [
            each for each in ast.iter_child_nodes(self.get(place)) if isinstance(each, ast.expr)
        ]
        part = self.some(parts)
        if part is None:
            return False
        self.put(place, part)
        return True

    # ---- calls -----------------------------------------------------------------------------------

    def arguments(self) -> bool:
        """Drop, repeat, exchange or add an argument."""
        place = self.some(self.places(ast.Call))
        if place is None:
            return False
        call = self.get(place)
        kind = self.random.choice(("drop", "add", "twice", "shuffle", "star", "name"))
        if kind == "add" or not call.args:
            call.args.insert(self.random.randint(0, len(call.args)), self.constant())
        elif kind == "drop":
            call.args.pop(self.random.randrange(len(call.args)))
        elif kind == "twice":
            call.args.append(copy.deepcopy(self.random.choice(call.args)))
        elif kind == "star":
            at = self.random.randrange(len(call.args))
            call.args[at] = ast.Starred(call.args[at], ast.Load())
        elif kind == "name":
            value = call.args.pop()
            call.keywords.append(ast.keyword(self.random.choice(KEYWORDS), value))
        else:
            self.random.shuffle(call.args)
        return True

    def keyword(self) -> bool:
        """Another keyword, another value, one more or less."""
        place = self.some(self.places(ast.Call))
        if place is None:
            return False
        call = self.get(place)
        kind = self.random.choice(("add", "add", "rename", "drop", "value", "double"))
        if kind == "add" or not call.keywords:
            value = self.constant()
            if self.random.random() < 0.4:
                source = self.an_expression()
                value = copy.deepcopy(self.get(source)) if source is not None else value
            call.keywords.append(ast.keyword(self.random.choice(KEYWORDS), value))
            return True
        chosen = self.random.randrange(len(call.keywords))
        if kind == "rename":
            call.keywords[chosen].arg = self.random.choice(KEYWORDS)
        elif kind == "drop":
            call.keywords.pop(chosen)
        elif kind == "value":
            call.keywords[chosen].value = self.constant()
        else:
            call.keywords[chosen].arg = None
        return True

    # ---- statements ------------------------------------------------------------------------------

    def statement(self) -> bool:
        """Drop, repeat, move or exchange statements."""
        block = self.some(self.blocks())
        at = self.random.randrange(len(block))
        kind = self.random.choice(("drop", "repeat", "move", "exchange"))
        if kind == "drop":
            block.pop(at)
            if not block:
                block.append(ast.Pass())
        elif kind == "repeat":
            block.insert(at, copy.deepcopy(block[at]))
        elif kind == "exchange":
            other = self.random.randrange(len(block))
            block[at], block[other] = block[other], block[at]
        else:
            target = self.some(self.blocks())
            moved = copy.deepcopy(block[at])
            target.insert(self.random.randint(0, len(target)), moved)
            if len(block) > 1:
                block.pop(at)
        return True

    def insert(self) -> bool:
        """A statement that hardly ever belongs there."""
        target = self.random.choice(self.names())
        value = self.random.choice((*self.names(), "1", "1.5", "None", "(1, 2)", "tl.float32"))
        texts = (
            *("return", f"return {value}", f"return {value}, 1", "break", "continue", "pass"),
            *(f"{target} = {value}", f"{target} += {value}", f"{target}: tl.constexpr = {value}"),
            *(f"{target}, {target} = {value}", f"{target} = {target} = {value}", f"del {target}"),
            *(f"{target}[0] = {value}", f"{target}.x = {value}", f"assert {value}", f"{value}"),
            *(f"global {target}", f"raise {value}", "import os", f"{target}: tl.constexpr"),
            *(f"*{target}, = {value}", f"tl.static_assert({value})", f"print('x', {value})"),
            *(f"tl.static_print({value})", f"tl.device_assert({value})", f"def {target}(): pass"),
            *("yield 1", f"with {value}: pass", "try: pass\nfinally: pass", f"{target} -= 2**31"),
        )
        block = self.some(self.blocks())
        made = ast.parse(self.random.choice(texts)).body
        at = self.random.randint(0, len(block))
        block[at:at] = made
        return True

    def nest(self) -> bool:
        """Statements inside of a loop or branch."""
        block = self.some(self.blocks())
        start = self.random.randrange(len(block))
        stop = self.random.randint(start + 1, min(len(block), start + 3))
        condition = self.random.choice([*self.names(), "n > 3", "True", "0", "tl.program_id(0)"])
        heads = (
            *(
                f"if {condition}:",
                f"while {condition}:",
                "for it in range(2):",
                "for it in (1, 2):",
            ),
            *("for it in tl.static_range(2):", f"for it in range({condition}):", "with n:"),
            *("for it in range(0):", "for it in range(3, 0, -1):", f"if {condition}: pass\nelse:"),
            *("for it in range(2): pass\nelse:", "for n in range(2):", "for it, x in range(2):"),
            *("try:", "class A:", "def g():", f"for it in tl.range(0, 2, {condition}):"),
        )
        head = self.random.choice(heads)
        text = f"{head}\n    pass" + ("\nfinally:\n    pass" if head == "try:" else "")
        outer: Any = ast.parse(text).body[0]
        inner = outer.orelse if getattr(outer, "orelse", None) else outer.body
        inner[:] = block[start:stop]
        block[start:stop] = [outer]
        return True

    def unnest(self) -> bool:
        """The statements of a loop or branch without it."""
        found = [
            (block, at)
            for block in self.blocks()
            for at, each in enumerate(block)
            if isinstance(each, (ast.If, ast.For, ast.While))
        ]
        if not found:
            return False
        block, at = self.random.choice(found)
        held: Any = block[at]
        block[at : at + 1] = held.body + (held.orelse if self.random.random() < 0.3 else [])
        return True

    def bounds(self) -> bool:
        """Other bounds, another step, another kind of loop."""
        loops = [node for node in self.nodes() if isinstance(node, ast.For)]
        if not loops:
            return False
        loop = self.random.choice(loops)
        if isinstance(loop.iter, ast.Call) and self.random.random() < 0.6:
            numbers = ("0", "-1", "1", "2**31", "1.5", "n", "None", "-2**31", "(1, 2)", "2**63")
            text = self.random.choice(numbers)
            at = self.random.randint(0, len(loop.iter.args))
            loop.iter.args[at : at + 1] = [parsed(text)]
        else:
            kinds = (
                "range(3)",
                "tl.static_range(3)",
                "tl.range(3, num_stages=2)",
                "(1, 2, 3)",
                "n",
            )
            kinds += ("range(4, 0, -1)", "range(0, 4, 0)", "tl.static_range(n)", "reversed((1, 2))")
            kinds += ("tl.static_range(0, 4, 0)", "tl.static_range(2**31)", "enumerate((1, 2))")
            loop.iter = parsed(self.random.choice(kinds))
        return True

    def annotate(self) -> bool:
        """A variable that is declared, a parameter that is known."""
        found = [
            (block, at)
            for block in self.blocks()
            for at, each in enumerate(block)
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        ]
        if not found or self.random.random() < 0.3:
            each = self.some(self.function.args.args)
            if each is None:
                return False
            text = self.random.choice(("tl.constexpr", "tl.const", "tl.int64", "'constexpr'"))
            each.annotation = None if each.annotation is not None else parsed(text)
            return True
        block, at = self.random.choice(found)
        held: Any = block[at]
        note = parsed(self.random.choice(("tl.constexpr", "tl.int32", "int")))
        block[at] = ast.AnnAssign(held.targets[0], note, held.value, 1)
        return True

    def choices(self) -> list[Callable[[], bool]]:
        often = [
            self.operand,
            self.exchange,
            self.wrap,
            self.attribute,
            self.keyword,
            self.statement,
        ]
        return [
            *often,
            *often,
            *(self.operator, self.number, self.extent, self.name, self.dtype, self.index),
            *(self.unwrap, self.arguments, self.insert, self.nest, self.unnest, self.bounds),
            self.annotate,
        ]


def _context(node: Any) -> Any:
    return getattr(node, "ctx", None)


def mutated(source: str, surface: tuple[str, ...], chance: random.Random) -> Mutant:
    """A mutant of a module's text: one to three changes of one of its kernels' functions.

    ``surface`` has the names of ``tl``.
    """
    for _ in range(MOST_TRIES):
        tree = ast.parse(source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        functions = [node for node in functions if node.decorator_list]
        mutator = Mutator(chance.choice(functions), surface, chance)
        kinds: list[str] = []
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3))):
            change = chance.choice(mutator.choices())
            if change():
                kinds.append(change.__name__)
        text = _text(tree) if kinds else None
        if text is not None and text != ast.unparse(ast.parse(source)):
            return Mutant(text, tuple(kinds))
    raise AssertionError("no mutation gives a program")


def _text(tree: ast.Module) -> str | None:
    """The module as text, where Python accepts it."""
    try:
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<mutant>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):
        # A form that Python doesn't have, there.
        return None
    return text
