"""A model of another toolkit, as kseq has it."""

import dataclasses

from kseq.serving import Generator


@dataclasses.dataclass(frozen=True)
class ConvertedModel:
    """What is read of a model of another toolkit.

    Args:
        generator: `kseq.serving.Generator` of a `kseq.models.Transformer`.
    """

    generator: Generator

    @property
    def options(self) -> dict:
        """The options of `translate_transformer` that make the same model."""
        model = self.generator.model
        names = (
            *("model_dim", "ffn_dim", "dropout", "norm", "activation"),
            *("positions", "share_embeddings", "tie_output", "output_bias"),
            *("norm_epsilon", "source_end"),
        )
        return {
            **{name: getattr(model, name) for name in names},
            "encoder_layers": model.num_encoder_layers,
            "decoder_layers": model.num_decoder_layers,
            "layers": model.num_decoder_layers,
            "heads": model.num_heads,
            "beam_size": self.generator.search.beam_size,
        }
