"""Python's syntax that kernels don't have: what messages call it, and what they advise."""

from __future__ import annotations

REFUSED: dict[str, tuple[str, str]] = {
    "AsyncFor": ("async for", ""),
    "AsyncFunctionDef": ("a nested function", ""),
    "AsyncWith": ("async with", ""),
    "Await": ("await", ""),
    "Break": ("break", "end the loop by the condition of a while loop"),
    "ClassDef": ("a class", "define it outside of the kernel"),
    "Continue": ("continue", "put the rest of the loop's body under an if"),
    "Delete": ("del", "leave it out: unused values cost nothing"),
    "Dict": ("a dict", "use a tuple"),
    "DictComp": ("a dict comprehension", "use a list comprehension over a tuple"),
    "FunctionDef": (
        "a nested function",
        "move it to module level and decorate it with @tritium.jit",
    ),
    "GeneratorExp": ("a generator expression", "use a list comprehension over a tuple"),
    "Global": ("global", "kernels can't assign globals: store through a pointer"),
    "Import": ("import", "import it outside of the kernel"),
    "ImportFrom": ("import", "import it outside of the kernel"),
    "Lambda": ("lambda", "define a function and decorate it with @tritium.jit"),
    "Match": ("match", "use if and elif"),
    "Nonlocal": ("nonlocal", "return the value"),
    "Raise": ("raise", "use tl.static_assert or tl.device_assert"),
    "Set": ("a set", "use a tuple"),
    "SetComp": ("a set comprehension", "use a list comprehension over a tuple"),
    "Starred": ("* outside of a call's arguments", ""),
    "TemplateStr": ("a template string", "use an f-string"),
    "Try": ("try", "kernels raise no exceptions"),
    "TryStar": ("try", "kernels raise no exceptions"),
    "TypeAlias": ("a type alias", "define it outside of the kernel"),
    "With": ("with", ""),
    "Yield": ("yield", "return a tuple"),
    "YieldFrom": ("yield", "return a tuple"),
}
"""By the name of the node's class; other classes go by that name."""
