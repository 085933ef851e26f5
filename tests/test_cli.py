import os
import subprocess
import sys

import pytest

import pseudomallows as pm
from pseudomallows import cli


def test_the_demo_prints_the_consensus_and_saves_a_picture(tmp_path, capsys):
    out = tmp_path / "a demo"
    assert cli.main(["demo", "--out", str(out), "--seed", "1"]) == 0
    printed = capsys.readouterr()
    assert "95 % interval" in printed.out
    assert printed.out.count("\n") == len(cli.DEMO_ITEMS) + 4
    assert "compiled" in printed.err
    assert sorted(os.listdir(out)) == ["consensus.png", "posterior.pm"]
    assert (out / "consensus.png").read_bytes().startswith(b"\x89PNG")
    posterior = pm.load(out / "posterior.pm")
    assert sorted(posterior.items.tolist()) == sorted(cli.DEMO_ITEMS)


def test_the_demo_runs_twice_with_the_same_result(tmp_path, capsys):
    printed = []
    for _ in range(2):
        assert cli.main(["demo", "--out", str(tmp_path)]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_bad_output_gives_one_line_and_code_1(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("pseudomallows: ")


def test_wrong_usage_is_code_2():
    with pytest.raises(SystemExit) as stop:
        cli.main(["dmeo"])
    assert stop.value.code == 2


def test_the_module_runs_as_a_command():
    command = [sys.executable, "-m", "pseudomallows", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"pseudomallows {pm.__version__}\n"


def test_an_interrupt_is_code_130(monkeypatch, tmp_path, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "fit", interrupt)
    assert cli.main(["demo", "--out", str(tmp_path / "x")]) == 130
    assert not (tmp_path / "x").exists()
