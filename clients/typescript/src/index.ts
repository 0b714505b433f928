/** The gate in one line: `new Gate()`, then ask before a tool runs. */

export { Gate, type AskOptions, type GateOptions } from "./gate.js";
export { Turn, childThread, type TurnOptions } from "./turn.js";
export type { Counts, FailureCode, FailureMode } from "./failure.js";
export type {
  Action,
  AskingType,
  Attribution,
  EventBase,
  ModelResponse,
  Reason,
  Safety,
  ToolCall,
  ToolResult,
  Verdict,
} from "./wire.js";
export { sanitiseMessage, sanitiseResponse } from "./sanitise.js";
