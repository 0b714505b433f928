import com.fasterxml.jackson.databind.ObjectMapper;
import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.core.message.Encoding;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.kafka.CloudEventSerializer;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** Puts what the CloudEvents SDK for Java sends into the recorded objects, in place of what an earlier run has put there. */
public final class Record {
    private static final String SDK = "io.cloudevents 4.0.1";
    private static final String DATA = "{\"tool_call_id\":\"call_1\",\"tool_name\":\"shell\",\"tool_input\":{\"cmd\":\"ls\"}}";

    public static void main(String[] arguments) throws Exception {
        Path objects = Path.of("crates/core/tests/fixtures/sdk_objects.jsonl");
        CloudEvent event = CloudEventBuilder.v1().withId("e1").withSource(URI.create("/agents")).withType("com.acme.agent.tool_call")
            .withSubject("t1").withTime(OffsetDateTime.parse("2026-01-02T03:04:05Z"))
            .withData("application/json", DATA.getBytes(StandardCharsets.UTF_8)).build();
        List<String> lines = new ArrayList<>(Files.readAllLines(objects));
        lines.removeIf(line -> line.startsWith("{\"sdk\":\"io.cloudevents "));
        for (Encoding encoding : Encoding.values()) {
            lines.add(new ObjectMapper().writeValueAsString(object(event, encoding)));
        }
        Files.write(objects, lines);
    }

    private static Map<String, Object> object(CloudEvent event, Encoding encoding) {
        Map<String, Object> settings = new HashMap<>(Map.of(CloudEventSerializer.ENCODING_CONFIG, encoding));
        if (encoding == Encoding.STRUCTURED) {
            settings.put(CloudEventSerializer.EVENT_FORMAT_CONFIG, JsonFormat.CONTENT_TYPE);
        }
        RecordHeaders sent = new RecordHeaders();
        String value;
        try (CloudEventSerializer serializer = new CloudEventSerializer()) {
            serializer.configure(settings, false);
            value = new String(serializer.serialize("events", sent, event), StandardCharsets.UTF_8);
        }
        Map<String, String> headers = new LinkedHashMap<>();
        sent.forEach(header -> headers.put(header.key(), new String(header.value(), StandardCharsets.UTF_8)));
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("headers", headers);
        body.put("value", value);
        Map<String, Object> object = new LinkedHashMap<>();
        object.put("sdk", SDK);
        object.put("id", "cloudevents: Java, " + encoding.name().toLowerCase());
        object.put("as", "record");
        object.put("body", body);
        object.put("tools", List.of());
        return object;
    }
}
