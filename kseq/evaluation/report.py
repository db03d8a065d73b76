"""What a training came to, in print."""

from kseq.evaluation.translate_all import strings, translate_all
from kseq.evaluation.translation_scores import translation_scores


def report(path, translator, run, pairs, samples=5):
    """Prints scores on test pairs, a few translations, and what to do next.

    Args:
        path: of the export.
        translator: the export, loaded; has `translate`.
        run: `RunDirectory`.
        pairs: finite `tf.data.Dataset` of strings (source, target).
        samples: int, translations printed.
    """
    sources, references = strings(pairs)
    outputs = translate_all(translator.translate, sources)
    scores = translation_scores(outputs, references)
    print(f"\n{path} on {len(sources)} pairs:")
    print(f"  exact match {scores['exact_match']:.2%}")
    print(f"  BLEU {scores['bleu']:.2f}  {scores['bleu_signature']}")
    print(f"  chrF {scores['chrf']:.2f}  {scores['chrf_signature']}")

    print("\nIt translates:")
    for text, output in list(zip(sources, outputs, strict=True))[:samples]:
        print(f"  {text}  ->  {output}")
    print(f"\nTranslate your own:   kseq predict {path} < FILE")
    print(f"Look at the training: tensorboard --logdir {run.path}")
