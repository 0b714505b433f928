package gate;

import gate.Json.Digest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a thread's running turn remembers. */
final class ThreadState {
  private static final int EARLIER_TURNS_MAX = 4;
  private static final int CALLS_MAX = 256;
  private static final int SUPPRESSED_MAX = 512;

  /** A tool with the digest of its arguments. */
  record Signature(String tool, Digest args) {}

  /** What is counted of a signature. */
  static final class Counter {
    int failures;
    Digest result;
    int repeats;
  }

  /** A tool call, with what was answered to it and to its result. */
  static final class Call {
    String tool;
    Digest args;
    String callEvent;
    Ruling callRuling;
    String resultEvent;
    Ruling resultRuling;
    boolean isOpen;
  }

  String turnId;
  String startedBy;
  boolean hasEnded;
  List<String> earlier = new ArrayList<>(0);
  Map<Signature, Counter> counters = new HashMap<>();
  Map<String, Integer> toolFailures = new HashMap<>();
  LinkedHashMap<String, Call> calls = new LinkedHashMap<>();
  Set<String> suppressedIds = new HashSet<>();
  Set<String> suppressedTools = new HashSet<>();
  boolean anySuppressed;
  boolean allSuppressed;
  long touchedMs;

  boolean hasSuppressed() {
    return anySuppressed || allSuppressed || !suppressedIds.isEmpty() || !suppressedTools.isEmpty();
  }

  boolean isOver() {
    return turnId == null
        && startedBy == null
        && earlier.isEmpty()
        && calls.isEmpty()
        && counters.isEmpty()
        && toolFailures.isEmpty()
        && !hasSuppressed();
  }

  /** Brings the thread to the turn that an event belongs to. */
  void enter(String type, String turn, String eventId) {
    switch (type) {
      case "turn_start" -> {
        boolean isRepeat = eventId.equals(startedBy) || (turn != null && turn.equals(turnId));
        if (!isRepeat && !(turn != null && earlier.contains(turn))) {
          next(turn, eventId);
        }
      }
      case "turn_end" -> {
        if (turn == null || turnId == null || turn.equals(turnId)) {
          end();
        }
      }
      default -> {
        if (type.equals("model_response") && hasEnded && turn == null) {
          next(null, null);
        } else if (turn != null && !turn.equals(turnId) && !earlier.contains(turn)) {
          next(turn, null);
        }
      }
    }
  }

  private void next(String turn, String started) {
    // What was suppressed stays so: a call that comes late may bear the id of any turn.
    if (turnId != null) {
      if (earlier.size() == EARLIER_TURNS_MAX) {
        earlier.remove(0);
      }
      earlier.add(turnId);
    }
    forget();
    turnId = turn;
    startedBy = started;
    hasEnded = false;
  }

  private void end() {
    forget();
    if (hasSuppressed()) {
      hasEnded = true;
    } else {
      turnId = null;
      startedBy = null;
      hasEnded = false;
      earlier.clear();
    }
  }

  private void forget() {
    counters.clear();
    toolFailures.clear();
    calls.clear();
  }

  void suppress(String callId, String tool) {
    if (allSuppressed) {
      return;
    }
    if (callId == null && tool == null) {
      anySuppressed = true;
      return;
    }
    Set<String> entries = callId != null ? suppressedIds : suppressedTools;
    String entry = callId != null ? callId : tool;
    if (entries.size() < SUPPRESSED_MAX) {
      entries.add(entry);
    } else if (!entries.contains(entry)) {
      allSuppressed |= callId != null;
      anySuppressed |= callId == null;
    }
  }

  /** The model has answered without being cut off: calls without an id are its new ones again. */
  void modelAnswered() {
    suppressedTools.clear();
    anySuppressed = false;
  }

  boolean isSuppressed(String callId, String tool) {
    return allSuppressed || anySuppressed || suppressedIds.contains(callId) || suppressedTools.contains(tool);
  }

  /** The record of a call, to be changed. An id that is used for another call is that other call from here on. */
  Call note(String callId, String tool, Digest args) {
    Call call = calls.get(callId);
    boolean isOther =
        call != null && call.callEvent != null && !(call.tool.equals(tool) && call.args.equals(args));
    if (call == null || isOther) {
      if (call == null && calls.size() >= CALLS_MAX) {
        calls.remove(calls.keySet().iterator().next());
      }
      call = new Call();
      calls.put(callId, call);
    }
    call.tool = tool;
    call.args = args;
    return call;
  }
}
