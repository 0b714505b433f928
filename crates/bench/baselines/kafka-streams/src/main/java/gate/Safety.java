package gate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** Was the response cut off by its provider's safety system, and which tools does it call? */
final class Safety {
  /** Which field a reason comes from. */
  private enum Kind {
    FINISH,
    STOP
  }

  private record Reason(Kind kind, String field, String value) {}

  private record Detector(String name, Kind kind, List<String> values) {}

  /** A tool call of a response; either may be null. */
  record CalledTool(String id, String name) {}

  /** A response that was cut off. */
  record Termination(String detector, String field, String value, List<CalledTool> calls) {}

  /** The first that matches counts. */
  private static final List<Detector> DETECTORS =
      List.of(
          new Detector("openai_compatible_content_filter", Kind.FINISH, List.of("content_filter")),
          new Detector("anthropic_refusal", Kind.STOP, List.of("refusal")),
          new Detector(
              "gemini_safety",
              Kind.FINISH,
              List.of(
                  "safety",
                  "blocklist",
                  "prohibited_content",
                  "spii",
                  "recitation",
                  "image_safety",
                  "image_prohibited_content",
                  "image_recitation")));

  private final List<CalledTool> calls = new ArrayList<>();
  private final Set<String> ids = new HashSet<>();

  private Safety() {}

  /** Reads a provider's native body: OpenAI Chat, Anthropic Messages or Gemini; null if it was not cut off. */
  static Termination ofNative(JsonNode body) {
    List<Reason> reasons = new ArrayList<>(2);
    for (JsonNode choice : array(body.path("choices"))) {
      add(reasons, Kind.FINISH, "finish_reason", choice);
    }
    for (JsonNode candidate : array(body.path("candidates"))) {
      add(reasons, Kind.FINISH, "finishReason", candidate);
      add(reasons, Kind.FINISH, "finish_reason", candidate);
    }
    add(reasons, Kind.STOP, "stop_reason", body);
    Termination found = detect(reasons);
    if (found != null) {
      Safety safety = new Safety();
      safety.readNative(body);
      found.calls().addAll(safety.calls);
    }
    return found;
  }

  /** Reads a LangChain AIMessage as a dict; null if it was not cut off. */
  static Termination ofLangChain(JsonNode outer) {
    JsonNode message = outer.path("kwargs").isObject() ? outer.path("kwargs") : outer.path("data").isObject() ? outer.path("data") : outer;
    List<Reason> reasons = new ArrayList<>(2);
    // The first string that is not empty wins, whether it matches or not.
    for (String place : List.of("additional_kwargs", "response_metadata")) {
      for (Kind kind : Kind.values()) {
        String field = kind == Kind.FINISH ? "finish_reason" : "stop_reason";
        if (text(message.path(place).path(field)) != null) {
          reasons.removeIf(reason -> reason.kind() == kind);
          add(reasons, kind, field, message.path(place));
        }
      }
    }
    Termination found = detect(reasons);
    if (found != null) {
      Safety safety = new Safety();
      safety.readLangChain(message);
      found.calls().addAll(safety.calls);
    }
    return found;
  }

  private static Termination detect(List<Reason> reasons) {
    for (Detector detector : DETECTORS) {
      for (Reason reason : reasons) {
        if (reason.kind() == detector.kind()) {
          String lower = reason.value().toLowerCase(Locale.ROOT);
          for (String known : detector.values()) {
            if (isRepetition(lower, known)) {
              return new Termination(detector.name(), reason.field(), reason.value(), new ArrayList<>());
            }
          }
        }
      }
    }
    return null;
  }

  /** Merging stream chunks repeats a value: STOPSTOP is STOP. */
  private static boolean isRepetition(String value, String known) {
    if (value.length() % known.length() != 0) {
      return false;
    }
    for (int at = 0; at < value.length(); at += known.length()) {
      if (!value.startsWith(known, at)) {
        return false;
      }
    }
    return true;
  }

  private void readNative(JsonNode body) {
    for (JsonNode choice : array(body.path("choices"))) {
      for (String key : List.of("message", "delta")) {
        readOpenAi(choice.path(key));
        readBlocks(choice.path(key).path("content"));
      }
    }
    for (JsonNode candidate : array(body.path("candidates"))) {
      for (JsonNode part : array(candidate.path("content").path("parts"))) {
        JsonNode call = part.has("functionCall") ? part.path("functionCall") : part.path("function_call");
        if (!call.isMissingNode() && !call.isNull()) {
          push(call.path("id"), call.path("name"));
        }
      }
    }
    readBlocks(body.path("content"));
  }

  private void readLangChain(JsonNode message) {
    for (String key : List.of("tool_calls", "invalid_tool_calls", "tool_call_chunks")) {
      for (JsonNode call : array(message.path(key))) {
        push(call.path("id"), call.path("name"));
      }
    }
    readOpenAi(message.path("additional_kwargs"));
    readBlocks(message.path("content"));
  }

  private void readOpenAi(JsonNode message) {
    for (JsonNode call : array(message.path("tool_calls"))) {
      JsonNode function = call.has("function") ? call.path("function") : call.path("custom");
      push(call.path("id"), function.has("name") ? function.path("name") : call.path("name"));
    }
    JsonNode function = message.path("function_call");
    if (!function.isMissingNode() && !function.isNull()) {
      String name = text(function.path("name"));
      if (name == null || calls.stream().noneMatch(call -> name.equals(call.name()))) {
        calls.add(new CalledTool(null, name));
      }
    }
  }

  private void readBlocks(JsonNode content) {
    for (JsonNode block : array(content)) {
      String type = block.path("type").asText();
      if (type.equals("tool_use") || type.equals("tool_call") || type.equals("function_call")) {
        push(block.has("id") ? block.path("id") : block.path("call_id"), block.path("name"));
      }
    }
  }

  /** Adds a call, unless one of that id is there already. */
  private void push(JsonNode id, JsonNode name) {
    String callId = text(id);
    if (callId == null || ids.add(callId)) {
      calls.add(new CalledTool(callId, text(name)));
    }
  }

  private static void add(List<Reason> reasons, Kind kind, String field, JsonNode place) {
    String value = text(place.path(field));
    if (value != null) {
      reasons.add(new Reason(kind, field, value));
    }
  }

  private static Iterable<JsonNode> array(JsonNode value) {
    return value.isArray() ? value : List.of();
  }

  /** A string that is not empty, or null. */
  private static String text(JsonNode value) {
    return value.isTextual() && !value.textValue().isEmpty() ? value.textValue() : null;
  }
}
