"""The exception classes: what they are caught as, what they carry, and that they travel."""

from __future__ import annotations

import builtins
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritium import diagnostics
from tritium.diagnostics import InternalError, Loc, TritiumError

SITE = Loc("caller.py", 30, 4, 30, 20, "outer")
PLACE = Loc("kernel.py", 12, 8, 12, 15, "inner", SITE)


def all_classes(root: type[TritiumError]) -> list[type[TritiumError]]:
    return [root, *(found for sub in root.__subclasses__() for found in all_classes(sub))]


CLASSES = sorted(
    {cls for cls in all_classes(TritiumError) if cls.__init__ is TritiumError.__init__},
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_pickles_with_all_it_carries(cls: type[TritiumError], protocol: int) -> None:
    made = cls("E0204", "words", help="do this", argument="x", loc=PLACE)
    made.extra = {"more": 1}
    for copied in (pickle.loads(pickle.dumps(made, protocol)), copy.copy(made)):
        assert type(copied) is cls
        assert vars(copied) == vars(made)
        assert copied.args == ("words",)
        assert str(copied) == str(made)
    deep = copy.deepcopy(made)
    assert deep.extra == {"more": 1}
    assert deep.extra is not made.extra


def test_internal_errors_pickle_with_their_report() -> None:
    made = InternalError("broken")
    made.report = "report.zip"
    copied = pickle.loads(pickle.dumps(made))
    assert type(copied) is InternalError
    assert copied.args == ("broken",)
    assert copied.report == "report.zip"


def test_internal_errors_say_whose_fault_it_is() -> None:
    made = InternalError("no lowering")
    assert str(made) == "no lowering\nThis is a fault of Tritium, not of your program."
    made.report = "report.zip"
    assert str(made).endswith("is in report.zip")
    assert not isinstance(made, TritiumError)


@pytest.mark.parametrize(
    ("code", "values", "builtin"),
    [
        ("E0101", {"name": "x", "hint": ""}, NameError),
        (
            "E0204",
            {"op": "exp2", "expected": "a float tile", "got": "int32", "hint": ""},
            TypeError,
        ),
        ("E0208", {"index": "0"}, ValueError),
        ("E0503", {"kernel": "k", "name": "n", "parameters": "x"}, KeyError),
        ("E0504", {"kernel": "k", "most": 1, "got": 2, "hint": ""}, TypeError),
        ("E0510", {"kernel": "k", "grid": (-1,), "text": "is negative", "hint": ""}, ValueError),
        ("E0516", {"name": "k"}, RuntimeError),
        ("W0901", {"text": "t", "hint": ""}, UserWarning),
    ],
)
def test_errors_are_also_what_python_would_raise(
    code: str, values: dict[str, object], builtin: type[Exception]
) -> None:
    made = diagnostics.error(code, **values)
    assert isinstance(made, builtin)
    assert isinstance(made, TritiumError)
    # KeyError would show the repr of its argument.
    assert str(made).splitlines()[0].endswith(made.message)


def test_the_most_precise_place_is_kept() -> None:
    made = diagnostics.error("E0301", text="t")
    assert made.at(None) is made
    assert made.loc is None
    assert made.at(PLACE).at(SITE).loc is PLACE


def test_triton_finds_the_message_under_its_own_name() -> None:
    assert diagnostics.error("E0301", text="t").error_message == "IR verifier: t"


def test_a_location_is_its_chain_of_calls() -> None:
    assert PLACE.chain() == [PLACE, SITE]
    assert str(PLACE) == "kernel.py:12:9"
    again = PLACE.called_from(None)
    assert again.chain() == [again]
    assert again.called_from(SITE) == PLACE


def test_class_names_shadow_no_builtin() -> None:
    assert not {cls.__name__ for cls in CLASSES} & set(vars(builtins))


def test_errors_cross_threads() -> None:
    def fail() -> None:
        raise diagnostics.error("E0301", loc=PLACE, text="t")

    with ThreadPoolExecutor(1) as pool, pytest.raises(diagnostics.CompilationError) as caught:
        pool.submit(fail).result()
    assert caught.value.loc is PLACE
