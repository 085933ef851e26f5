"""A benchmark whose service does not come up says what happened."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import service
from webhelp import free_port


def test_a_service_that_ends_early_is_told_with_its_last_words(monkeypatch):
    monkeypatch.setattr(service, "PORT", free_port())
    script = "import time; time.sleep(1); exit(3)"
    ended = subprocess.Popen([sys.executable, "-c", script])
    with pytest.raises(RuntimeError, match=r"ended with code 3 .* Connection refused"):
        service.wait_until_ready(ended)
