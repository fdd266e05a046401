"""The kernels as compiled loops on arrays of one image; nothing here imports torch."""
