"""Options: where a value comes from, scopes, aliases, hooks, and what a bad value says."""

from __future__ import annotations

import contextvars
import math
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tritium import knobs
from tritium.diagnostics import ArgumentValueError
from tritium.knobs import HookChain, KnobError

ROWS = knobs.describe()
FLAGS = [row for row in ROWS if row.type == "boolean"]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in ROWS:
        for name in row.environment:
            monkeypatch.delenv(name, raising=False)


def group_and_name(row: knobs.Row) -> tuple[knobs.Group, str]:
    group, name = row.name.split(".")
    return getattr(knobs, group), name


def read(row: knobs.Row) -> object:
    return getattr(*group_and_name(row))


# ---- the environment -----------------------------------------------------------------------------


def test_a_change_of_the_environment_takes_effect_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.runtime.interpret is False
    monkeypatch.setenv("TRITIUM_INTERPRET", "1")
    assert knobs.runtime.interpret is True
    monkeypatch.setenv("TRITIUM_INTERPRET", "0")
    assert knobs.runtime.interpret is False
    monkeypatch.delenv("TRITIUM_INTERPRET")
    assert knobs.runtime.interpret is False


@pytest.mark.parametrize("row", FLAGS, ids=lambda row: row.name)
def test_every_flag_is_set_by_each_of_its_variables(
    row: knobs.Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(row) in (False, None)
    for name in row.environment:
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            assert read(row) is True
        assert read(row) in (False, None)


@pytest.mark.parametrize(
    ("group", "name", "variable", "value"),
    [
        ("cache", "home_dir", "TRITON_HOME", "/h"),
        ("cache", "dir", "TRITON_CACHE_DIR", "/c"),
        ("cache", "dump_dir", "TRITON_DUMP_DIR", "/d"),
        ("language", "fp32_default", "TRITON_F32_DEFAULT", "ieee"),
        ("cpu", "target", "TRITIUM_CPU", "x86-64-v3"),
        ("cpu", "features", "TRITIUM_CPU_FEATURES", "+avx2,-avx512f"),
        ("runtime", "report_dir", "TRITIUM_REPORT_DIR", "/r"),
    ],
)
def test_texts_come_through(
    group: str, name: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert getattr(getattr(knobs, group), name) == value
    assert getattr(knobs, group).source(name) == variable


def test_numbers_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITIUM_NUM_THREADS", " 7 ")
    assert knobs.cpu.num_threads == 7


def test_tritiums_name_goes_before_tritons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert knobs.runtime.source("interpret") == "TRITON_INTERPRET"
    monkeypatch.setenv("TRITIUM_INTERPRET", "0")
    assert knobs.runtime.interpret is False
    assert knobs.runtime.source("interpret") == "TRITIUM_INTERPRET"


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_counts_as_not_set(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITIUM_INTERPRET", empty)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("TRITIUM_NUM_THREADS", empty)
    assert knobs.runtime.interpret is True
    assert knobs.cpu.num_threads >= 1
    assert knobs.cpu.source("num_threads") == "default"


@pytest.mark.parametrize("word", ["1", "true", "TRUE", "on", "On", "y", "Y", "yes", "YES", " 1 "])
def test_true_words(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEBUG", word)
    assert knobs.runtime.debug is True


@pytest.mark.parametrize("word", ["0", "false", "False", "off", "OFF", "n", "no", "NO"])
def test_false_words(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", word)
    assert knobs.language.default_fp_fusion is False


def test_a_plain_dictionary_in_place_of_the_environment_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {"TRITON_INTERPRET": "1"})
    assert knobs.runtime.interpret is True
    assert knobs.runtime.debug is False


# ---- bad values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "name", "variable", "value", "expected"),
    [
        ("runtime", "interpret", "TRITON_INTERPRET", "2", "a boolean"),
        ("runtime", "debug", "TRITIUM_DEBUG", "maybe", "a boolean"),
        ("cpu", "num_threads", "TRITIUM_NUM_THREADS", "0", "a whole number from 1 to 4096"),
        ("cpu", "num_threads", "TRITIUM_NUM_THREADS", "-1", "a whole number from 1 to 4096"),
        ("cpu", "num_threads", "TRITIUM_NUM_THREADS", "5000", "a whole number from 1 to 4096"),
        ("cpu", "num_threads", "TRITIUM_NUM_THREADS", "1.5", "a whole number from 1 to 4096"),
        ("cpu", "num_threads", "TRITIUM_NUM_THREADS", "many", "a whole number from 1 to 4096"),
        ("cpu", "target", "TRITIUM_CPU", "a cpu", "the name of a CPU"),
        ("cpu", "features", "TRITIUM_CPU_FEATURES", "avx2", "a list such as"),
        ("language", "fp32_default", "TRITON_F32_DEFAULT", "fp32", "one of tf32, tf32x3, ieee"),
    ],
)
def test_a_bad_variable_raises_when_it_is_read(
    group: str,
    name: str,
    variable: str,
    value: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(KnobError) as caught:
        getattr(getattr(knobs, group), name)
    error = caught.value
    assert isinstance(error, (ArgumentValueError, ValueError))
    assert error.code == "E0801"
    assert (error.name, error.value) == (variable, value)
    assert error.expected.startswith(expected)
    assert error.message.startswith(f"{variable}={value!r} is not {expected}")
    assert f"knobs.{group}.{name}" in error.help
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is KnobError
    assert vars(copied) == vars(error)
    assert str(copied) == str(error)


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("runtime", "interpret", "perhaps"),
        ("runtime", "interpret", None),
        ("runtime", "interpret", 2),
        ("cpu", "num_threads", 0),
        ("cpu", "num_threads", True),
        ("cpu", "num_threads", 2.0),
        ("cpu", "num_threads", None),
        ("cpu", "features", ["+avx2"]),
        ("cache", "dir", ""),
        ("cache", "dir", 3),
        ("runtime", "launch_enter_hook", 3),
        ("runtime", "jit_cache_hook", 3),
        ("language", "fp32_default", "fp64"),
    ],
)
def test_a_bad_assignment_raises_and_changes_nothing(group: str, name: str, value: object) -> None:
    holder = getattr(knobs, group)
    before = getattr(holder, name)
    with pytest.raises(KnobError, match=f"knobs.{group}.{name}="):
        setattr(holder, name, value)
    assert getattr(holder, name) == before


def test_importing_reads_nothing() -> None:
    environment = {name: "nonsense" for row in ROWS for name in row.environment}
    subprocess.run(
        [sys.executable, "-c", "import tritium.knobs"],
        env={**os.environ, **environment},
        check=True,
    )


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AttributeError):
        knobs.runtime.interpert = True  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = knobs.runtime.interpert  # type: ignore[attr-defined]


# ---- assigning -----------------------------------------------------------------------------------


def test_an_assigned_value_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs.runtime.interpret = True
    assert knobs.runtime.source("interpret") == "assigned"
    monkeypatch.setenv("TRITIUM_INTERPRET", "0")
    assert knobs.runtime.interpret is True
    del knobs.runtime.interpret
    assert knobs.runtime.interpret is False


@pytest.mark.parametrize("take_back", ["del", "env", "reset"])
def test_an_assigned_value_can_be_taken_back(
    take_back: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITIUM_NUM_THREADS", "3")
    knobs.cpu.num_threads = 5
    knobs.cpu.num_threads = 6
    assert os.environ["TRITIUM_NUM_THREADS"] == "6"
    if take_back == "del":
        del knobs.cpu.num_threads
    elif take_back == "env":
        knobs.cpu.num_threads = knobs.env  # type: ignore[assignment]
    else:
        assert knobs.cpu.reset() is knobs.cpu
    assert knobs.cpu.num_threads == 3
    assert os.environ["TRITIUM_NUM_THREADS"] == "3"
    assert knobs.cpu.source("num_threads") == "TRITIUM_NUM_THREADS"


def test_child_processes_see_what_was_assigned() -> None:
    knobs.runtime.interpret = True
    knobs.cpu.num_threads = 3
    knobs.language.fp32_default = "IEEE"
    assert os.environ["TRITON_INTERPRET"] == "1"
    script = (
        "from tritium import knobs\n"
        "print(knobs.runtime.interpret, knobs.cpu.num_threads, knobs.language.fp32_default)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "3", "ieee"]
    for group in knobs.GROUPS:
        group.reset()
    assert not {"TRITON_INTERPRET", "TRITIUM_INTERPRET", "TRITIUM_NUM_THREADS"} & set(os.environ)


def test_propagation_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    knobs.runtime.interpret = True
    assert "TRITIUM_INTERPRET" not in os.environ
    assert knobs.runtime.interpret is True


def test_a_variable_that_was_set_since_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs.cpu.num_threads = 5
    monkeypatch.setenv("TRITIUM_NUM_THREADS", "9")
    del knobs.cpu.num_threads
    assert knobs.cpu.num_threads == 9


def test_none_unsets_an_optional_knob(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_F32_DEFAULT", "tf32")
    knobs.language.fp32_default = None
    assert knobs.language.fp32_default is None
    assert "TRITON_F32_DEFAULT" not in os.environ
    del knobs.language.fp32_default
    assert knobs.language.fp32_default == "tf32"


def test_values_are_converted() -> None:
    knobs.runtime.interpret = "yes"  # type: ignore[assignment]
    assert knobs.runtime.interpret is True
    knobs.runtime.interpret = 0  # type: ignore[assignment]
    assert knobs.runtime.interpret is False
    knobs.cache.dir = Path("~") / "kernels"  # type: ignore[assignment]
    assert knobs.cache.dir == os.path.join(os.path.expanduser("~"), "kernels")


# ---- groups --------------------------------------------------------------------------------------


def test_a_copy_changes_on_its_own() -> None:
    knobs.runtime.debug = True
    copied = knobs.runtime.copy()
    assert copied.debug is True
    copied.debug = False
    copied.launch_enter_hook.add(print)
    assert knobs.runtime.debug is True
    assert knobs.runtime.launch_enter_hook.calls == []


def test_knobs_lists_the_values() -> None:
    knobs.cpu.num_threads = 21
    assert knobs.cpu.knobs == {"num_threads": 21, "target": "native", "features": ""}


def test_a_group_can_be_replaced_as_triton_scripts_do(monkeypatch: pytest.MonkeyPatch) -> None:
    replacement = knobs.runtime.copy()
    replacement.interpret = True
    monkeypatch.setattr(knobs, "runtime", replacement)
    assert knobs.runtime.interpret is True
    replacement.reset()


# ---- scopes --------------------------------------------------------------------------------------


def test_a_scope_restores_values_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs.runtime.debug = True
    with knobs.runtime.scope():
        knobs.runtime.debug = False
        knobs.runtime.interpret = True
        os.environ["TRITON_INTERPRET"] = "0"
        assert (knobs.runtime.debug, knobs.runtime.interpret) == (False, True)
    assert (knobs.runtime.debug, knobs.runtime.interpret) == (True, False)
    assert "TRITON_INTERPRET" not in os.environ
    assert os.environ["TRITON_DEBUG"] == "1"


def test_a_scope_ends_with_an_exception() -> None:
    def fail() -> None:
        with knobs.runtime.scope():
            knobs.runtime.interpret = True
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert knobs.runtime.interpret is False


def test_scopes_nest() -> None:
    with knobs.cpu.scope() as group:
        assert group is knobs.cpu
        knobs.cpu.num_threads = 21
        with knobs.cpu.scope():
            assert knobs.cpu.num_threads == 21
            knobs.cpu.num_threads = 22
            with knobs.runtime.scope():
                knobs.runtime.debug = True
                assert knobs.cpu.num_threads == 22
            assert knobs.runtime.debug is False
        assert knobs.cpu.num_threads == 21


def test_inside_a_scope_del_and_reset_uncover_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    monkeypatch.setenv("TRITIUM_NUM_THREADS", "3")
    knobs.cpu.num_threads = 5
    for take_back in (lambda: delattr(knobs.cpu, "num_threads"), knobs.cpu.reset):
        with knobs.cpu.scope():
            take_back()
            assert knobs.cpu.num_threads == 3
            assert knobs.cpu.source("num_threads") == "TRITIUM_NUM_THREADS"
        assert knobs.cpu.num_threads == 5


def test_a_scope_does_not_write_the_environment() -> None:
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        assert "TRITIUM_INTERPRET" not in os.environ


def test_interleaved_scopes_of_two_threads_do_not_leak() -> None:
    """Entered A, B, left A, B: an ordinary save and restore would leave A's value behind."""
    turns = [threading.Event() for _ in range(4)]
    seen: list[tuple[str, bool]] = []

    def first() -> None:
        with knobs.runtime.scope():
            knobs.runtime.interpret = True
            turns[0].set()
            turns[1].wait(10)
            seen.append(("first", knobs.runtime.interpret))
        turns[2].set()

    def second() -> None:
        turns[0].wait(10)
        with knobs.runtime.scope():
            seen.append(("second", knobs.runtime.interpret))
            knobs.runtime.interpret = False
            turns[1].set()
            turns[2].wait(10)
        seen.append(("after", knobs.runtime.interpret))

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == [("second", False), ("first", True), ("after", False)]
    assert knobs.runtime.interpret is False


def test_many_threads_see_their_own_values_only() -> None:
    start = threading.Barrier(8)
    wrong: list[tuple[int, int]] = []

    def work(mine: int) -> None:
        start.wait(10)
        for _ in range(300):
            with knobs.cpu.scope():
                knobs.cpu.num_threads = mine
                with knobs.cpu.scope():
                    knobs.cpu.num_threads = mine + 100
                if (got := knobs.cpu.num_threads) != mine:
                    wrong.append((mine, got))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert knobs.cpu.source("num_threads") == "default"


def test_threads_that_assign_leave_value_and_environment_agreeing() -> None:
    start = threading.Barrier(8)

    def work(mine: int) -> None:
        start.wait(10)
        for _ in range(200):
            knobs.cpu.num_threads = mine

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert os.environ["TRITIUM_NUM_THREADS"] == str(knobs.cpu.num_threads)
    del knobs.cpu.num_threads
    assert "TRITIUM_NUM_THREADS" not in os.environ


def test_a_scope_can_be_taken_to_another_thread() -> None:
    seen: list[bool] = []
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(lambda: seen.append(knobs.runtime.interpret),)
        )
        thread.start()
        thread.join(10)
    assert seen == [True]


# ---- hooks ---------------------------------------------------------------------------------------


def test_hooks_are_called_in_order_and_the_exit_chain_reversed() -> None:
    called: list[tuple[str, object]] = []

    def one(metadata: object) -> None:
        called.append(("one", metadata))

    def two(metadata: object) -> None:
        called.append(("two", metadata))

    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        chain.add(one)
        chain.add(two)
        chain.add(one)
        assert chain.calls == [one, two]
        chain("m")
    assert [name for name, _ in called] == ["one", "two", "two", "one"]
    chain.remove(one)
    chain.remove(one)
    assert chain.calls == [two]


def test_a_hook_may_remove_itself_while_it_runs() -> None:
    chain = HookChain()
    called: list[str] = []

    def once() -> None:
        called.append("once")
        chain.remove(once)

    chain.add(once)
    chain.add(lambda: called.append("other"))
    chain()
    chain()
    assert called == ["once", "other", "other"]


def test_hooks_can_be_assigned_and_taken_back() -> None:
    knobs.runtime.launch_exit_hook = print  # type: ignore[assignment]
    assert knobs.runtime.launch_exit_hook.calls == [print]
    assert knobs.runtime.launch_exit_hook.reversed
    knobs.runtime.launch_exit_hook = None  # type: ignore[assignment]
    assert knobs.runtime.launch_exit_hook.calls == []
    chain = HookChain()
    knobs.runtime.launch_enter_hook = chain
    assert knobs.runtime.launch_enter_hook is chain
    del knobs.runtime.launch_enter_hook
    assert knobs.runtime.launch_enter_hook is not chain
    assert not knobs.runtime.launch_enter_hook.reversed


def test_a_scope_restores_hooks() -> None:
    knobs.runtime.launch_enter_hook.add(print)
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(repr)
        assert knobs.runtime.launch_enter_hook.calls == [print, repr]
        knobs.runtime.jit_post_compile_hook = repr
        knobs.runtime.reset()
        assert knobs.runtime.launch_enter_hook.calls == []
    assert knobs.runtime.launch_enter_hook.calls == [print]
    assert knobs.runtime.jit_post_compile_hook is None
    knobs.runtime.reset()
    assert knobs.runtime.launch_enter_hook.calls == []


# ---- defaults ------------------------------------------------------------------------------------


def test_folders_stand_in_the_users_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert Path(knobs.cache.home_dir) == tmp_path
    assert Path(knobs.cache.dir) == tmp_path / ".cache" / "tritium"
    assert Path(knobs.cache.dump_dir) == tmp_path / ".cache" / "tritium-dump"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Path(knobs.cache.dir) == tmp_path / ".cache" / "tritium"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Path(knobs.cache.dir) == tmp_path / "xdg" / "tritium"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("variable", ["TRITIUM_HOME", "TRITON_HOME"])
def test_a_home_that_was_named_holds_them(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv(variable, str(tmp_path))
    assert Path(knobs.cache.dir) == tmp_path / ".tritium" / "cache"
    assert Path(knobs.cache.dump_dir) == tmp_path / ".tritium" / "dump"
    knobs.cache.home_dir = str(tmp_path / "other")
    assert Path(knobs.cache.dir) == tmp_path / "other" / ".tritium" / "cache"


def test_the_tilde_is_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", "~/kernels")
    assert Path(knobs.cache.dir) == tmp_path / "kernels"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_threads_follow_the_affinity() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert knobs.cpu.num_threads == 1
    finally:
        os.sched_setaffinity(0, before)
    assert 1 <= knobs.cpu.num_threads <= len(before)


@pytest.mark.parametrize(
    ("quota", "threads"), [(math.inf, 8), (0.25, 1), (1.0, 1), (1.5, 2), (8.0, 8), (64.0, 8)]
)
def test_threads_follow_the_quota(
    quota: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(knobs, "cgroup_cpus", lambda membership, root: quota)
    assert knobs.cpu.num_threads == threads


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, math.inf),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"a/cpu.max": "400000 100000\n", "a/b/cpu.max": "max 100000\n"}, 4.0),
        ({"a/cpu.max": "400000 100000\n", "a/b/cpu.max": "50000 100000\n"}, 0.5),
        ({"other/cpu.max": "50000 100000\n"}, math.inf),
        ({"cpu.max": "nonsense\n"}, math.inf),
    ],
)
def test_the_smallest_quota_up_the_tree_counts(
    files: dict[str, str], cpus: float, tmp_path: Path
) -> None:
    for name, content in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    membership = tmp_path / "membership"
    membership.write_text("1:name=systemd:/other\n0::/a/b\n")
    assert knobs.cgroup_cpus(str(membership), str(tmp_path / "cgroup")) == cpus


def test_without_cgroups_there_is_no_quota(tmp_path: Path) -> None:
    assert knobs.cgroup_cpus(str(tmp_path / "none"), str(tmp_path)) == math.inf


# ---- the table -----------------------------------------------------------------------------------


def test_every_knob_is_described() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.doc.endswith(".")
        assert row.default
        assert row.type
        group, name = group_and_name(row)
        assert group in knobs.GROUPS
        assert name in group.knobs


def test_every_variable_sets_one_knob_and_tritiums_name_comes_first() -> None:
    names = [name for row in ROWS for name in row.environment]
    assert len(set(names)) == len(names)
    for row in ROWS:
        assert all(name.startswith("TRITIUM_") for name in row.environment[:1])
        assert all(name.startswith("TRITON_") for name in row.environment[1:])


# ---- snapshots -----------------------------------------------------------------------------------


def test_a_snapshot_is_made_again_only_where_a_knob_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[object, ...]] = []

    def make(*values: object) -> tuple[object, ...]:
        made.append(values)
        return values

    snapshot = knobs.Snapshot(make, (knobs.runtime, "debug"), (knobs.cpu, "num_threads"))
    first = snapshot()
    assert snapshot() is first
    monkeypatch.setenv("TRITIUM_CACHE_DIR", "elsewhere")
    assert snapshot() is first
    monkeypatch.setenv("TRITON_DEBUG", "1")
    assert snapshot() == (True, first[1])
    monkeypatch.setenv("TRITIUM_DEBUG", "0")
    assert snapshot() == (False, first[1])
    knobs.cpu.num_threads = 7
    assert snapshot() == (False, 7)
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 3
        assert snapshot() == (False, 3)
        with knobs.cpu.scope():
            assert snapshot() == (False, 3)
        assert snapshot() == (False, 3)
    assert snapshot() == (False, 7)
    count = len(made)
    monkeypatch.setattr(os, "environ", {**os.environ, "TRITIUM_DEBUG": "1"})
    assert snapshot() == (True, 7)
    os.environ["TRITIUM_DEBUG"] = "0"
    assert snapshot() == (False, 7)
    assert len(made) == count + 2


def test_a_snapshot_of_a_bad_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = knobs.Snapshot(lambda value: value, (knobs.runtime, "debug"))
    monkeypatch.setenv("TRITIUM_DEBUG", "perhaps")
    for _ in range(2):
        with pytest.raises(knobs.KnobError):
            snapshot()
    monkeypatch.setenv("TRITIUM_DEBUG", "1")
    assert snapshot() is True


def test_each_assignment_advances_the_revision() -> None:
    seen = [knobs.REVISION[0]]

    def advanced() -> bool:
        seen.append(knobs.REVISION[0])
        return seen[-1] > seen[-2]

    knobs.cpu.num_threads = 2
    assert advanced()
    del knobs.cpu.num_threads
    assert advanced()
    with knobs.cpu.scope():
        knobs.cpu.num_threads = 3
        assert advanced()
    knobs.runtime.reset()
    assert advanced()


def test_a_chain_keeps_its_list() -> None:
    chain = knobs.HookChain()
    calls = chain.calls
    chain.add(print)
    chain.calls = [repr, str]
    assert chain.calls is calls
    assert calls == [repr, str]
