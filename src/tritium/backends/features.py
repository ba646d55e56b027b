"""CPU features: what named CPUs have, and what LLVM's target intrinsics need.

LLVM's code generator ends the process when an intrinsic's feature is absent, so every module is
checked against this table first.
"""

from __future__ import annotations

import re
from collections.abc import Set

_X86_64 = frozenset({"sse", "sse2"})
_V2 = _X86_64 | {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"}
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_CASCADE_LAKE = _V4 | {"avx512vnni"}
_COOPER_LAKE = _CASCADE_LAKE | {"avx512bf16"}
_ICE_LAKE = _CASCADE_LAKE | {
    *("avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq", "gfni"),
}
_SAPPHIRE_RAPIDS = _ICE_LAKE | {
    *("avx512bf16", "avx512fp16", "avxvnni", "amx-tile", "amx-int8", "amx-bf16"),
}
_ZEN4 = _ICE_LAKE | {"avx512bf16"}

_NEON = frozenset({"neon", "fp-armv8"})
_NEOVERSE_N1 = _NEON | {"dotprod", "fullfp16", "lse", "crc"}
_NEOVERSE_V1 = _NEOVERSE_N1 | {"sve", "bf16", "i8mm"}

CPUS: dict[str, frozenset[str]] = {
    "x86-64": _X86_64,
    "x86-64-v2": _V2,
    "nehalem": _V2,
    "x86-64-v3": _V3,
    "haswell": _V3,
    "znver3": _V3,
    "x86-64-v4": _V4,
    "skylake-avx512": _V4,
    "cascadelake": _CASCADE_LAKE,
    "cooperlake": _COOPER_LAKE,
    "icelake-server": _ICE_LAKE,
    "sapphirerapids": _SAPPHIRE_RAPIDS,
    "znver4": _ZEN4,
    "znver5": _ZEN4 | {"avxvnni"},
    "generic": frozenset(),
    "neoverse-n1": _NEOVERSE_N1,
    "neoverse-v1": _NEOVERSE_V1,
    "neoverse-v2": _NEOVERSE_V1 | {"sve2"},
    "apple-m1": _NEOVERSE_N1,
}

# What every CPU of an architecture has.
_BASES = {"x86_64": _X86_64, "aarch64": _NEON, "arm64": _NEON}

# The longest prefix of an intrinsic's name decides.
_NEEDS: dict[str, tuple[str, ...]] = {
    "llvm.x86.sse.": ("sse",),
    "llvm.x86.sse2.": ("sse2",),
    "llvm.x86.sse41.": ("sse4.1",),
    "llvm.x86.avx.": ("avx",),
    "llvm.x86.avx2.": ("avx2",),
    "llvm.x86.avx512.": ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    "llvm.x86.avx512.vpdp": ("avx512vnni",),
    "llvm.x86.avx512bf16.": ("avx512bf16",),
    "llvm.x86.avx512fp16.": ("avx512fp16",),
    "llvm.x86.vcvtps2ph": ("f16c",),
    "llvm.x86.ldtilecfg": ("amx-tile",),
    "llvm.x86.sttilecfg": ("amx-tile",),
    "llvm.x86.tile": ("amx-tile",),
    "llvm.x86.tdpbf16ps": ("amx-bf16",),
    "llvm.x86.tdpb": ("amx-int8",),
    "llvm.x86.rdtsc": (),
    "llvm.aarch64.neon.": ("neon",),
    "llvm.aarch64.neon.sdot": ("dotprod",),
    "llvm.aarch64.neon.udot": ("dotprod",),
    "llvm.aarch64.neon.bf": ("bf16",),
    "llvm.aarch64.neon.smmla": ("i8mm",),
    "llvm.aarch64.neon.ummla": ("i8mm",),
    "llvm.aarch64.neon.usmmla": ("i8mm",),
    "llvm.aarch64.neon.usdot": ("i8mm",),
    "llvm.aarch64.sve.": ("sve",),
    "llvm.aarch64.hint": (),
    "llvm.aarch64.": ("unlisted",),
    "llvm.x86.": ("unlisted",),
}

# Not compiled before it is needed: a warm start doesn't.
_INTRINSIC = r"@(llvm\.(?:x86|aarch64)\.[\w.]+)"


def cpu_features(cpu: str, architecture: str) -> frozenset[str]:
    """The features of a CPU as LLVM names them; of one that is not listed, its architecture's."""
    return CPUS.get(cpu, frozenset()) | _BASES.get(architecture, frozenset())


def missing_features(text: str, features: Set[str]) -> dict[str, list[str]]:
    """What the target intrinsics of a module's text need beyond `features`, by intrinsic.

    An intrinsic that no entry covers needs "unlisted", which no CPU has.
    """
    absent: dict[str, list[str]] = {}
    for name in sorted(set(re.findall(_INTRINSIC, text))):
        prefix = max(filter(name.startswith, _NEEDS), key=len)
        if needs := [feature for feature in _NEEDS[prefix] if feature not in features]:
            absent[name] = needs
    if "sve" not in features and "<vscale x" in text:
        absent["<vscale x ...>"] = ["sve"]
    return absent
