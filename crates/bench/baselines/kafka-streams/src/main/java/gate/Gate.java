package gate;

import com.fasterxml.jackson.databind.JsonNode;
import gate.Json.Digest;
import gate.Safety.CalledTool;
import gate.Safety.Termination;
import gate.ThreadState.Call;
import gate.ThreadState.Signature;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.function.Function;

/** The rules: event and thread state in, verdict out. No Kafka, no clock. */
final class Gate {
  private static final int CHAR_BYTES_MAX = 3;

  private final Set<String> deniedTools;

  /** The event breaks a rule of the contract. */
  static final class Invalid extends Exception {
    private static final long serialVersionUID = 1L;

    Invalid(String message) {
      super(message, null, false, false);
    }
  }

  /** What has become of a record; the thread and its state are null where the thread could not be told. */
  record Decided(String threadId, String eventId, ThreadState thread, byte[] verdict) {}

  Gate(Set<String> deniedTools) {
    this.deniedTools = deniedTools;
  }

  /** Decides on a record. `threads` gives the state of a thread, null if there is none. */
  Decided decide(String key, byte[] value, String coordinates, Function<String, ThreadState> threads) {
    String threadId = key == null || key.isEmpty() ? null : key;
    String eventId = coordinates;
    ThreadState thread = null;
    JsonNode event = value == null ? null : Json.parse(value);
    try {
      if (event == null || !event.isObject()) {
        throw new Invalid("value: not a JSON object");
      }
      String named = optional(event, "thread_id", 256);
      if (named != null) {
        boolean isOther = threadId != null && !threadId.equals(named);
        threadId = named;
        if (isOther) {
          throw new Invalid("thread_id: another thread than the record's key");
        }
      }
      if (threadId == null || threadId.isEmpty()) {
        threadId = null;
        throw new Invalid("thread_id: nothing");
      }
      named = optional(event, "event_id", 128);
      if (named != null) {
        if (named.isEmpty()) {
          throw new Invalid("event_id: empty");
        }
        eventId = named;
      }
      thread = threads.apply(threadId);
      if (thread == null) {
        thread = new ThreadState();
      }
      return new Decided(threadId, eventId, thread, decide(thread, event, threadId, eventId));
    } catch (Invalid invalid) {
      byte[] verdict = threadId == null ? null : Verdicts.invalid(invalid.getMessage(), event, threadId, eventId);
      return new Decided(threadId, eventId, thread, verdict);
    }
  }

  private byte[] decide(ThreadState thread, JsonNode event, String threadId, String eventId) throws Invalid {
    String type = required(event, "type", Integer.MAX_VALUE);
    String turnId = optional(event, "turn_id", 256);
    switch (type) {
      case "tool_call", "tool_result" -> {
        String callId = required(event, "tool_call_id", 512);
        String tool = required(event, "tool_name", 512);
        Digest args = arguments(event);
        JsonNode failed = event.path("failed");
        if (type.equals("tool_result")) {
          if (!event.has("result")) {
            throw new Invalid("result: nothing");
          }
          if (!failed.isMissingNode() && !failed.isNull() && !failed.isBoolean()) {
            throw new Invalid("failed: not a boolean");
          }
        }
        thread.enter(type, turnId, eventId);
        Ruling ruling =
            type.equals("tool_call")
                ? call(thread, callId, tool, args == null ? Json.EMPTY_OBJECT : args, eventId)
                : result(thread, callId, tool, args, event, eventId);
        String turn = turnId != null ? turnId : thread.turnId;
        return Verdicts.ruling(type, threadId, eventId, turn, callId, tool, ruling);
      }
      case "model_response" -> {
        String spelling = spelling(event);
        thread.enter(type, turnId, eventId);
        Termination found = response(thread, spelling, event.path(spelling));
        return Verdicts.response(threadId, eventId, turnId != null ? turnId : thread.turnId, found);
      }
      case "turn_start", "turn_end" -> {
        thread.enter(type, turnId, eventId);
        return null;
      }
      default -> throw new Invalid("type: unknown");
    }
  }

  /** The digest of the arguments; null where they were left out. */
  private static Digest arguments(JsonNode event) throws Invalid {
    JsonNode input = event.path("tool_input");
    JsonNode arguments = event.path("arguments");
    boolean hasInput = !input.isMissingNode() && !input.isNull();
    boolean hasArguments = !arguments.isMissingNode() && !arguments.isNull();
    if (hasInput && hasArguments) {
      throw new Invalid("tool_input: both tool_input and arguments");
    }
    if (hasInput) {
      return Json.arguments(input);
    }
    if (hasArguments) {
      return Json.arguments(arguments.isTextual() ? Json.parse(arguments.textValue()) : arguments);
    }
    return input.isNull() || arguments.isNull() ? Json.EMPTY_OBJECT : null;
  }

  private static String spelling(JsonNode event) throws Invalid {
    String found = null;
    for (String name : new String[] {"response", "message", "error"}) {
      if (event.hasNonNull(name)) {
        if (found != null) {
          throw new Invalid("response: more than one of response, message and error");
        }
        found = name;
      }
    }
    if (found == null) {
      throw new Invalid("response: no response, message or error");
    }
    JsonNode body = event.path(found);
    if (!body.isObject() && !(found.equals("error") && body.isTextual())) {
      throw new Invalid(found + ": not an object");
    }
    return found;
  }

  private Ruling call(ThreadState thread, String callId, String tool, Digest args, String eventId) {
    Call call = thread.calls.get(callId);
    if (call != null && eventId.equals(call.callEvent) && tool.equals(call.tool) && args.equals(call.args)) {
      return call.callRuling;
    }
    Ruling ruling;
    if (thread.isSuppressed(callId, tool)) {
      ruling = Ruling.SUPPRESSED;
    } else if (deniedTools.contains(tool)) {
      ruling = Ruling.DENIED;
    } else {
      ruling = Loops.beforeCall(thread, new Signature(tool, args));
    }
    call = thread.note(callId, tool, args);
    call.callEvent = eventId;
    call.callRuling = ruling;
    call.isOpen = ruling.allowsExecution();
    return ruling;
  }

  private Ruling result(ThreadState thread, String callId, String tool, Digest args, JsonNode event, String eventId)
      throws Invalid {
    Call call = thread.calls.get(callId);
    if (call != null && eventId.equals(call.resultEvent)) {
      return call.resultRuling;
    }
    boolean wasStopped =
        call == null
            ? thread.isSuppressed(callId, tool)
            : call.callRuling != null && !call.callRuling.allowsExecution();
    Ruling earlier = wasStopped ? Ruling.NOT_EXECUTED : call != null && !call.isOpen ? call.resultRuling : null;
    if (earlier != null) {
      Call noted = call != null ? call : thread.note(callId, null, Json.EMPTY_OBJECT);
      noted.resultEvent = eventId;
      noted.resultRuling = earlier;
      return earlier;
    }
    Digest known = args != null ? args : call == null ? null : call.args;
    if (known == null) {
      throw new Invalid("tool_input: nothing, and no tool_call with this tool_call_id in this turn");
    }
    JsonNode failed = event.path("failed");
    Boolean isFailed = failed.isBoolean() ? failed.booleanValue() : null;
    Ruling ruling = Loops.afterCall(thread, new Signature(tool, known), event.path("result"), isFailed);
    Call noted = thread.note(callId, tool, known);
    noted.resultEvent = eventId;
    noted.resultRuling = ruling;
    noted.isOpen = false;
    return ruling;
  }

  private static Termination response(ThreadState thread, String spelling, JsonNode body) {
    // An API error is no answer: what was cut off before it may still be in the host's hands.
    if (spelling.equals("error")) {
      return null;
    }
    Termination found = spelling.equals("response") ? Safety.ofNative(body) : Safety.ofLangChain(body);
    if (found == null) {
      thread.modelAnswered();
      return null;
    }
    for (CalledTool call : found.calls()) {
      thread.suppress(call.id(), call.name());
    }
    return found;
  }

  private static String required(JsonNode event, String name, int bytesMax) throws Invalid {
    JsonNode value = event.path(name);
    if (!value.isTextual()) {
      throw new Invalid(name + ": not a string");
    }
    return bounded(value.textValue(), name, bytesMax);
  }

  private static String optional(JsonNode event, String name, int bytesMax) throws Invalid {
    return event.hasNonNull(name) ? required(event, name, bytesMax) : null;
  }

  private static String bounded(String text, String name, int bytesMax) throws Invalid {
    // A char has at most three bytes in UTF-8, so most texts need no encoding to be told short enough.
    boolean mayBeTooLong = text.length() > bytesMax / CHAR_BYTES_MAX;
    if (mayBeTooLong && text.getBytes(StandardCharsets.UTF_8).length > bytesMax) {
      throw new Invalid(name + ": too long");
    }
    return text;
  }
}
