"""The gate over Kafka: `Gate(kafka=Kafka("kafka-1:9092"))`. It needs confluent-kafka, the extra `kafka`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Kafka"]

OURS = (
    "acks",
    "auto.offset.reset",
    "bootstrap.servers",
    "client.id",
    "enable.auto.commit",
    "enable.idempotence",
    "error_cb",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "metadata.broker.list",
    "partitioner",
)
"""The properties that the client sets itself: a verdict that comes, and comes in time, depends on them."""


@dataclass(frozen=True)
class Kafka:
    """Where the gate's topics are, and where this client reads its verdicts.

    With `reply_topic`, workers send the verdicts to that topic too, and the client reads `reply_partition` of it alone; a partition that is
    left out is chosen at random. The workers' `kafka.reply_topics` has to allow the topic. Clients may share a partition: each passes over
    what others asked for. Without `reply_topic`, the client reads every partition of `decisions_topic`, which takes no setting of the
    workers.

    `properties` are librdkafka's, such as `security.protocol` and `sasl.password`.
    Raises `ValueError` for a setting that can have no meaning or no effect, `ImportError` without confluent-kafka.
    """

    brokers: str
    events_topic: str = "agent.events"
    decisions_topic: str | None = None
    """`agent.decisions` if it is left out."""
    reply_topic: str | None = None
    reply_partition: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        try:
            import confluent_kafka  # noqa: F401
        except ImportError:
            raise ImportError("confluent-kafka is not installed: pip install 'confluent-kafka>=2.8,<3'") from None
        for name, value in (("brokers", self.brokers), ("events_topic", self.events_topic)):
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"`{name}` is no text, or an empty one: give {'host:port, or several' if name == 'brokers' else 'a name'}")
        if self.reply_topic is not None and self.decisions_topic is not None:
            raise ValueError("`decisions_topic` stands beside `reply_topic`, which is read in its place: leave one of them out")
        if self.reply_topic is None and self.reply_partition is not None:
            raise ValueError("`reply_partition` stands without `reply_topic`: name the topic, or leave the partition out")
        if "" in (self.reply_topic, self.decisions_topic):
            raise ValueError("`reply_topic` or `decisions_topic` is an empty text: give a name, or leave it out")
        if self.reply_partition is not None and not 0 <= self.reply_partition < 2**31:
            raise ValueError("`reply_partition` is below 0 or no 32-bit number: give the number of a partition")
        for name in self.properties:
            if name in OURS:
                raise ValueError(f"`properties` has {name}, which the client sets itself: leave it out")

    @property
    def answers_topic(self) -> str:
        """Returns the topic that verdicts are read from."""
        return self.reply_topic or self.decisions_topic or "agent.decisions"
