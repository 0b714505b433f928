import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Runs the cases of clients/conformance that a client over Kafka runs, and fails at a wrong verdict: java Cases FOLDER. */
public final class Cases {
    /** What a case expects, and how this client's verdict shows it. */
    private static final Map<String, Function<Gate.Verdict, Object>> SHOWN = Map.of("allows_execution", Gate.Verdict::allowsExecution, "should_halt",
            Gate.Verdict::shouldHalt, "code", Gate.Verdict::code, "synthetic_result", Gate.Verdict::textForAgent, "guidance", Gate.Verdict::guidance);
    /** The least number of cases: with fewer, the folder is not the right one. */
    private static final int LEAST = 27;

    public static void main(String[] args) throws IOException {
        var wrong = new ArrayList<String>();
        var count = 0;
        for (var file : List.of("verdicts.json", "faults.json")) {
            for (var entry : Gate.JSON.readTree(Path.of(args[0], file).toFile())) {
                if (entry.path("answer").path("status").asInt() == 200) {
                    count++;
                    run(entry, wrong);
                }
            }
        }
        for (var entry : Gate.JSON.readTree(Path.of(args[0], "ids.json").toFile())) {
            count++;
            var ids = new Gate.Ids();
            var decided = Gate.JSON.createArrayNode();
            entry.path("calls").forEach(call -> Gate.ask(event(call).put("event_id", idOf(call)), ids, text -> {
                decided.add(Gate.JSON.readTree(text).path("event_id"));
                return text;
            }));
            if (!decided.equals(entry.path("decided"))) {
                wrong.add(entry.path("name").asText() + ": found " + decided);
            }
        }
        wrong.forEach(System.out::println);
        System.out.println(count + " cases, " + wrong.size() + " wrong");
        System.exit(count >= LEAST && wrong.isEmpty() ? 0 : 1);
    }

    private static void run(JsonNode entry, List<String> wrong) {
        var answer = entry.path("answer");
        var reply = answer.has("text") ? answer.path("text").asText() : answer.path("body").toString();
        var sent = new ArrayList<String>();
        var verdict = Gate.ask(event(entry.path("call")), new Gate.Ids(), text -> {
            sent.add(text);
            return reply.replace("{event_id}", "e");
        });
        entry.path("expect").properties().forEach(expected -> {
            var shown = SHOWN.get(expected.getKey());
            if (shown != null && !Objects.equals(String.valueOf(shown.apply(verdict)), expected.getValue().asText())) {
                wrong.add(entry.path("name").asText() + ": " + expected + ", found " + verdict);
            }
        });
        // Members that are no part of the case, such as a turn, are this client's own matter.
        var isSent = sent.isEmpty() ? entry.path("sent").isNull() : sent.get(0).contains(entry.path("sent").path("arguments").toString());
        if (entry.has("sent") && !isSent) {
            wrong.add(entry.path("name").asText() + ": " + sent.size() + " events were sent");
        }
    }

    /** Returns the id that a host gives to the event of a call. */
    private static String idOf(JsonNode call) {
        var method = call.path("method").asText();
        var names = Stream.of("response_id", "tool_call_id").filter(call::has).map(name -> "/" + call.path(name).asText());
        return names.collect(Collectors.joining()) + method.substring(method.indexOf('_')).replace('_', '/');
    }

    /** Returns the event of a call, whose caller names it. */
    private static ObjectNode event(JsonNode call) {
        var event = call.<ObjectNode>deepCopy().put("type", call.path("method").asText()).put("event_id", "e");
        event.remove(List.of("method", "response_id"));
        return event;
    }
}
