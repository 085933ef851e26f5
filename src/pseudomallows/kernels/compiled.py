"""How kernels are compiled.

They are kept on disk, other threads may run meanwhile, and there is no entry for C, which nobody
calls: it would be an eighth of the time to compile. What a kernel costs there is about a fifth of a
second of the processor for each function and each type it is called with, however short, and
seconds where it gives an array to a slice (`a[i] = b`: its error message is compiled, too), or
sorts. So loops are written out, and a step that NumPy does as well is left to NumPy. A literal
number is a type of its own, if a kernel is called with it; `np.int64(0)` is none.
"""

from numba import njit

compiled = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
