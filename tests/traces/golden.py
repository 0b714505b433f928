"""Writes golden.hex: a request of two spans as OpenTelemetry's own library encodes it.

    pip install opentelemetry-proto && python tests/traces/golden.py > tests/traces/golden.hex

The unit test of src/traces/message.rs makes the same request and compares the bytes.
"""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


def put(attributes, key, value):
    attribute = attributes.add()
    attribute.key = key
    if isinstance(value, int):
        attribute.value.int_value = value
    else:
        attribute.value.string_value = value


def span_of(scope, offset, verdict):
    span = scope.spans.add()
    span.trace_id = (1).to_bytes(16, "big")
    span.span_id = (2).to_bytes(8, "big")
    span.name = "process agent.events"
    span.kind = Span.SPAN_KIND_CONSUMER
    span.start_time_unix_nano, span.end_time_unix_nano = 1_000, 5_000
    span.flags = 0x101
    put(span.attributes, "messaging.system", "kafka")
    put(span.attributes, "messaging.operation.type", "process")
    put(span.attributes, "messaging.operation.name", "process")
    put(span.attributes, "messaging.destination.name", "agent.events")
    put(span.attributes, "messaging.consumer.group.name", "tollgate")
    put(span.attributes, "messaging.destination.partition.id", "3")
    put(span.attributes, "messaging.kafka.offset", offset)
    for key, value in verdict.items():
        put(span.attributes, key, value)
    event = span.events.add()
    event.name, event.time_unix_nano = "consume", 1_000
    return span


request = ExportTraceServiceRequest()
process = request.resource_spans.add()
put(process.resource.attributes, "service.name", "gate")
part = process.scope_spans.add()
part.scope.name, part.scope.version = "tollgate", "1.2.3"

child = span_of(part, 9, {"tollgate.verdict_id": "v1", "tollgate.action": "block", "error.type": "invalid_json"})
child.trace_id = (0x0102).to_bytes(16, "big")
child.trace_state = "v=1"
child.parent_span_id = (0x0304).to_bytes(8, "big")
child.flags = 0x301
event = child.events.add()
event.name, event.time_unix_nano = "ask", 2_000
link = child.links.add()
link.trace_id, link.span_id, link.trace_state, link.flags = child.trace_id, child.parent_span_id, "v=1", 0x301
child.status.code = Status.STATUS_CODE_ERROR
span_of(part, 10, {})

print(request.SerializeToString().hex())
