"""Speed of `PredictLines` in Apache Beam beside `kseq predict` on a file.

    python tests/benchmarks/beam_speed.py saved_models/NAME LINES

Whole commands, in turn, each with its start: `kseq predict`, and the script of
docs/tutorials/beam.md in each number of processes. Prints seconds (medians) and
their ratio to `kseq predict`.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "beam.md"


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        commands = commands_of(options, Path(folder))
        found = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                start = time.perf_counter()
                with open(options.lines, "rb") as lines:
                    subprocess.run(
                        command,
                        stdin=lines,
                        stdout=subprocess.DEVNULL,
                        check=True,
                    )
                found[name].append(time.perf_counter() - start)
    seconds = {name: statistics.median(found[name]) for name in found}
    count = options.lines.read_bytes().count(b"\n")
    first = next(iter(seconds.values()))
    print(f"{'':20} {'seconds':>8} {'lines/s':>8} {'ratio':>6}")
    for name, each in seconds.items():
        print(f"{name:20} {each:8.1f} {count / each:8.1f} {first / each:6.2f}")


def commands_of(options, folder):
    """The command of each contender, by its name."""
    [code] = re.findall("```python\n(.*?)```", _PAGE.read_text("utf-8"), re.S)
    script = folder / "predict_lines.py"
    script.write_text(code, "utf-8")
    kseq = [sys.executable, "-m", "kseq", "predict", options.export]
    beam = [sys.executable, script, options.export, options.lines]
    beam += [folder / "answers", "--runner", "FnApiRunner"]
    beam += ["--direct_running_mode", "multi_processing"]
    return {"kseq predict": [*kseq, "--json"]} | {
        f"Beam, {n} processes": [*beam, "--direct_num_workers", str(n)]
        for n in options.processes
    }


if __name__ == "__main__":
    main()
