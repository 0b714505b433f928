package gate;

import com.fasterxml.jackson.databind.JsonNode;
import gate.Json.Digest;
import gate.Ruling.Code;
import gate.ThreadState.Counter;
import gate.ThreadState.Signature;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Set;

/** Is the thread stuck? Exact failures, failures of one tool, and read-only calls that bring nothing new. */
final class Loops {
  private static final int EXACT_WARN = 2;
  private static final int EXACT_BLOCK = 2;
  private static final int SAME_TOOL_WARN = 3;
  private static final int SAME_TOOL_HALT = 5;
  private static final int NO_PROGRESS_WARN = 2;
  private static final int NO_PROGRESS_BLOCK = 2;
  private static final int WINDOW = 500;

  /** Tools that only read. None of them is among the ones that change something. */
  private static final Set<String> IDEMPOTENT =
      Set.of(
          "read_file",
          "search_files",
          "web_search",
          "web_extract",
          "session_search",
          "browser_snapshot",
          "browser_console",
          "browser_get_images",
          "mcp_filesystem_read_file",
          "mcp_filesystem_read_text_file",
          "mcp_filesystem_read_multiple_files",
          "mcp_filesystem_list_directory",
          "mcp_filesystem_list_directory_with_sizes",
          "mcp_filesystem_directory_tree",
          "mcp_filesystem_get_file_info",
          "mcp_filesystem_search_files");

  private Loops() {}

  static Ruling beforeCall(ThreadState thread, Signature call) {
    Counter counter = thread.counters.get(call);
    if (counter != null && counter.failures >= EXACT_BLOCK) {
      return new Ruling(Code.EXACT_BLOCK, counter.failures);
    }
    if (counter != null && counter.repeats >= NO_PROGRESS_BLOCK && IDEMPOTENT.contains(call.tool())) {
      return new Ruling(Code.NO_PROGRESS_BLOCK, counter.repeats);
    }
    return Ruling.ALLOW;
  }

  /** `failed` is what the event says of it, null if nothing. */
  static Ruling afterCall(ThreadState thread, Signature call, JsonNode result, Boolean failed) {
    boolean isIdempotent = IDEMPOTENT.contains(call.tool());
    if (Boolean.TRUE.equals(failed)) {
      return afterFailure(thread, call);
    }
    String text = result.isTextual() ? result.textValue() : result.isNull() ? "" : result.toString();
    JsonNode value = result.isTextual() && (failed == null || isIdempotent) ? Json.parse(text) : null;
    if (!result.isTextual() && !result.isNull()) {
      value = result;
    }
    if (failed == null && !result.isNull() && isFailure(call.tool(), text, value)) {
      return afterFailure(thread, call);
    }
    return afterSuccess(thread, call, isIdempotent, text, value);
  }

  private static Ruling afterFailure(ThreadState thread, Signature call) {
    Counter counter = thread.counters.computeIfAbsent(call, signature -> new Counter());
    counter.failures++;
    counter.repeats = 0;
    counter.result = null;
    int sameTool = thread.toolFailures.merge(call.tool(), 1, Integer::sum);
    if (sameTool >= SAME_TOOL_HALT) {
      return new Ruling(Code.SAME_TOOL_HALT, sameTool);
    }
    if (counter.failures >= EXACT_WARN) {
      return new Ruling(Code.EXACT_WARNING, counter.failures);
    }
    if (sameTool >= SAME_TOOL_WARN) {
      return new Ruling(Code.SAME_TOOL_WARNING, sameTool);
    }
    return new Ruling(Code.ALLOW, counter.failures);
  }

  private static Ruling afterSuccess(
      ThreadState thread, Signature call, boolean isIdempotent, String text, JsonNode value) {
    thread.toolFailures.remove(call.tool());
    if (!isIdempotent) {
      thread.counters.remove(call);
      return Ruling.ALLOW;
    }
    boolean isJson = value != null && !value.isNull();
    Digest digest = Json.digest(isJson ? Json.canonical(value) : text.getBytes(StandardCharsets.UTF_8));
    Counter counter = thread.counters.computeIfAbsent(call, signature -> new Counter());
    counter.failures = 0;
    counter.repeats = digest.equals(counter.result) ? counter.repeats + 1 : 1;
    counter.result = digest;
    return new Ruling(counter.repeats >= NO_PROGRESS_WARN ? Code.NO_PROGRESS_WARNING : Code.ALLOW, counter.repeats);
  }

  /** Whether a result counts as a failure; `value` is null if it is no JSON. */
  static boolean isFailure(String tool, String text, JsonNode value) {
    boolean isTerminal = tool.equals("terminal");
    if (value != null && value.isObject()) {
      JsonNode exitCode = value.path("exit_code");
      if (isTerminal && !exitCode.isMissingNode() && !exitCode.isNull() && !isZero(exitCode)) {
        return true;
      }
      JsonNode error = value.path("error");
      boolean hasError = !error.isMissingNode() && !error.isNull() && !(error.isTextual() && error.textValue().isEmpty());
      return isFlag(value.path("success"), false) || isFlag(value.path("failed"), true) || hasError;
    }
    if (isTerminal) {
      return false;
    }
    String lower = window(text).toLowerCase(Locale.ROOT);
    return lower.contains("traceback")
        || lower.startsWith("error:")
        || lower.contains("\"error\"")
        || lower.contains("\"failed\"")
        || text.startsWith("Error");
  }

  /** The first characters of a text. */
  private static String window(String text) {
    int end = Math.min(text.length(), 2 * WINDOW);
    return text.substring(0, text.codePointCount(0, end) <= WINDOW ? end : text.offsetByCodePoints(0, WINDOW));
  }

  private static boolean isZero(JsonNode value) {
    return value.isNumber() ? value.doubleValue() == 0 : isFlag(value, false);
  }

  private static boolean isFlag(JsonNode value, boolean flag) {
    return value.isBoolean() && value.booleanValue() == flag;
  }
}
