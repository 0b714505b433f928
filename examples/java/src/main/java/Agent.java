import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;

/** Asks about two calls: java Agent BROKERS REPLY_TOPIC DEADLINE_MS. */
public final class Agent {
    public static void main(String[] args) throws Exception {
        try (var gate = new Gate(args[0], args[1], 0, Duration.ofMillis(Long.parseLong(args[2])))) {
            System.out.println(run(gate, "response-1", "call-1", "ls", "{\"path\": \".\"}"));
            System.out.println(run(gate, "response-2", "call-2", "bash", "{\"command\": \"ls\"}"));
        }
    }

    /** Asks about a call, runs the tool if it may run, and tells what came of it. */
    static String run(Gate gate, String response, String call, String tool, String arguments) {
        var verdict = gate.ask(event("tool_call", response, call, tool).put("arguments", arguments));
        if (!verdict.allowsExecution()) {
            return verdict.textForAgent(); // verdict.shouldHalt(): end the turn
        }
        var result = "README.md";
        return result + gate.ask(event("tool_result", response, call, tool).put("result", result)).guidance();
    }

    /** Returns an event whose id a retry would choose again. Equal calls of two responses are two events. */
    static ObjectNode event(String type, String response, String call, String tool) {
        var id = "turn-1/" + response + "/" + call + (type.equals("tool_call") ? "/call" : "/result");
        return Gate.JSON.createObjectNode().put("type", type).put("thread_id", "thread-1").put("turn_id", "turn-1")
                .put("event_id", id).put("tool_call_id", call).put("tool_name", tool);
    }
}
