"""What becomes of a mutated kernel, on every executor: refused alike, or the same results.

A kernel is legal or gets one coded message with a place in its text; anything else is a fault. What
compiles and stays within its arguments, as eager mode and the IR evaluator find, runs natively too.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, TypeAlias

import numpy as np
from tests.backends.three_way import address, copied, extent, run_cpu, same, specialised, traced
from tests.fuzz.corpus import Subject, chosen, surface
from tests.fuzz.mutate import Mutant, mutated
from tests.fuzz.pieces import NUMPY

from tritium import interp
from tritium.diagnostics import InternalError, Loc, TritiumError
from tritium.diagnostics.frames import is_own
from tritium.frontend.specialize import PointerSpec, ScalarSpec
from tritium.interp import Client, Machine, Memory
from tritium.ir.core import Function, Op
from tritium.ops.callable import DeviceFunction
from tritium.ops.create import Constant
from tritium.ops.spec import Exact, agreement_of

COMPILE_LIMIT = 30.0
RUN_LIMIT = 4.0
"""Seconds of one step; more of compiling is a fault, of running the end of the comparison."""

AT_RUN_TIME = {"E0514", "E0608", "E0702", "E0703"}
"""Codes of what only running shows."""
ALL_PATHS = {"E0103", "E0116", "E0120", "E0401", "E0402", "E0404", "E0406"}
"""Codes of what is wrong with the paths through a kernel, of which eager mode sees one."""
PYTHON = {"E0101", "E0102", "E0110", "E0111"}
"""Codes of Python that kernels don't have, which eager mode lets pass: it runs as Python."""
PYTHON_TEXTS = (
    *(" in can't combine", ": the condition is ", "annotate a compile-time value"),
    *("int() needs a compile-time value", "float() needs a compile-time value"),
    *("device_print can't take", "device_print needs a constant string"),
)
"""Of other codes, what messages about such Python say."""
PYTHON_ERRORS = ("UnboundLocalError", "AssertionError")
"""What eager mode meets that is compiled: a variable that reads a global of its name before it is
assigned, and an assertion, which is dropped."""

Position: TypeAlias = "tuple[Any, Any, Any, Any]"
"""First and last line, first and last column of an instruction."""


class OutOfTime(BaseException):
    """A step takes too long."""


@dataclass(frozen=True)
class Outcome:
    """``kind`` is what is counted; ``detail`` tells the rest to a person."""

    kind: str
    code: str = ""
    detail: str = ""
    loc: Loc | None = None

    @property
    def is_fault(self) -> bool:
        return self.kind.startswith("fault")


class Fault(Exception):
    """Ends the judgement of a mutant."""

    def __init__(self, kind: str, code: str = "", detail: str = "") -> None:
        super().__init__(kind)
        self.outcome = Outcome(f"fault: {kind}", code, detail)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises ``OutOfTime`` inside, once; what runs native code isn't interrupted."""

    def expire(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Watch(Client):
    """Notes stores of which two lanes meet: which one stays isn't said."""

    def __init__(self) -> None:
        self.collided = False

    def before_store(
        self, machine: Machine, op: Op, addresses: Any, mask: Any, values: Any
    ) -> None:
        if op.mnemonic.startswith("atomic."):
            return
        active = addresses.reshape(-1)
        if mask is not None:
            active = active[np.broadcast_to(mask, addresses.shape).reshape(-1)]
        steps = np.diff(np.sort(active))
        self.collided |= bool((steps < values.dtype.itemsize).any())


class Closed(Memory):
    """Memory of which only the arguments may be used, wherever a pointer comes from."""

    def __init__(self, ranges: Any = (), *, closed: bool = True) -> None:
        super().__init__(ranges, closed=True)

    def open(self) -> None:
        """Stays closed."""


def coded(problem: BaseException, file: str, where: str) -> Outcome:
    """A problem that a user may be told of. Raises ``Fault`` where it is no such problem."""
    if not isinstance(problem, TritiumError):
        kind = "internal error" if isinstance(problem, InternalError) else "Python exception"
        told = "".join(traceback.format_exception(problem)[-12:])
        raise Fault(f"{kind} {where}", type(problem).__name__, told)
    if problem.code.startswith("E03"):
        raise Fault(f"verifier {where}", problem.code, str(problem))
    cause = problem.__cause__
    if problem.code in ("E0117", "E0701") and cause is not None and is_own(cause.__traceback__):
        told = "".join(traceback.format_exception(cause)[-6:])
        return Outcome(f"uncoded {where}", f"{type(cause).__name__} {_origin(cause)}", told)
    loc = problem.loc
    if problem.code.startswith("E05"):
        # What is wrong with a launch has no place in the kernel.
        return Outcome(f"refused {where}", problem.code, str(problem))
    if loc is None or loc.file != file or loc.line < 1:
        raise Fault(f"no place {where}", problem.code, f"{loc}\n{problem}")
    return Outcome(f"refused {where}", problem.code, str(problem), loc)


def _origin(problem: BaseException) -> str:
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{frame.filename.rpartition('tritium/')[2]} {frame.name}"


@dataclass
class Trial:
    """One mutant with its launch."""

    function: DeviceFunction
    file: str
    arguments: Mapping[str, Any]
    grid: tuple[int, ...]

    def compiled(self) -> Function | Outcome:
        try:
            with limited(COMPILE_LIMIT):
                return traced(self.function, copied(self.arguments))
        except OutOfTime:
            raise Fault("compiling takes too long") from None
        except Exception as problem:  # noqa: BLE001 - it is told what
            return coded(problem, self.file, "compiled")

    def eager(self, watch: Watch, ran: set[Position] | None = None) -> dict[str, Any] | Outcome:
        """The arguments after eager mode; ``ran`` collects the places of what it carried out."""
        mine = copied(self.arguments)
        try:
            described = self._described(mine)
            launch = interp.EagerLaunch(
                self.function, described, self.grid, _ranges(mine), clients=[watch]
            )
            launch._memory = Closed(_ranges(mine))
            with limited(RUN_LIMIT), self._traced(ran):
                launch.run()
        except OutOfTime:
            return Outcome("too slow")
        except Exception as problem:  # noqa: BLE001 - it is told what
            return coded(problem, self.file, "in eager mode")
        return mine

    def _described(self, mine: Mapping[str, Any]) -> dict[str, Any]:
        described: dict[str, Any] = {}
        for name, spec in specialised(self.function, mine).items():
            value = mine[name]
            if isinstance(spec, PointerSpec):
                described[name] = interp.Pointer(spec.dtype, address(value), spec.const)
            elif isinstance(spec, ScalarSpec):
                described[name] = interp.Scalar(spec.dtype, value)
            else:
                described[name] = interp.Known(value)
        return described

    @contextlib.contextmanager
    def _traced(self, ran: set[Position] | None) -> Iterator[None]:
        tables: dict[CodeType, list[Position]] = {}

        def follow(frame: FrameType, event: str, argument: Any) -> Any:
            code = frame.f_code
            if code.co_filename != self.file:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                if code not in tables:
                    tables[code] = list(code.co_positions())
                ran.add(tables[code][frame.f_lasti // 2])  # type: ignore[union-attr]
            return follow

        before = sys.gettrace()
        if ran is not None:
            sys.settrace(follow)
        try:
            yield
        finally:
            sys.settrace(before)

    def evaluated(self, function: Function) -> dict[str, Any] | Outcome:
        mine = copied(self.arguments)
        values = []
        for param in function.params:
            value = mine[param.name]
            if isinstance(value, np.ndarray):
                values.append(address(value))
            else:
                number = float(value) if param.type.is_floating() else int(value)
                values.append(Constant(value=number, dtype=param.type).evaluate(None))
        launch = interp.Evaluator(function, values, self.grid)
        launch._memory = Closed(_ranges(mine))
        try:
            with limited(4 * RUN_LIMIT):
                launch.run()
        except OutOfTime:
            return Outcome("too slow")
        except Exception as problem:  # noqa: BLE001 - it is told what
            return coded(problem, self.file, "by the evaluator")
        return mine

    def native(self) -> dict[str, Any] | Outcome:
        try:
            with limited(COMPILE_LIMIT):
                mine, _ = run_cpu(self.function, self.arguments, self.grid)
        except OutOfTime:
            raise Fault("machine code takes too long") from None
        except Exception as problem:  # noqa: BLE001 - it is told what
            return coded(problem, self.file, "natively")
        return mine


def _ranges(mine: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [extent(value) for value in mine.values() if isinstance(value, np.ndarray)]


def different(got: Mapping[str, Any], want: Mapping[str, Any]) -> str:
    """The first array whose elements differ, as text; empty where none does."""
    for name, value in want.items():
        if isinstance(value, np.ndarray) and not same(got[name], value):
            return f"{name}\ngot  {got[name].ravel()[:40]}\nwant {value.ravel()[:40]}"
    return ""


def is_exact(function: Function) -> bool:
    """Whether executors owe each other the very bits."""
    return all(
        isinstance(agreement_of(type(op), "cpu", value.type.scalar), Exact)
        for op in function.walk()
        for value in op.results
    )


def waits(function: Function) -> bool:
    """Whether it may wait for another program, which one thread can't run meanwhile."""
    return any(op.mnemonic.startswith("atomic.") for op in function.walk())


def judge(trial: Trial) -> Outcome:
    """What becomes of it. Raises ``Fault``."""
    function = trial.compiled()
    watch = Watch()
    if isinstance(function, Outcome):
        return refused(trial, function, watch)
    want = trial.eager(watch)
    if isinstance(want, Outcome):
        if want.kind == "too slow" or want.code in AT_RUN_TIME:
            return Outcome("compiled, not run", want.code or want.kind)
        if want.code == "E0701" and any(each in want.detail for each in PYTHON_ERRORS):
            return Outcome("compiled, not run", want.code)
        if "can't take None" in want.detail:
            # What a function gives that ends without a return: Python's None, else nothing certain.
            return Outcome("compiled, not run", want.code)
        raise Fault("eager mode refuses what compiles", want.code, want.detail)
    got = trial.evaluated(function)
    if isinstance(got, Outcome):
        if got.kind == "too slow":
            return Outcome("compiled, not run", got.kind)
        raise Fault("the evaluator refuses what eager mode runs", got.code, got.detail)
    if watch.collided:
        return Outcome("compiled, lanes collide")
    exact = is_exact(function)
    if (told := different(got, want)) and exact:
        raise Fault("the IR differs from eager mode", "", told)
    got = trial.native()
    if isinstance(got, Outcome):
        raise Fault("machine code is refused", got.code, got.detail)
    if told := different(got, want):
        if exact:
            raise Fault("machine code differs", "", told)
        return Outcome("agrees by its class, not to the bit")
    return Outcome("agrees")


def refused(trial: Trial, why: Outcome, watch: Watch) -> Outcome:
    """Whether eager mode refuses it too, or never came by."""
    got = trial.eager(watch)
    if not isinstance(got, Outcome):
        if why.code in PYTHON or any(each in why.detail for each in PYTHON_TEXTS):
            return Outcome(f"{why.kind}, Python that eager mode runs", why.code)
        if why.code not in ALL_PATHS and is_reached(trial, why):
            raise Fault("eager mode runs what is refused", why.code, why.detail)
        return Outcome(f"{why.kind}, not reached in eager mode", why.code, why.detail)
    if got.code == why.code or got.kind == "too slow" or got.code in AT_RUN_TIME:
        return why
    return Outcome(f"{why.kind}, otherwise in eager mode", f"{why.code} {got.code}", got.detail)


def is_reached(trial: Trial, why: Outcome) -> bool:
    """Whether eager mode carries out something of what is refused; False where Python can't say."""
    if why.loc is None or sys.version_info < (3, 11):
        return False
    ran: set[Position] = set()
    trial.eager(Watch(), ran)
    start, end = (why.loc.line, why.loc.col), (why.loc.end_line, why.loc.end_col)
    return any(
        line is not None and start <= (line, column) and (last, stop) <= end
        for line, last, column, stop in ran
    )


def mutant_of(seed: int) -> tuple[Subject, Mutant, Mapping[str, Any]]:
    """The subject of a seed, its mutant, and the arguments, one of which may have changed too."""
    subject = chosen(seed)
    chance = random.Random(f"mutation {seed}")
    mutant = mutated(subject.source, surface(), chance)
    if chance.random() > 0.15:
        return subject, mutant, subject.arguments
    arguments = with_another(subject.arguments, chance)
    return subject, Mutant(mutant.source, (*mutant.kinds, "argument")), arguments


def with_another(arguments: Mapping[str, Any], chance: random.Random) -> dict[str, Any]:
    """One array of another type, or one number of another value."""
    name = chance.choice(sorted(arguments))
    value = arguments[name]
    if isinstance(value, np.ndarray):
        dtype = NUMPY[chance.choice(sorted(NUMPY))]
        with np.errstate(all="ignore"):
            value = np.nan_to_num(value.astype(np.float32)).astype(dtype)
    else:
        value = chance.choice((0, 1, 2, 3, 5, 16, -1, True, 2.5, None, 2**31, 2**40))
    return {**arguments, name: value}


def outcome_of(seed: int) -> tuple[Outcome, Mutant]:
    """What becomes of the mutant of a seed, whatever that is."""
    subject, mutant, arguments = mutant_of(seed)
    file = f"<mutant {seed}>"
    try:
        function = subject.function(mutant.source, file)
        return judge(Trial(function, file, arguments, subject.grid)), mutant
    except Fault as fault:
        return fault.outcome, mutant
