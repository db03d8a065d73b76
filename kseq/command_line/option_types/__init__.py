# ruff: noqa: F401  # names for recipes
"""The options that recipes share, and types that say which values are valid.

The checks import no TensorFlow: a wrong value is refused before it starts.
"""

from kseq.command_line.option_types.check_options import (
    check_options,
    refuse_unread,
    without_none,
)
from kseq.command_line.option_types.data_options import (
    DialogueOptions,
    PictureOptions,
    SpeechOptions,
    TranslationOptions,
)
from kseq.command_line.option_types.recurrent_options import (
    RecurrentDecoderOptions,
    RecurrentOptions,
)
from kseq.command_line.option_types.training_options import (
    FineTuningOptions,
    GenerationLossOptions,
    LossOptions,
    OptimizerOptions,
    PairOptions,
    TrainingOptions,
    WordVectorOptions,
)
from kseq.command_line.option_types.transformer_options import (
    TRANSFORMER_PRESETS,
    TransformerOptions,
)
from kseq.command_line.option_types.value_types import (
    DataFile,
    DType,
    Epsilon,
    EvenSize,
    Limits,
    MelBands,
    Metric,
    MultipleOf,
    Network,
    NewPath,
    Ngrams,
    NonNegativeFloat,
    NonNegativeInt,
    Pieces,
    Port,
    Positions,
    PositiveFloat,
    PositiveInt,
    Rate,
    RowLength,
    RunPath,
    SampleCount,
    SampleRate,
    Seconds,
    Share,
    Size,
    Slots,
    SmallInt,
    SmallIntOrZero,
    VocabSize,
    option,
)
