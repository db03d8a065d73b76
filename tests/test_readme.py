import re
import subprocess
from pathlib import Path

from PIL import Image

from kseq import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
INDENTED = [
    line.strip().rstrip("\\")
    for line in README.splitlines()
    if line[:4] == " " * 4
]


def test_make_knows_the_targets():
    targets = [line.split()[1] for line in INDENTED if line.startswith("make ")]
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        done = subprocess.run(
            ["make", "--dry-run", target], cwd=ROOT, capture_output=True
        )
        assert done.returncode == 0, done.stderr


def test_the_command_line_knows_the_commands(capsys):
    commands = set(re.findall(r"^\| `(\w+)[ `]", README, re.M))
    commands |= {line.split()[1] for line in INDENTED if line[:5] == "kseq "}
    commands -= {"kseq"}
    assert {"train", "check", "predict"} <= commands
    for command in commands:
        assert cli.main([command, "--help"]) == 0, command


def test_the_model_of_the_example_is_built():
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    [example] = [block for block in blocks if "LSTMSeq2Seq" in block]
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    assert names["model"].compiled


def test_pictures_are_there():
    pictures = re.findall(r"\]\((\S+\.png)\)", README)
    assert pictures
    for picture in pictures:
        with Image.open(ROOT / picture) as image:
            assert image.width > 300
