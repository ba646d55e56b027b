"""The dev script, with Pythons of our own making: no network, no real environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ["cat", "cksum", "cut", "dirname", "ls", "mkdir", "rm", "chmod", "cp"]

# Answers what dev asks of a Python; writes what it was told to do into a log.
FAKE_PYTHON = """#!/bin/sh
case "$1 ${{2:-}}" in
    "--version "*) echo "Python {version}" ;;
    "-m venv")
        echo "venv" >>"$FAKE_LOG"
        rm -rf "$4"
        mkdir -p "$4/bin"
        : >"$4/pyvenv.cfg"
        cp "$0" "$4/bin/python"
        ;;
    "-m pip")
        for last do :; done
        echo "pip $last" >>"$FAKE_LOG"
        rm -f "${{0%/*}}/broken"
        printf '#!/bin/sh\\necho "tritium $*" >>"$FAKE_LOG"\\n' >"${{0%/*}}/tritium"
        chmod +x "${{0%/*}}/tritium"
        ;;
    "-m "*) shift; echo "run $*" >>"$FAKE_LOG" ;;
    "-c "*)
        if [ $# -gt 2 ]; then [ ! -e "${{0%/*}}/broken" ]; exit; fi
        printf %s "{version}"
        exit {status}
        ;;
esac
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="dev is a POSIX shell script")


class Checkout:
    """A folder with the dev script and a package description, and a search path of its own."""

    def __init__(self, place: Path) -> None:
        self.root = place / "a check out"
        self.path = place / "bin"
        self.log = place / "log"
        self.user: int | None = None
        self.root.mkdir()
        self.path.mkdir()
        self.log.touch()
        shutil.copy(ROOT / "dev", self.root)
        (self.root / "pyproject.toml").write_text("[project]\n")
        for tool in TOOLS:
            (self.path / tool).symlink_to(str(shutil.which(tool)))

    def python(self, name: str, version: str = "3.12", status: int = 0) -> Path:
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(FAKE_PYTHON.format(version=version, status=status))
        path.chmod(0o755)
        return path

    def dev(
        self, *arguments: str, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.path), "FAKE_LOG": str(self.log), "HOME": str(self.root)}
        return subprocess.run(
            [str(self.root / "dev"), *arguments],
            cwd=cwd or self.root.parent,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=60,
            user=self.user,
        )

    def did(self, *arguments: str, **variables: str) -> list[str]:
        """What one successful run of the script asked of Python, in order."""
        self.log.write_text("")
        result = self.dev(*arguments, **variables)
        assert result.returncode == 0, result.stderr
        return self.log.read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def refusal(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of a run that found no environment to work in."""
    assert result.returncode == 3
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_no_python_is_one_clear_line(checkout: Checkout) -> None:
    assert (
        refusal(checkout.dev("demo"))
        == "dev: Tritium needs Python 3.10 to 3.14: Python was not found"
    )


@pytest.mark.parametrize("version", ["2.7", "3.9", "3.15"])
def test_unsupported_python_is_named(checkout: Checkout, version: str) -> None:
    checkout.python("python3", version, status=3)
    assert refusal(checkout.dev("demo")).endswith(f": python3 is Python {version}")


def test_missing_venv_module_is_named(checkout: Checkout) -> None:
    checkout.python("python3", status=4)
    assert "python3 has no venv module" in refusal(checkout.dev("test"))


def test_named_python_that_is_missing(checkout: Checkout) -> None:
    checkout.python("python3")
    line = refusal(checkout.dev("demo", PYTHON="python9"))
    assert line.endswith(": python9 was not found")


def test_version_and_modules_are_asked_of_a_real_python(checkout: Checkout) -> None:
    """A real Python passes the probe: the failure is then pip's, which this project lacks."""
    result = checkout.dev("demo", PYTHON=sys.executable, PIP_NO_INDEX="1")
    assert f"with Python {sys.version.split()[0]}" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("dev: pip could not install tritium into ")
    assert result.returncode == 3


def test_unusable_pythons_are_passed_over(checkout: Checkout) -> None:
    checkout.python("python3", "3.9", status=3)
    checkout.python("python3.14", status=127)
    checkout.python("python3.13", status=4)
    checkout.python("python3.11")
    assert checkout.did("demo") == ["venv", "pip .", "tritium demo"]


def test_named_python_may_stand_behind_a_space(checkout: Checkout) -> None:
    python = checkout.python("my tools/python")
    assert checkout.did("demo", PYTHON=str(python)) == ["venv", "pip .", "tritium demo"]


def test_demo_installs_no_extra_and_hands_arguments_on(checkout: Checkout) -> None:
    checkout.python("python3")
    assert checkout.did("demo", "--n", "a b") == ["venv", "pip .", "tritium demo --n a b"]


def test_test_installs_its_extra_and_demo_needs_nothing_more(checkout: Checkout) -> None:
    checkout.python("python3")
    venv, pip, run = checkout.did("test", "tests/ir", "-k", "x or y")
    assert (venv, pip) == ("venv", "pip .[test]")
    assert run.startswith("run pytest ")
    assert run.endswith(" tests/ir -k x or y")
    assert checkout.did("demo") == ["tritium demo"]


def test_second_run_starts_at_once_until_the_package_changes(checkout: Checkout) -> None:
    checkout.python("python3")
    checkout.did("demo")
    assert checkout.did("demo") == ["tritium demo"]
    (checkout.root / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    assert checkout.did("demo") == ["pip .", "tritium demo"]


def test_moved_checkout_is_installed_again(checkout: Checkout) -> None:
    checkout.python("python3")
    checkout.did("demo")
    checkout.root = checkout.root.rename(checkout.root.parent / "else where")
    assert checkout.did("demo") == ["pip .", "tritium demo"]


@pytest.mark.parametrize("left", ["nothing", "folders", "no python", "dead python"])
def test_half_made_environment_is_made_again(checkout: Checkout, left: str) -> None:
    checkout.python("python3")
    binaries = checkout.root / ".venv" / "bin"
    if left != "nothing":
        binaries.mkdir(parents=True)
    if left == "no python":
        (binaries.parent / "pyvenv.cfg").touch()
    if left == "dead python":
        (binaries / "python").symlink_to(checkout.root / "gone")
    assert checkout.did("demo") == ["venv", "pip .", "tritium demo"]


def test_interrupted_installation_is_finished(checkout: Checkout) -> None:
    checkout.python("python3")
    checkout.did("demo")
    (checkout.root / ".venv" / ".tritium").unlink()
    assert checkout.did("demo") == ["pip .", "tritium demo"]


def test_lost_package_is_noticed(checkout: Checkout) -> None:
    checkout.python("python3")
    checkout.did("demo")
    (checkout.root / ".venv" / "bin" / "broken").touch()
    assert checkout.did("demo") == ["venv", "pip .", "tritium demo"]


def test_environment_elsewhere_from_any_folder(checkout: Checkout, tmp_path: Path) -> None:
    checkout.python("python3")
    assert checkout.did("demo", TRITIUM_VENV="my env") == ["venv", "pip .", "tritium demo"]
    assert (tmp_path / "my env" / "pyvenv.cfg").is_file()
    assert not (checkout.root / ".venv").exists()


def test_folder_that_is_no_environment_is_left_alone(checkout: Checkout, tmp_path: Path) -> None:
    checkout.python("python3")
    precious = tmp_path / "home" / "letter"
    precious.parent.mkdir()
    precious.write_text("dear")
    line = refusal(checkout.dev("demo", TRITIUM_VENV=str(precious.parent)))
    assert "is left alone" in line
    assert precious.read_text() == "dear"


def test_help_needs_no_python_and_an_unknown_verb_is_a_usage_error(checkout: Checkout) -> None:
    for arguments in ([], ["help"], ["--help"]):
        result = checkout.dev(*arguments)
        assert (result.returncode, result.stderr) == (0, "")
        assert "usage: ./dev VERB" in result.stdout
    result = checkout.dev("dmeo")
    assert result.returncode == 2
    assert "there is no verb 'dmeo'" in result.stderr


def test_read_only_checkout_keeps_its_environment_in_the_cache() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        checkout = Checkout(place)
        checkout.python("python3")
        (cache := place / "cache").mkdir()
        for path in (cache, checkout.log):
            path.chmod(0o777)
        checkout.root.chmod(0o555)
        # root may write everywhere: the script then runs as a user who may not.
        checkout.user = 65534 if os.geteuid() == 0 else None
        assert checkout.did("demo", XDG_CACHE_HOME=str(cache)) == ["venv", "pip .", "tritium demo"]
        (environment,) = (cache / "tritium").iterdir()
        assert (environment / "pyvenv.cfg").is_file()
        checkout.root.chmod(0o755)
