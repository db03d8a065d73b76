"""Leaves out the dialogues of DailyDialog that are in other splits too.

python tests/benchmarks/split_dialogues.py FOLDER OUTPUT

FOLDER has train.jsonl and train_drop_ids.txt, the ids that are left out.
OUTPUT gets train.jsonl.
"""

import argparse
import json
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()

    dropped = {*(options.folder / "train_drop_ids.txt").read_text().split()}
    lines = (options.folder / "train.jsonl").read_text("utf-8").splitlines()
    kept = [line for line in lines if json.loads(line)["id"] not in dropped]
    assert len(kept) == len(lines) - len(dropped)
    options.output.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in kept)
    (options.output / "train.jsonl").write_text(text, "utf-8")
    print(f"{len(kept)} of {len(lines)} dialogues are kept")


if __name__ == "__main__":
    main()
