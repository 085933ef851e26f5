"""Open a store by its address."""

from .sqlite import SqliteStore
from .store import Store


def open_store(address: str) -> Store:
    """A file of SQLite, or PostgreSQL for an address that starts with ``postgresql://``.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(str(pathlib.Path(folder) / "clicks.sqlite"))
    ...     store.add([("ann", "tea"), ("ann", "rum"), ("ann", "tea")])
    ...     store.clicks_of(["ann"])
    ...     store.close()
    {'ann': ['tea', 'rum']}
    """
    if address.startswith(("postgresql://", "postgres://")):
        from .postgres import PostgresStore

        return PostgresStore(address)
    return SqliteStore(address)
