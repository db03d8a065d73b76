from kseq.server.batcher import Batcher
from kseq.server.model_store import ModelStore
from kseq.server.rest_app import RestApp

__all__ = ["Batcher", "ModelStore", "RestApp"]
