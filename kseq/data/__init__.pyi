# ruff: noqa: I001  # the names of a module stay in one statement
from .algorithms.binary_batches import (
    binary_batches as binary_batches,
    binary_examples as binary_examples,
)
from .algorithms.vector_preprocessor import (
    VectorPreprocessor as VectorPreprocessor,
)
from .dialogues.dialogue_corpus import (
    DialogueCorpus as DialogueCorpus,
    read_dialogue_corpus as read_dialogue_corpus,
)
from .dialogues.dialogue_preprocessor import (
    DialoguePreprocessor as DialoguePreprocessor,
)
from .dialogues.dialogues import (
    Dialogues as Dialogues,
    read_dialogues as read_dialogues,
)
from .dialogues.prepare_dialogues import prepare_dialogues as prepare_dialogues
from .dialogues.prepared_dialogues import (
    PreparedDialogues as PreparedDialogues,
    open_prepared_dialogues as open_prepared_dialogues,
)
from .dialogues.small_talk import small_talk as small_talk
from .documents.dispatch_reports import dispatch_reports as dispatch_reports
from .documents.document_batches import document_batches as document_batches
from .documents.document_corpus import (
    DocumentCorpus as DocumentCorpus,
    read_document_corpus as read_document_corpus,
)
from .documents.document_preprocessor import (
    DocumentPreprocessor as DocumentPreprocessor,
)
from .documents.documents import (
    Documents as Documents,
    read_documents as read_documents,
)
from .documents.piece_prediction_batches import (
    masked_prediction_batches as masked_prediction_batches,
    piece_prediction_batches as piece_prediction_batches,
)
from .documents.prepare_documents import prepare_documents as prepare_documents
from .documents.prepared_documents import (
    PreparedDocuments as PreparedDocuments,
    open_prepared_documents as open_prepared_documents,
)
from .files.data_error import DataError as DataError
from .files.labelled_batches import labelled_batches as labelled_batches
from .files.labelled_examples import LabelledExamples as LabelledExamples
from .files.source import Source as Source
from .files.stored_features import StoredFeatures as StoredFeatures
from .files.text_files import read_lines as read_lines
from .pictures.caption_corpus import (
    CaptionCorpus as CaptionCorpus,
    read_caption_corpus as read_caption_corpus,
    read_captions as read_captions,
    read_image_captions as read_image_captions,
)
from .pictures.captions import Captions as Captions
from .pictures.feature_files import read_features as read_features
from .pictures.feature_preprocessor import (
    FeaturePreprocessor as FeaturePreprocessor,
)
from .pictures.image_preprocessor import ImagePreprocessor as ImagePreprocessor
from .pictures.picture_features import NetworkOptions as NetworkOptions
from .pictures.prepare_captions import prepare_captions as prepare_captions
from .pictures.scenes import scenes as scenes
from .running_text.brackets import brackets as brackets
from .running_text.prepare_text import prepare_text as prepare_text
from .running_text.prepared_text import (
    PreparedText as PreparedText,
    open_prepared_text as open_prepared_text,
)
from .running_text.prompt_preprocessor import (
    PromptPreprocessor as PromptPreprocessor,
)
from .running_text.running_ids import running_ids as running_ids
from .running_text.running_text import (
    running_text_batches as running_text_batches,
    running_text_evaluation as running_text_evaluation,
)
from .running_text.text_corpus import (
    TextCorpus as TextCorpus,
    read_text_corpus as read_text_corpus,
)
from .running_text.text_documents import read_texts as read_texts
from .speech.audio_preprocessor import AudioPreprocessor as AudioPreprocessor
from .speech.frame_files import read_frames as read_frames
from .speech.frame_preprocessor import FramePreprocessor as FramePreprocessor
from .speech.prepare_speech import prepare_speech as prepare_speech
from .speech.speech_corpus import (
    SpeechCorpus as SpeechCorpus,
    read_speech_corpus as read_speech_corpus,
    read_transcripts as read_transcripts,
)
from .speech.transcripts import Transcripts as Transcripts
from .tags.journeys import journeys as journeys
from .tags.prepare_tags import prepare_tags as prepare_tags
from .tags.prepared_tags import (
    PreparedTags as PreparedTags,
    open_prepared_tags as open_prepared_tags,
)
from .tags.tagged_sentences import (
    TaggedSentences as TaggedSentences,
    read_tagged_sentences as read_tagged_sentences,
)
from .tags.tagging_batches import tagging_batches as tagging_batches
from .tags.tagging_corpus import (
    TaggingCorpus as TaggingCorpus,
    read_tagging_corpus as read_tagging_corpus,
)
from .tags.word_preprocessor import WordPreprocessor as WordPreprocessor
from .text.batches import (
    evaluation_batches as evaluation_batches,
    training_batches as training_batches,
)
from .text.corpus import Corpus as Corpus, read_corpus as read_corpus
from .text.dates import dates as dates
from .text.denoising_batches import denoising_batches as denoising_batches
from .text.line_filters import (
    LineFilters as LineFilters,
    kept_pairs as kept_pairs,
)
from .text.pair_tokenizers import (
    PairTokenizers as PairTokenizers,
    load_pair_tokenizers as load_pair_tokenizers,
)
from .text.parallel_text import ParallelText as ParallelText
from .text.piece_vectors import piece_vectors as piece_vectors
from .text.prepare_pairs import prepare_pairs as prepare_pairs
from .text.prepared_pairs import (
    PreparedPairs as PreparedPairs,
    open_prepared as open_prepared,
)
from .text.sentences import Paragraphs as Paragraphs
from .text.sentences import split_paragraphs as split_paragraphs
from .text.teacher_forcing import teacher_forcing as teacher_forcing
from .text.text_preprocessor import TextPreprocessor as TextPreprocessor
from .text.text_report import TextReport as TextReport
from .text.tokenized_pairs import (
    TokenizedPairs as TokenizedPairs,
    tokenize_pairs as tokenize_pairs,
)
from .text.tokenizer import Tokenizer as Tokenizer
from .text.word_vectors import word_vectors as word_vectors
