"""Trains with batches that suddenly become large, and little memory."""

import dataclasses
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kseq import run_recipe


@dataclasses.dataclass(frozen=True)
class Config:
    """Needs more memory than there is."""

    run: str = ""
    batch_tokens: int = 4096 * 512


def main(config):
    from kseq.runs import RunDirectory
    from kseq.training import Checkpoints
    from tests.models.one_by_one import one_by_one
    from tests.models.test_exact_model import batches, tiny_model

    run = RunDirectory(config.run)
    run.start(config)

    small, large = batches([4, 4]), batches([4096], length=512)
    model = tiny_model()
    model.compile("sgd")
    run.save_model(model)
    model.fit(
        one_by_one([*small, *large]).repeat(),
        steps_per_epoch=2,
        epochs=2,
        callbacks=[Checkpoints(run, monitor="loss")],
        shuffle=False,
        verbose=0,
    )


if __name__ == "__main__":
    run_recipe(main, Config(), without_files=Config(run=sys.argv.pop()))
