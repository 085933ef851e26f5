"""A store is opened by its address."""

import pytest

from pseudomallows.web.stores.open import open_store
from webhelp import free_port


def test_a_store_that_is_none_is_refused(tmp_path):
    (tmp_path / "text").write_text("not a database " * 100)
    with pytest.raises(ValueError, match="cannot keep clicks"):
        open_store(str(tmp_path / "text"))
    with pytest.raises(ValueError, match="cannot keep clicks"):
        open_store(str(tmp_path / "no" / "folder.sqlite"))
    pytest.importorskip("psycopg")
    with pytest.raises(ValueError, match="cannot keep clicks in PostgreSQL"):
        open_store(f"postgresql://pm@127.0.0.1:{free_port()}/none")
