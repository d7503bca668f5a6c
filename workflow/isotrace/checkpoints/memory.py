"""Freed memory kept for the next step instead of returned to the system and faulted in again, page by page.

glibc's own settings (mallopt(3)); measured: a fifth of a training step of a small decoder is page faults.
"""

import ctypes
import platform

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8
_KEPT_BYTES = 2**31 - 1
_PAD_BYTES = 2**26


def keep_freed_memory() -> None:
    """For this process, from now on: large arrays of all threads come from one heap, and it is not trimmed.

    Results do not change. The process keeps its peak memory until it ends; elsewhere than on glibc nothing happens.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_ARENA_MAX, 1)  # other arenas give their pages back whatever the threshold
    libc.mallopt(_M_MMAP_MAX, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    libc.mallopt(_M_TOP_PAD, _PAD_BYTES)
