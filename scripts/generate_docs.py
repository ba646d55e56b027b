"""Writes the pages of the documentation that come from the source; with --check, compares them.

Each page is a function that returns its text, registered in PAGES under its file name.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tritium import knobs, ops
from tritium.backends.common.structural import STRUCTURAL
from tritium.backends.nvptx.rules import NVPTX
from tritium.diagnostics import CATALOGUE, SECTIONS, exception_class
from tritium.ir import dtypes
from tritium.ir.core import REGISTRY, Op
from tritium.ir.dtypes import DType, Type
from tritium.ir.types import PointerType
from tritium.ops.spec import Agreement, Order, Ulp, agreement_of, cases_of

DOCS = Path(__file__).parents[1] / "docs"

NOTICE = "<!-- Written by scripts/generate_docs.py: change the source, not this file. -->"


def code(text: str) -> str:
    """``text`` as a code span inside a table; empty text stays empty."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    pad = " " if fence == "``" else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def errors_page() -> str:
    """Every coded message."""
    lines = [
        NOTICE,
        "",
        "# Errors and warnings",
        "",
        "Every message has a code. The words in braces are filled in where it is raised. All",
        "classes derive from `TritiumError`, and from the Python exception that fits.",
    ]
    for prefix, title in SECTIONS.items():
        rows = [
            (
                code(entry.code),
                code(entry.template),
                "" if entry.help == "{hint}" else code(entry.help),
                code(exception_class(entry.kind).__name__),
            )
            for entry in sorted(CATALOGUE.values(), key=lambda entry: entry.code)
            if entry.code.startswith(prefix)
        ]
        lines += ["", f"## {title}", "", *table(("Code", "Message", "Help", "Class"), rows)]
    return "\n".join(lines) + "\n"


def knobs_page() -> str:
    """Every option and environment variable."""
    lines = [
        NOTICE,
        "",
        "# Options and environment variables",
        "",
        "Each option is an attribute of a group in `tritium.knobs`. Its value is what Python",
        "assigned to it, else its environment variable, else its default. A change of the",
        "environment takes effect at once. Of several variables the first that is set counts; an",
        "empty one counts as not set. `del knobs.cpu.num_threads` takes back what was assigned.",
        "`with knobs.cpu.scope():` keeps what is assigned inside to the block and to the thread.",
        "Assigning outside of a scope sets the variables too, for child processes, unless",
        "`knobs.propagate_env` is false.",
    ]
    rows = knobs.describe()
    for group in knobs.GROUPS:
        lines += ["", f"## {group.name}", "", type(group).__doc__ or "", ""]
        lines += table(
            ("Option", "Variables", "Type", "Default", "Meaning"),
            [
                (
                    code(row.name),
                    ", ".join(code(name) for name in row.environment),
                    row.type,
                    row.default,
                    row.doc,
                )
                for row in rows
                if row.name.startswith(f"{group.name}.")
            ],
        )
    return "\n".join(lines) + "\n"


def agreement_text(agreement: Agreement) -> str:
    """A class of agreement as ``docs/numerics.md`` names it."""
    match agreement:
        case Ulp(count):
            return f"{count:g} ulp"
        case Order(bound):
            return f"order({bound:g})"
    return "exact"


def load_operations() -> None:
    """Fill the registry."""
    for module in pkgutil.iter_modules(ops.__path__):
        importlib.import_module(f"{ops.__name__}.{module.name}")


FAMILIES: dict[str, Sequence[DType]] = {
    "int1": (dtypes.int1,),
    "signed": dtypes.SIGNED_INTEGERS,
    "unsigned": tuple(each for each in dtypes.UNSIGNED_INTEGERS if each is not dtypes.int1),
    "fp8": dtypes.FLOATS8,
    **{dtype.name: (dtype,) for dtype in dtypes.STANDARD_FLOATS},
}
"""Groups of element types that operations take or refuse together."""

EXECUTORS = {"interp": "reference", "cpu": "cpu", "nvptx": "nvptx"}
"""The executors that stand, and which of an operation's promises their rows show."""


def operations_page() -> str:
    """Every operation against every family of types, on the executors that stand."""
    load_operations()
    lines = [
        NOTICE,
        "",
        "# Operations",
        "",
        "Every operation of the tile IR, for every element type, on every executor that stands.",
        "The tests run each on cases of all the types that have a class here.",
        "",
        "The interpreter runs an operation's own rule, `evaluate`: its row says how far that may",
        "be from the exact result. The row of another executor says how far it may be from",
        "`evaluate`; rows that are equal are one. [](numerics.md) says what the classes mean, and",
        "why they are what they are. In brackets stand the widths of a family of types where not",
        "all are taken; a dash means that the operation has no operands of such types, on any",
        "executor. *any* marks what orders other operations.",
        "",
        "A backend has an operation in one of two ways: a *rule* works on a scalar or on the lanes",
        "of a vector and is shared by all backends, but for NVIDIA GPUs' *own rules*; the others",
        "are written by what places the work: *nests* of loops on the CPU, *layouts* of tiles in",
        "the registers of threads on NVIDIA GPUs. There each operation stands for all of its",
        "types, from compute capability 7.5 on. Where a backend has no code for an operation it",
        "says why, and compiling such a kernel for it is the error E0211.",
    ]
    head = ("Executor", "have code", "unsupported", "no such operands", "all")
    lines += [
        "",
        "## How many",
        "",
        "Cells of the tables below: an operation and a family of types, or *any*.",
        "",
        *table(head, [count_row(executor) for executor in EXECUTORS]),
    ]
    head = ("Operation", "Executor", *FAMILIES, "pointers", "on the CPU", "on NVIDIA GPUs")
    for family in sorted({cls.family for cls in REGISTRY.values()}):
        rows = [row for cls in members(family) for row in operation_rows(cls)]
        lines += ["", f"## {family}", "", *table(head, rows)]
    return "\n".join(lines) + "\n"


def count_row(executor: str) -> tuple[str, ...]:
    """How many cells of an executor there are of each kind."""
    lowered = missing = absent = 0
    for cls in REGISTRY.values():
        cells = operation_cells(cls, EXECUTORS[executor])
        taken = 1 if cells[0] == "any" else sum(cell != "-" for cell in cells)
        absent += 0 if cells[0] == "any" else len(cells) - taken
        if executor in cls.unsupported:
            missing += taken
        else:
            lowered += taken
    counted = lowered, missing, absent, lowered + missing + absent
    return (executor, *(str(number) for number in counted))


def members(family: str) -> list[type[Op]]:
    """The operations of a family, by name."""
    return [REGISTRY[each] for each in sorted(REGISTRY) if REGISTRY[each].family == family]


def operation_rows(cls: type[Op]) -> list[tuple[str, ...]]:
    """A row for all executors with the same classes."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for executor, promise in EXECUTORS.items():
        if executor in cls.unsupported:
            continue
        rows.setdefault(operation_cells(cls, promise), []).append(executor)
    return [
        (code(cls.mnemonic), ", ".join(executors), *cells, *lowerings(cls))
        for cells, executors in rows.items()
    ]


@functools.cache
def operation_cells(cls: type[Op], promise: str) -> tuple[str, ...]:
    """The classes for each family of types, then for pointers."""
    found: dict[Type, dict[str, None]] = {}
    for case in cases_of(cls):
        result = next((each.scalar for each in case.result_types()), case.dtype)
        text = agreement_text(agreement_of(cls, promise, result))
        found.setdefault(case.dtype, {})[text] = None
    pointers = [each for each in found if isinstance(each, PointerType)]
    groups: list[Sequence[DType | PointerType]] = [*FAMILIES.values(), pointers]
    return tuple(family_text(found, group) if found else "any" for group in groups)


def lowerings(cls: type[Op]) -> tuple[str, str]:
    """What writes an operation's machine code, on the CPU and on NVIDIA GPUs."""
    if cls.mnemonic in STRUCTURAL:
        cpu, nvptx = "nests", "layouts"
    else:
        cpu, nvptx = "rule", "own rule" if cls in NVPTX else "rule"
    missing = {name: f"unsupported: {why}" for name, why in cls.unsupported.items()}
    return missing.get("cpu", cpu), missing.get("nvptx", nvptx)


def family_text(
    found: Mapping[Type, Collection[str]], family: Sequence[DType | PointerType]
) -> str:
    """The classes of agreement of a family's types, and its widths where some are missing."""
    taken = [each for each in family if each in found]
    if not taken:
        return "-"
    text = ", ".join(dict.fromkeys(word for each in taken for word in found[each]))
    if len(taken) == len(family):
        return text
    return f"{text} ({', '.join(str(each.primitive_bitwidth) for each in taken)})"


# ---- what was measured ---------------------------------------------------------------------------

BENCHMARKS = DOCS.parent / "benchmarks"


def accuracy_page() -> str:
    """What `scripts/sweep_math.py` and `scripts/cast_table.py` found."""
    swept = json.loads((BENCHMARKS / "accuracy.json").read_text("utf-8"))
    cast = json.loads((BENCHMARKS / "casts.json").read_text("utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in swept["versions"].items())
    total = sum(row["values"] for row in cast["found"])
    bad = sum(row["interp"] + row["cpu"] for row in cast["found"])
    lines = [
        NOTICE,
        "",
        "# Accuracy on the CPU, measured",
        "",
        "## Functions of fp32",
        "",
        "`scripts/sweep_math.py` computes every one of the 2^32 floats and compares it with the",
        "C library's function of doubles: NaN, infinities and the signs of zeros too. The 1,000",
        "inputs with the largest errors are then computed by mpmath, which has the last word. An",
        "error is the distance from the exact value in units in the last place of it;",
        "[](numerics.md) says what the ceilings are and why they hold.",
        "",
        *table(
            ("function", "of", "inputs", "worst, ulp", "at", "by mpmath, ulp", "correctly rounded")
            + ("compiled for", "date"),
            [sweep_row(each) for each in swept["found"]],
        ),
        "",
        f"{versions}. All CPUs compute the same bits, which the tests check.",
        "",
        "## Conversions",
        "",
        "`scripts/cast_table.py` converts every value of the 8- and 16-bit types, and of the",
        "wider ones those where a rule turns, the ties and neighbours of every narrower format",
        "and random ones, and compares with Python's integers and fractions, rounded once. A cell",
        "holds the number of values for which the interpreter and the CPU (a scalar and 16 lanes)",
        "both had the exact result; *2x* stands where a float narrows, to nearest and toward",
        "zero. A dash: there is no such conversion.",
        "",
        *table(("from, to", *(each.name for each in dtypes.VALUES)), cast_rows(cast["found"])),
        "",
        f"{len(cast['found'])} conversions, {total:,} values, {bad} wrong; on {cast['cpu']},",
        f"{cast['date']}.",
    ]
    return "\n".join(lines) + "\n"


def sweep_row(found: Mapping[str, Any]) -> tuple[str, ...]:
    """A function's row; an error that isn't finite stands as it is."""
    rounded = 100 * (1 - found["rounded_otherwise"] / found["inputs"])
    checked = f"{found['mpmath_worst']:.5f} ({found['mpmath_checked']} inputs)"
    return (
        code(found["function"]),
        found["part"],
        f"{found['inputs']:,}",
        f"{found['worst']:.5f}",
        f"{found['at']!r}",
        checked,
        f"{rounded:.3f} %",
        found["cpu"],
        found["date"],
    )


def cast_rows(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Sources down, targets across."""
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in found:
        cells.setdefault((row["from"], row["to"]), []).append(row)

    def text(rows: Sequence[Mapping[str, Any]]) -> str:
        if not rows:
            return "-"
        wrong = sum(row["interp"] + row["cpu"] for row in rows)
        times = f"{len(rows)}x " if len(rows) > 1 else ""
        return f"{times}{rows[0]['values']}" + (f", {wrong} wrong" if wrong else "")

    names = [each.name for each in dtypes.VALUES]
    return [[source, *(text(cells.get((source, to), [])) for to in names)] for source in names]


PAGES: dict[str, Callable[[], str]] = {
    "accuracy.md": accuracy_page,
    "errors.md": errors_page,
    "knobs.md": knobs_page,
    "operations.md": operations_page,
}


def main() -> int:
    """Write the pages, or say which are stale; the exit status is 1 if any is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, list stale pages")
    check = parser.parse_args().check
    stale = []
    for name, page in PAGES.items():
        path = DOCS / name
        text = page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"docs/{name} {'is stale' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
