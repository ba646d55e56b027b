"""What hosts use around kernels, by Triton's names."""
