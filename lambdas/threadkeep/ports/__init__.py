"""What the use cases ask of the outside. Each port has a suite in tests/contract that every implementation passes."""

from threadkeep.ports.cold import (
    BodyStore,
    ColdStore,
    ExportFiles,
    ObjectSweep,
    PresignedGet,
    PresignedPut,
    UploadStore,
)
from threadkeep.ports.hot import HotStore
from threadkeep.ports.outside import (
    AnswerRequest,
    Clock,
    Delivery,
    JobQueue,
    Push,
    Responder,
    TokenRefused,
    TokenVerifier,
)
from threadkeep.ports.quotas import Quotas
from threadkeep.ports.regions import HeadReplaced, IdClaims, MessageReplaced, Replaced, ReplacedItems
from threadkeep.ports.warm import (
    ConversationPage,
    DueEntry,
    DueList,
    ErasureStore,
    ExportStore,
    Gone,
    LiveRegister,
    ManifestStore,
    MessagePage,
    OtherTables,
    WarmStore,
)

__all__ = [
    "AnswerRequest",
    "BodyStore",
    "Clock",
    "ColdStore",
    "ConversationPage",
    "Delivery",
    "DueEntry",
    "DueList",
    "ErasureStore",
    "ExportFiles",
    "ExportStore",
    "Gone",
    "HeadReplaced",
    "HotStore",
    "IdClaims",
    "JobQueue",
    "LiveRegister",
    "ManifestStore",
    "MessagePage",
    "MessageReplaced",
    "ObjectSweep",
    "OtherTables",
    "PresignedGet",
    "PresignedPut",
    "Push",
    "Quotas",
    "Replaced",
    "ReplacedItems",
    "Responder",
    "TokenRefused",
    "TokenVerifier",
    "UploadStore",
    "WarmStore",
]
