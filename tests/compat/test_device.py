"""``--device cpu``: scripts that hard-code the device "cuda"."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch", reason="maps torch's devices")

SCRIPT = """
import torch
import triton
import triton.language as tl

@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x, y = tl.load(x_ptr + offs, mask=mask), tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)

assert torch.cuda.is_available() and torch.cuda.device_count() == 1
torch.manual_seed(0)
device = torch.device("cuda", torch.cuda.current_device())
numbers = torch.Generator(device="cuda").manual_seed(1)
assert isinstance(torch.default_generator, torch.Generator)
a = torch.rand(1000, device="cuda")
b = torch.rand(1000, device=device, generator=numbers)
tensors = [a, b, a.cpu().cuda(), a.to("cuda:0"), torch.zeros(1000).to(device), torch.ones_like(a)]
tensors += [torch.tensor([1.0] * 1000, device="cuda"), torch.zeros(1000).pin_memory()]
with torch.device("cuda"):
    tensors.append(torch.zeros(1000))
for x in tensors:
    assert x.device.type == "cpu" and x.is_cuda
    out = torch.empty_like(x, device="cuda")
    add[(triton.cdiv(1000, 256),)](x, a, out, 1000, BLOCK=256)
    assert torch.equal(out, x + a)
layer = torch.nn.Linear(4, 3, device="cuda").cuda().to(device="cuda")
assert layer(torch.zeros(2, 4, device="cuda")).shape == (2, 3)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream), torch.cuda.device(0):
    start.record()
    end.record()
    stream.wait_stream(torch.cuda.current_stream())
torch.cuda.synchronize()
assert 0 <= start.elapsed_time(end) < 1e4
properties = torch.cuda.get_device_properties(device)
assert (properties.major, properties.minor) == torch.cuda.get_device_capability()
assert properties.name == torch.cuda.get_device_name(0)
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total
assert torch.cuda.memory_allocated() == 0
torch.cuda.set_rng_state(torch.cuda.get_rng_state())
assert str("cuda") == "cuda" and {"cuda": 1}["cuda"] == 1
print("ok")
"""


def run(script: str, tmp_path: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(script))
    return subprocess.run(
        [sys.executable, "-m", "tritium", "run", *options, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_script_for_cuda_only(tmp_path: pathlib.Path) -> None:
    done = run(SCRIPT, tmp_path, "--device", "cpu")
    assert done.stdout == "ok\n", done.stderr
    assert run(SCRIPT, tmp_path).returncode == 1


def test_torch_that_was_imported_before(tmp_path: pathlib.Path) -> None:
    script = """
    import torch
    import tritium.compat
    tritium.compat.map_cuda_to_cpu()
    tritium.compat.map_cuda_to_cpu()
    print(torch.zeros(1, device="cuda").device, torch.cuda.is_available())
    """
    assert run(script, tmp_path).stdout == "cpu True\n"


def test_scripts_without_torch_are_not_bothered(tmp_path: pathlib.Path) -> None:
    script = "import sys, triton\nprint('torch' in sys.modules)"
    assert run(script, tmp_path, "--device", "cpu").stdout == "False\n"


def test_the_guide_s_programs_on_the_device_cuda(tmp_path: pathlib.Path) -> None:
    guide = pathlib.Path(__file__).parents[1] / "guide" / "vector_add.py"
    command = [sys.executable, "-m", "tritium", "run", "--device", "cpu", str(guide), "1025"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "ok cuda 1025\n", done.stderr
