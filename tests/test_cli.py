import subprocess
import sys

from kseq import cli


def test_help_and_errors_do_without_tensorflow(tmp_path):
    program = (
        "import sys; from kseq import cli\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'matplotlib'}\n"
        "try: cli.main(sys.argv[1:])\n"
        "finally: assert not heavy & sys.modules.keys()"
    )
    for arguments, code in [
        (["--help"], 0),
        (["predict", "--help"], 0),
        (["predict", tmp_path], 2),
        (["recipes"], None),
    ]:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
        )
        assert done.returncode == (code or 0), done.stderr


def test_recipes_are_listed_and_copied(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["recipes"]) == 0
    listed = capfd.readouterr().out
    assert "translate_transformer" in listed
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 0
    assert (tmp_path / "translate_transformer.py").stat().st_size > 1000
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 2
