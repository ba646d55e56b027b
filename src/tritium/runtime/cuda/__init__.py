"""CUDA devices: NVIDIA's driver by ctypes, code for them, launching.

Nothing here needs a GPU, a driver or a CUDA package to be imported; what is missing is said where
it is needed. ``library`` holds the driver's functions, ``devices`` contexts and facts of the GPUs,
``code`` a kernel's machine code for one of them.
"""
