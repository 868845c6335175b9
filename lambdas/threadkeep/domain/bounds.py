"""Every bound of the service, with its unit last in the name.

Those of the gateway are AWS's (API Gateway quotas for WebSocket APIs, read 2026-11-29: 32 KiB a frame, 128 KiB a
message, 10 min idle, 2 h lifetime); ours keep clear of them.
"""

from __future__ import annotations

from typing import Final

FRAME_BYTES_MAX: Final = 24 * 1024
"""A frame, either way. API Gateway closes at 32 KiB (1009)."""
OPS_BYTES_MAX: Final = 16 * 1024
"""The ops of one append, so that a delta fits its frame."""
PIECE_BYTES_MAX: Final = 16 * 1024
"""The ops of one piece of a settled message that is read as a log."""
PAGE_OPS_BYTES_MAX: Final = 20 * 1024
"""The ops of one `stream.resume` page, so that the page fits its frame."""
STREAM_BYTES_MAX: Final = 8 * 1024 * 1024
"""The ops of a whole answer."""
UPLOAD_BYTES_MAX: Final = 8 * 1024 * 1024
"""What is uploaded past the frames: the parts of a message as JSON, or a file that one names."""
UPLOAD_FIELDS_MAX: Final = 100_000
"""The fields of all parts in an upload: each takes some 200 bytes of memory, and 8 MiB would hold a million."""
BLOBS_MAX: Final = 16
"""Uploads that one request names in parts: keeping each takes some calls to the store."""
UPLOAD_URL_S: Final = 15 * 60
"""How long an upload may be begun after it was asked for."""
BODY_INLINE_BYTES_MAX: Final = 300_000
"""A packed body kept in the item. DynamoDB refuses items over 400 KB."""
JSON_DEPTH_MAX: Final = 64
METADATA_BYTES_MAX: Final = 16 * 1024
END_BYTES_MAX: Final = 2 * 1024
"""The `usage` of a message, and its `error`: with them and its metadata, a message without parts fits a frame."""
TITLE_CHARS_MAX: Final = 512
NAME_CHARS_MAX: Final = 256
"""Any short name that a client mints: producer, model, cursor, ref."""
PARTS_MAX: Final = 1_000
FIELD_NAME_BYTES_MAX: Final = 1_024
"""The name of a part's field, as JSON: every piece of a field that is read in pieces says it."""
TOKEN_BYTES_MAX: Final = 4 * 1024
PAGE_ITEMS_MAX: Final = 100
PAGE_ITEMS_DEFAULT: Final = 50
CONTEXT_MESSAGES_MAX: Final = 1_000
CONTEXT_MESSAGES_DEFAULT: Final = 50
VIEWERS_MAX: Final = 100
"""Viewers of one conversation."""
LIVE_STREAMS_MAX: Final = 4
"""Live streams of one conversation."""
STREAMS_AGAIN_MS: Final = 5_000
"""When to ask again where there are as many live streams as there may be. Nobody knows which ends next: with four of
half a minute each one does about that often."""
LEASE_MS: Final = 30_000
"""A stream without an append or beat for so long is dead."""
SILENT_MS: Final = 5 * 60_000
"""A stream with beats but without content for so long has failed."""
STREAM_MS_MAX: Final = 60 * 60_000
"""How long a stream may take, from its first opening."""
CLAIM_VOID_MS: Final = 30_000
"""A message claimed so long ago, and not in the table, never came. Longer than any function runs that puts one."""
LEAF_MS: Final = 24 * 60 * 60_000
"""How long a conversation's leaf stays in the hot tier after its last message."""
DUE_SHARDS: Final = 8
"""Sets that the deadlines of all live streams are dealt out to."""
SUBSCRIPTION_MS: Final = 10 * 60_000
SETTLED_STATE_MS: Final = 10 * 60_000
"""How long a settled stream's state stays, so that late writers hear `closed`."""
SEAL_OLD_MS: Final = 5_000
"""A seal older than this is finished by whoever finds it."""
FAN_OUT_WAIT_MS: Final = 250
"""How long a producer waits for its viewers' frames."""
ID_AHEAD_MS_MAX: Final = 2 * 60_000
"""How far an id's time may lie ahead of the server's clock."""
PULSE_EVERY_MS: Final = 60_000
"""A conversation's last activity is written at most so often."""
ARCHIVE_IDLE_MS: Final = 30 * 24 * 60 * 60_000
"""How long a conversation rests before it is archived, unless the settings say otherwise."""
HEAD_CACHE_MS: Final = 10_000
"""How long a function trusts a conversation's owner without reading it again."""
RETENTION_DAYS_MAX: Final = 36_500
RETENTION_MARGIN_MS: Final = 10 * 60_000
"""So long after a retention's end nothing that was begun before it is under way any more: a request (10 s), or the
replication of what it wrote. Only then does the archive touch the conversation's index entry, and end it."""
RETENTION_AGAIN_MS: Final = 60 * 60_000
"""When a conversation is looked at again whose retention could not be ended, as a region could not be asked."""
EXPIRED_PAGES_MAX: Final = 5
"""Pages of a list that hold nothing but expired conversations are passed over, so many in one request."""

TAIL_MESSAGES_MAX: Final = 64
"""Messages of a conversation that the hot tier keeps."""
TAIL_BYTES_MAX: Final = 256 * 1024
"""What they take there, packed."""
TAIL_FIRST_BYTES_MAX: Final = 16 * 1024
"""What the first message of a conversation, if it is a system message, may take beside them, packed."""
TAIL_MS: Final = 23 * 60 * 60_000
"""How long they stay after the last message. Less than the shortest retention (a day), by more than the pulse, from
which that is counted, may lag behind."""
TAIL_LOAD_MS: Final = 3_000
"""How long one reader may take to fill a conversation's tail before another tries."""
TAIL_WAIT_MS: Final = 2_000
"""How long the others wait for it before they read for themselves."""
TAIL_POLL_MS: Final = 50
GRAVESTONE_MS: Final = 24 * 60 * 60_000
"""How long the hot tier remembers that a conversation was deleted: far longer than anything under way may take."""

SEGMENT_MESSAGES_MAX: Final = 10_000
SEGMENT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Raw text of one segment: an archiver holds a few times as much."""
MEMBER_MESSAGES_MAX: Final = 100
MEMBER_BYTES_MAX: Final = 256 * 1024
"""Raw text of one member of a segment, unless one message alone takes more."""
COLD_READ_BYTES_MAX: Final = 512 * 1024
"""What a reader reads of a segment at once, compressed, unless one member alone takes more."""
PATH_STEPS_MAX: Final = 1_000
"""Messages of a path that one request passes over to come to those that were asked for."""
ARCHIVE_SETTLE_MS: Final = 60 * 60_000
"""How long a manifest has to have stood before the messages that it covers are deleted from the table."""
ARCHIVE_SHARDS: Final = 16
"""Partitions that share a day of the archive's index. Everything active on one day falls due on one day, and an index
partition takes 1,000 writes/s (DynamoDB developer guide, "Partitions", read 2026-11-29): so many shards carry more
than the 10,000 requests/s that a gateway lets in could cause."""
ARCHIVE_DAYS_BACK_MAX: Final = 400
"""How far back the planner looks once a day for what was due and is not archived."""
ARCHIVE_LEASE_MS: Final = 24 * 60 * 60_000
"""A conversation that was planned and whose archiver never came to an end is planned again after so long."""
ARCHIVE_JOBS_MAX: Final = 50_000
"""Conversations that one run of the planner queues; the next run goes on."""
ARCHIVE_PASS_SEGMENTS_MAX: Final = 16
"""Segments that one pass over a conversation writes; the next pass goes on."""
ARCHIVE_PASS_REMOVED_MAX: Final = 100_000
"""Messages that one pass removes from the table, likewise."""
REPLICATION_WAIT_MS: Final = 300
"""How long a request waits for what another region has written: longer than a replica is usually behind, and short
beside the 10 s of a route function."""
REPLICATION_POLL_MS: Final = 100
GAP_MS_MAX: Final = 3_000
"""How long one request asks other regions for what has not come; a call that is under way by then has 2 s more."""
GAP_MESSAGES_MAX: Final = 8
"""Messages of a path that one request fetches from other regions; the next page goes on."""
LIVE_ELSEWHERE_MS: Final = STREAM_MS_MAX + 5 * 60_000
"""After so long another region's word that a stream lives there is no longer believed: no stream takes that long."""
ID_CLAIM_MS: Final = 24 * 60 * 60_000
"""How long a region's claim of a conversation's id stays at least: by then the head has come everywhere, and tells."""
CONTESTED_AGAIN_MS: Final = 30_000
"""After so long all is told again of an item that took another one's place: what was read before is used no more by
then, whether by a request (10 s) or by a herald (15 s)."""
SETTLED_LOG_MS: Final = 10_000
"""How long a function that has other regions beside it keeps a settled message for who reads it page by page."""
JOB_AGAIN_S_MAX: Final = 30
"""A job that somebody waits for and that failed comes again after so long at the latest; a queue hides it as long."""
ERASURE_SECOND_PASS_MS: Final = 30 * 60_000
"""After so long an erasure takes what was under way when it began."""
ERASURE_ITEMS_MAX: Final = 250
"""Items of the table that one step of an erasure removes, before it writes down how many they were."""
QUEUE_DELAY_S_MAX: Final = 15 * 60
"""SQS delays a message by no more (SQS developer guide, "Delay queues", read 2026-11-29)."""
EXPORT_LIVES_MS: Final = 24 * 60 * 60_000
EXPORTS_RUNNING_MAX: Final = 2
"""Exports of one user under way: each reads all that the user has."""
EXPORT_MS_MAX: Final = 4 * 60 * 60_000
"""After so long an export is not handed on to another run."""
EXPORT_LOST_MS: Final = 6 * 60 * 60_000
"""An export that is still not finished after so long is not under way any more: longer than it may be handed on, and
all attempts of its last run."""
EXPORT_CONVERSATIONS_MAX: Final = 500_000
"""Conversations of one export: their ids are held, and handed on."""
EXPORT_PART_BYTES: Final = 8 * 1024 * 1024
"""What is held of a file at a time. S3 takes parts of 5 MiB and more, but for the last, and of one file 10,000 (S3 user
guide, "Multipart upload limits", recalled 2026-11-29)."""
EXPORT_BYTES_MAX: Final = 64 * 1024 * 1024 * 1024
"""A whole file: less than 10,000 parts."""
EXPORT_ATTEMPTS_MAX: Final = 4
"""How often an export is tried for which a store could not be reached."""
EXPORT_PAUSE_S: Final = 60
"""Before the second attempt; before the third twice as long, and so on."""
EXPORT_PASSES_MAX: Final = 3
"""How often a file is written anew because a conversation in it was deleted meanwhile."""
EXPORT_PROGRESS_MS: Final = 5_000
"""How often the owner of an export under way is told how far it is."""
EXPORT_HELD_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of a conversation, while it is written oldest first: what is read beyond that is let go, and read again."""
DOWNLOAD_URL_S: Final = 15 * 60
"""How long a link to a blob or an export works; asked for again, there is a new one."""
