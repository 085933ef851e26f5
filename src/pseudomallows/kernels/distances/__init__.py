"""The kernels of single distances: one file each, and moves over a list of rankings."""
