import dataclasses

import keras
import pytest

from kseq.command_line.option_types import (
    FineTuningOptions,
    LossOptions,
    PositiveFloat,
    PositiveInt,
    TrainingOptions,
    TranslationOptions,
)
from kseq.models import FlatAttention
from kseq.training import LowRankOptimizer, compile_model
from kseq.user_error import UserError


@dataclasses.dataclass(frozen=True)
class Config(TrainingOptions, LossOptions):
    run: str = "runs/a"
    learning_rate: PositiveFloat = 0.3
    steps: PositiveInt = 27
    accumulation_steps: PositiveInt = 3


@dataclasses.dataclass(frozen=True)
class FineTuned(FineTuningOptions, LossOptions):
    run: str = "runs/a"
    learning_rate: PositiveFloat = 0.3
    steps: PositiveInt = 27


@pytest.fixture
def model():
    return FlatAttention(30, 2, embedding_dim=6, units=4, attention_units=3)


def test_the_options_reach_the_model_and_its_optimizer(model):
    config = Config(label_smoothing=0.2, clip_norm=0.5, r_drop=0.7)
    compile_model(model, config, beta_2=0.98)
    assert model.accumulation_steps == 3
    assert model.label_smoothing == 0.2
    assert (model.clip_norm, model.r_drop) == (0.5, 0.7)
    assert isinstance(model.optimizer, keras.optimizers.Adam)
    assert model.optimizer.beta_2 == 0.98


def test_a_recipe_that_fine_tunes_freezes_and_adapts(model):
    compile_model(model, FineTuned(freeze=("embedding",), lora=1))
    assert isinstance(model.optimizer, LowRankOptimizer)
    assert not model.embedding.trainable_variables
    with pytest.raises(UserError, match="no layer has the name 'decoder'"):
        compile_model(model, FineTuned(freeze=("decoder",)))


def test_a_translator_has_the_weight_of_its_alignments():
    @dataclasses.dataclass(frozen=True)
    class Translated(TranslationOptions, Config):
        pass

    arguments = Translated(guided_alignment=0.4).compile_arguments()
    assert arguments["guided_alignment"] == 0.4
    assert arguments.keys() > Config().compile_arguments().keys()


@pytest.mark.parametrize(("option", "value"), [(True, "auto"), (False, False)])
def test_xla_can_be_turned_off(model, option, value):
    compile_model(model, Config(jit_compile=option))
    assert model.get_compile_config()["jit_compile"] is value
