"""How much memory there is, so that what cannot fit is refused before the work begins."""

from pathlib import Path

CONTROL_GROUP = Path("/sys/fs/cgroup")  # of a container, if this is one
DENSE_ITEMS = 4_000  # whose tables of items times items, 128 MB each, are made without asking. With
# more items everything goes with the clicks and the draws; clusters of 8,000 items then began as
# well (Rand index 0.99) as with limits of 3,000 and 20,000, in less time.
CUBIC_ITEMS = DENSE_ITEMS // 8  # for what takes items^3 steps: 500^3 are as many as 11,000^2
UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def available_memory() -> int | None:
    """Bytes that are free for new work; None where the system does not say."""
    limits = [_of_machine(), _of_container()]
    known = [n_bytes for n_bytes in limits if n_bytes is not None]
    return min(known) if known else None


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _of_container() -> int | None:
    try:
        limit = int((CONTROL_GROUP / "memory.max").read_text())
        used = int((CONTROL_GROUP / "memory.current").read_text())
        lines = (CONTROL_GROUP / "memory.stat").read_text().splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
        return max(0, limit - used + cached)  # files that were read give way
    except (OSError, ValueError):  # "max": no limit
        return None


def as_size(n_bytes: float) -> str:
    """A number of bytes in words.

    >>> as_size(8e12)
    '8 TB'
    """
    unit = 0
    while n_bytes >= 1000 and unit < len(UNITS) - 1:
        n_bytes, unit = n_bytes / 1000, unit + 1
    return f"{n_bytes:.3g} {UNITS[unit]}"


def check_table(n_items: int, what: str) -> None:
    """Refuse a table of items times items that does not fit into memory."""
    needed, available = 8 * n_items**2, available_memory()
    if available is not None and needed > available:
        raise ValueError(
            f"{what} of {n_items:,} items need {as_size(needed)} of memory, and "
            f"{as_size(available)} are available: ask for intervals(), summary(), "
            "point_consensus() or pm.recommend, which need little"
        )
