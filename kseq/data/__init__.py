"""Files to batches: what is trained on, checked and turned into ids.

Its modules are imported when they are first used: files are checked without
TensorFlow.
"""

import sys

from kseq.lazy_package import LazyPackage

_MODULES = {
    "AudioPreprocessor": "audio_preprocessor",
    "CaptionCorpus": "caption_corpus",
    "Captions": "captions",
    "Corpus": "corpus",
    "DataError": "data_error",
    "DialogueCorpus": "dialogue_corpus",
    "DialoguePreprocessor": "dialogue_preprocessor",
    "Dialogues": "dialogues",
    "DocumentCorpus": "document_corpus",
    "DocumentPreprocessor": "document_preprocessor",
    "Documents": "documents",
    "FeaturePreprocessor": "feature_preprocessor",
    "FramePreprocessor": "frame_preprocessor",
    "ImagePreprocessor": "image_preprocessor",
    "NetworkOptions": "picture_features",
    "ParallelText": "parallel_text",
    "PromptPreprocessor": "prompt_preprocessor",
    "Source": "source",
    "SpeechCorpus": "speech_corpus",
    "StoredFeatures": "stored_features",
    "TaggedSentences": "tagged_sentences",
    "TaggingCorpus": "tagging_corpus",
    "TextCorpus": "text_corpus",
    "TextPreprocessor": "text_preprocessor",
    "TextReport": "parallel_text",
    "Tokenizer": "tokenizer",
    "Transcripts": "transcripts",
    "VectorPreprocessor": "vector_preprocessor",
    "WordPreprocessor": "word_preprocessor",
    "binary_batches": "binary_batches",
    "binary_examples": "binary_batches",
    "document_batches": "document_batches",
    "evaluation_batches": "batches",
    "longest_target": "longest_target",
    "piece_prediction_batches": "piece_prediction_batches",
    "piece_vectors": "piece_vectors",
    "read_caption_corpus": "caption_corpus",
    "read_captions": "caption_corpus",
    "read_corpus": "corpus",
    "read_dialogue_corpus": "dialogue_corpus",
    "read_dialogues": "dialogues",
    "read_document_corpus": "document_corpus",
    "read_documents": "documents",
    "read_features": "feature_files",
    "read_frames": "frame_files",
    "read_image_captions": "caption_corpus",
    "read_lines": "text_files",
    "read_speech_corpus": "speech_corpus",
    "read_tagged_sentences": "tagged_sentences",
    "read_tagging_corpus": "tagging_corpus",
    "read_text_corpus": "text_corpus",
    "read_texts": "text_documents",
    "read_transcripts": "speech_corpus",
    "running_ids": "running_text",
    "running_text_batches": "running_text",
    "running_text_evaluation": "running_text",
    "tagging_batches": "tagging_batches",
    "teacher_forcing": "teacher_forcing",
    "training_batches": "batches",
}
__all__ = [*_MODULES]

sys.modules[__name__].__class__ = LazyPackage
