"""Compilation of the model of a recipe."""

from kseq.training.fine_tuning import freeze
from kseq.training.optimizer import build_optimizer


def compile_model(model, config, **adam_options):
    """Compiles the model of a recipe as its options say.

    For a recipe that can start from another run, it is equivalent to:

        freeze(model, config.freeze, config.lora)
        model.compile(
            build_optimizer(config, **adam_options),
            **config.compile_arguments(),
        )

    Args:
        model: `kseq.models.ExactModel`.
        config: see `TrainingOptions` and `LossOptions` of
            `kseq.command_line.option_types`.
        **adam_options: see `build_optimizer`.

    Raises:
        UserError: see `freeze`.
    """
    freeze(model, getattr(config, "freeze", ()), getattr(config, "lora", 0))
    optimizer = build_optimizer(config, **adam_options)
    model.compile(optimizer, **config.compile_arguments())
