package gate;

/** What was ruled on a call or a result; its sentence follows from it and the tool's name. */
record Ruling(Code code, int count) {
  static final Ruling ALLOW = new Ruling(Code.ALLOW, 0);
  static final Ruling SUPPRESSED = new Ruling(Code.SUPPRESSED_TOOL_CALL, 0);
  static final Ruling DENIED = new Ruling(Code.TOOL_NOT_ALLOWED, 0);
  static final Ruling NOT_EXECUTED = new Ruling(Code.NOT_EXECUTED, 0);

  /** The codes of verdicts on calls and results. State is stored by ordinal: append only. */
  enum Code {
    ALLOW("allow", "allow", "none", ""),
    NOT_EXECUTED("allow", "not_executed", "none", "The call was not allowed to run, so its result changes nothing."),
    SUPPRESSED_TOOL_CALL(
        "block", "suppressed_tool_call", "safety", "The response that made this call was stopped for safety reasons."),
    TOOL_NOT_ALLOWED("block", "oap.tool_not_allowed", "guardrail", "tool '%s' is denied"),
    EXACT_BLOCK(
        "block",
        "repeated_exact_failure_block",
        "loop",
        "%s failed %d times with the same arguments; do not retry it unchanged."),
    NO_PROGRESS_BLOCK(
        "block", "idempotent_no_progress_block", "loop", "%s returned the same result %d times; use it or ask something else."),
    SAME_TOOL_HALT(
        "halt", "same_tool_failure_halt", "loop", "%s failed %d times this turn; choose a different approach."),
    EXACT_WARNING(
        "warn",
        "repeated_exact_failure_warning",
        "loop",
        "%s has failed %d times with the same arguments; change strategy."),
    SAME_TOOL_WARNING(
        "warn", "same_tool_failure_warning", "loop", "%s has failed %d times this turn; change approach before retrying."),
    NO_PROGRESS_WARNING(
        "warn", "idempotent_no_progress_warning", "loop", "%s returned the same result %d times; use it or change the query.");

    private static final Code[] ALL = values();
    final String action;
    final String code;
    final String decidedBy;
    private final String sentence;

    Code(String action, String code, String decidedBy, String sentence) {
      this.action = action;
      this.code = code;
      this.decidedBy = decidedBy;
      this.sentence = sentence;
    }

    static Code of(int ordinal) {
      return ALL[ordinal];
    }
  }

  boolean allowsExecution() {
    return code.action.equals("allow") || code.action.equals("warn");
  }

  boolean shouldHalt() {
    return code.decidedBy.equals("loop") && !code.action.equals("warn");
  }

  String message(String tool) {
    return code.sentence.contains("%") ? String.format(code.sentence, tool, count) : code.sentence;
  }
}
