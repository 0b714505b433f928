import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.KafkaMessageListenerContainer;
import org.springframework.kafka.requestreply.ReplyingKafkaTemplate;
import org.springframework.kafka.support.TopicPartitionOffset;
import org.springframework.kafka.support.TopicPartitionOffset.SeekPosition;

/** Asks Tollgate over Kafka. One gate serves all threads of a process, and reads a partition of the reply topic that no other process reads. */
final class Gate implements AutoCloseable {
    /** What an agent acts on. */
    record Verdict(boolean allowsExecution, boolean shouldHalt, String code, String textForAgent, String guidance) {
        static Verdict denied(String code) {
            return new Verdict(false, true, code, "Tollgate gave no verdict: " + code, "");
        }
    }

    /** Other readers take the last of two equal keys; this one refuses them. */
    static final JsonMapper JSON = JsonMapper.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();

    /** How long the first connection to the brokers may take. */
    private static final Duration START = Duration.ofSeconds(60);

    private final ReplyingKafkaTemplate<String, String, String> kafka;
    private final Duration deadline;
    private final Ids ids = new Ids();

    Gate(String brokers, String replyTopic, int replyPartition, Duration deadline) throws InterruptedException {
        var client = Map.<String, Object>of("bootstrap.servers", brokers);
        // Without this bound a send waits a minute for a broker that is away.
        var sender = Map.<String, Object>of("bootstrap.servers", brokers, "max.block.ms", deadline.toMillis());
        var replies = new ContainerProperties(new TopicPartitionOffset(replyTopic, replyPartition, SeekPosition.END));
        var consumer = new DefaultKafkaConsumerFactory<>(client, new StringDeserializer(), new StringDeserializer());
        var producer = new DefaultKafkaProducerFactory<>(sender, new StringSerializer(), new StringSerializer());
        this.kafka = new ReplyingKafkaTemplate<>(producer, new KafkaMessageListenerContainer<>(consumer, replies));
        this.deadline = deadline;
        kafka.start();
        if (!kafka.waitForAssignment(START)) {
            close(); // Its threads would keep the process alive.
            throw new IllegalStateException("replies: found no partition " + replyPartition + " to read; create the topic " + replyTopic);
        }
    }

    /** Returns the verdict of an event, or a denial if there is none. */
    Verdict ask(ObjectNode event) {
        // The thread's id is the record's key, so that its events stay in order.
        return ask(event, ids, text -> kafka.sendAndReceive(new ProducerRecord<>("agent.events", event.path("thread_id").asText(), text), deadline)
                .get(deadline.toMillis(), TimeUnit.MILLISECONDS).value());
    }

    /** The ids of the last events. Some servers of models give the same id to several calls of a turn, and over Kafka nothing says so. */
    static final class Ids {
        private static final int REMEMBERED_MAX = 10_000;
        private static final int ID_BYTES_MAX = 128;
        private static final int HASH_DIGITS = 16;
        /** The fields that tell two events of one type and one call id apart. */
        private static final List<String> CONTENT = List.of("arguments", "error", "failed", "message", "response", "result", "tool_input", "tool_name");

        private final Map<List<String>, String> hashes = new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<List<String>, String> eldest) {
                return size() > REMEMBERED_MAX;
            }
        };

        /** Returns an event, whose id follows from its content if another event has its id: a repeat gets the same id again. */
        synchronized ObjectNode named(ObjectNode event) {
            var content = JSON.createObjectNode();
            CONTENT.stream().filter(event::has).forEach(name -> content.set(name, event.get(name)));
            var hash = sha256(content.toString()).substring(0, HASH_DIGITS);
            var id = shortened(event.path("event_id").asText());
            var known = hashes.putIfAbsent(List.of(event.path("thread_id").asText(), id), hash);
            var isAnother = known != null && !known.equals(hash);
            return event.deepCopy().put("event_id", isAnother ? shortened(id + "/" + hash) : id);
        }

        /** Returns an id as it is, or, if the contract does not allow so long an id, its hash with its last part behind it. */
        private static String shortened(String id) {
            return id.getBytes(StandardCharsets.UTF_8).length <= ID_BYTES_MAX ? id : sha256(id) + "/" + id.substring(id.lastIndexOf('/') + 1);
        }

        private static String sha256(String text) {
            try {
                return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
            } catch (NoSuchAlgorithmException never) {
                throw new IllegalStateException("every Java has SHA-256", never);
            }
        }
    }

    /** Sends an event's text, and returns the text that comes back. */
    interface Exchange {
        String send(String event) throws Exception;
    }

    static Verdict ask(ObjectNode asked, Ids ids, Exchange exchange) {
        var event = ids.named(asked);
        var text = event.toString();
        // Tools read different characters in the place of half a character: the gate would decide about other arguments.
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(text + unescaped(event.path("arguments").asText()))) {
            return Verdict.denied("arguments_unsendable");
        }
        try {
            return read(exchange.send(text), event);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return Verdict.denied("interrupted");
        } catch (Exception failed) {
            return Verdict.denied("deadline_exceeded");
        }
    }

    /** Returns arguments with characters in the place of their escapes. */
    private static String unescaped(String arguments) {
        try {
            return JSON.readTree(arguments).toString();
        } catch (Exception noJson) {
            return ""; // The gate says what it is worth.
        }
    }

    /** Takes a text for a verdict only if it is the verdict of this event, and its action and its flag agree. */
    static Verdict read(String text, JsonNode event) {
        try {
            var verdict = JSON.readTree(text);
            var runs = Set.of("allow", "warn").contains(verdict.path("action").asText());
            var isOfEvent = verdict.path("event_id").equals(event.path("event_id")) && verdict.path("thread_id").equals(event.path("thread_id"));
            if (!isOfEvent || !verdict.path("allows_execution").isBoolean() || verdict.path("allows_execution").asBoolean() != runs) {
                return Verdict.denied("verdict_unreadable");
            }
            var instead = verdict.path("synthetic_result").asText(verdict.path("message").asText());
            return new Verdict(runs, verdict.path("should_halt").asBoolean(true), verdict.path("code").asText(), instead, verdict.path("guidance").asText());
        } catch (Exception unreadable) {
            return Verdict.denied("verdict_unreadable");
        }
    }

    @Override
    public void close() {
        kafka.stop();
        kafka.destroy();
    }
}
