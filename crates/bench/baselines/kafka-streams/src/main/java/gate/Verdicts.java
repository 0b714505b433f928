package gate;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import gate.Safety.CalledTool;
import gate.Safety.Termination;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;

/** Verdicts as JSON. */
final class Verdicts {
  private Verdicts() {}

  private interface Fields {
    void write(JsonGenerator json) throws IOException;
  }

  static byte[] ruling(
      String type, String threadId, String eventId, String turnId, String callId, String tool, Ruling ruling) {
    return object(
        json -> {
          head(json, type, threadId, eventId, turnId);
          json.writeStringField("tool_call_id", callId);
          json.writeStringField("tool_name", tool);
          String code = ruling.code().code;
          String source = ruling.code().decidedBy;
          body(json, ruling.code().action, ruling.shouldHalt(), code, ruling.message(tool), source);
          json.writeNumberField("count", ruling.count());
        });
  }

  static byte[] response(String threadId, String eventId, String turnId, Termination found) {
    return object(
        json -> {
          head(json, "model_response", threadId, eventId, turnId);
          if (found == null) {
            body(json, "allow", false, "allow", "", "none");
            return;
          }
          String message =
              "The provider stopped this response with a safety-related signal (%s='%s', detector='%s')."
                  .formatted(found.field(), found.value(), found.detector());
          body(json, found.calls().isEmpty() ? "allow" : "suppress", false, "safety_terminated", message, "safety");
          json.writeObjectFieldStart("safety");
          json.writeStringField("detector", found.detector());
          json.writeStringField("reason_field", found.field());
          json.writeStringField("reason_value", found.value());
          json.writeNumberField("suppressed_tool_call_count", found.calls().size());
          json.writeArrayFieldStart("suppressed_tool_call_names");
          for (CalledTool call : found.calls()) {
            json.writeString(call.name() == null ? "unknown" : call.name());
          }
          json.writeEndArray();
          json.writeArrayFieldStart("suppressed_tool_call_ids");
          for (CalledTool call : found.calls()) {
            if (call.id() != null) {
              json.writeString(call.id());
            }
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }

  /** The verdict on an event that breaks the contract: closed. */
  static byte[] invalid(String why, JsonNode event, String threadId, String eventId) {
    return object(
        json -> {
          head(json, event == null ? null : event.path("type").textValue(), threadId, eventId, null);
          for (String name : new String[] {"tool_call_id", "tool_name"}) {
            if (event != null && event.path(name).isTextual()) {
              json.writeStringField(name, event.path(name).textValue());
            }
          }
          body(json, "block", false, "invalid_event", why, "envelope");
        });
  }

  private static void head(JsonGenerator json, String type, String threadId, String eventId, String turnId)
      throws IOException {
    json.writeStringField("event_id", eventId);
    if (type != null) {
      json.writeStringField("type", type);
    }
    json.writeStringField("thread_id", threadId);
    if (turnId != null) {
      json.writeStringField("turn_id", turnId);
    }
  }

  private static void body(
      JsonGenerator json, String action, boolean shouldHalt, String code, String message, String source)
      throws IOException {
    json.writeStringField("action", action);
    json.writeBooleanField("allows_execution", action.equals("allow") || action.equals("warn"));
    json.writeBooleanField("should_halt", shouldHalt);
    json.writeStringField("code", code);
    json.writeStringField("message", message);
    json.writeStringField("decided_by", source);
    json.writeArrayFieldStart("reasons");
    if (!source.equals("none")) {
      json.writeStartObject();
      json.writeStringField("source", source);
      json.writeStringField("code", code);
      json.writeStringField("message", message);
      json.writeEndObject();
    }
    json.writeEndArray();
  }

  private static byte[] object(Fields fields) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(512);
    try (JsonGenerator json = Json.MAPPER.getFactory().createGenerator(bytes)) {
      json.writeStartObject();
      fields.write(json);
      json.writeEndObject();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return bytes.toByteArray();
  }
}
