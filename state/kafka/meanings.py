"""What errors of Kafka's mean for the engine: replay, or stop; see docs/kafka.md for the table."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError

from stormline.spouts.kafka.errors import KafkaFailed, KafkaRefused, TopicMissing
from stormline.state.errors import StoreUnavailable
from stormline.state.kafka.errors import RecordRefused

REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
UNWRITABLE = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
    }
)
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_EXCEPTION})
HOPELESS = frozenset(
    {
        KafkaError._INVALID_ARG,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
        KafkaError.POLICY_VIOLATION,
        KafkaError.SECURITY_DISABLED,
    }
)
FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})


def refusal_in(heard: Sequence[KafkaError]) -> KafkaError | None:
    """Return the error, of those that the client's library told of, by which it is not let in."""
    return next((error for error in heard if error.code() in REFUSED), None)


def meaning_of(error: KafkaError, what: str, transactional_id: str, heard: Sequence[KafkaError] = ()) -> Exception:
    """Return what an error is for the engine.

    Args:
        error: the error.
        what: what was done.
        transactional_id: by whom.
        heard: what the client's library has told of its connections since all was well.
    """
    code, told = error.code(), error.str()
    refusal = refusal_in([error, *heard])
    if refusal is not None:
        return KafkaRefused(
            f"{what}: refused: {refusal.str()}; check the settings given as client={{…}} (security.protocol, sasl.…, "
            "ssl.…), and that this user may Write and Describe the topics and the transactional.id "
            f"{transactional_id!r}, and Read, Write, Create and DescribeConfigs the ledger"
        )
    if code in UNWRITABLE:
        return RecordRefused(
            f"{what}: {told}; a replay would write the same record again: let the topic take it (max.message.bytes, "
            "and message.max.bytes in client={…}), or emit none that is so large, or so old"
        )
    if code in MISSING:
        return TopicMissing(f"{what}: {told}; create the topic, or correct its name")
    if code in HOPELESS:
        return KafkaFailed(f"{what}: {error.name()}: {told}; a replay would be answered in the same way")
    told = "; ".join(dict.fromkeys([told, *(one.str() for one in heard)]))
    if code in FENCED:
        told += (
            f"; a transaction that took longer than transaction.timeout.ms, a crash of the broker, another driver that "
            f"has taken over, or another sink with the transactional.id {transactional_id!r} does this"
        )
    return StoreUnavailable(f"{what}: {error.name()}: {told}; the batch is replayed")
