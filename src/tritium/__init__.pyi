from . import knobs as knobs
from . import language as language
from .ops.aggregates import aggregate as aggregate
from .ops.callable import constexpr_function as constexpr_function
from .runtime import errors as errors
from .runtime.arrays import MockTensor as MockTensor
from .runtime.arrays import TensorWrapper as TensorWrapper
from .runtime.arrays import reinterpret as reinterpret
from .runtime.errors import CompilationError as CompilationError
from .runtime.errors import InterpreterError as InterpreterError
from .runtime.errors import OutOfResources as OutOfResources
from .runtime.errors import TritiumError as TritiumError
from .runtime.host import cdiv as cdiv
from .runtime.host import next_power_of_2 as next_power_of_2
from .runtime.jit import JITFunction as JITFunction
from .runtime.jit import KernelInterface as KernelInterface
from .runtime.jit import jit as jit
from .runtime.launch import interpret as interpret
from .runtime.placement import set_default_device as set_default_device
from .tune import Config as Config
from .tune import autotune as autotune
from .tune import heuristics as heuristics

__version__: str
__all__: list[str]
