"""Launching: argument binding, arrays, compiled kernels, the thread pool and the compile cache."""
