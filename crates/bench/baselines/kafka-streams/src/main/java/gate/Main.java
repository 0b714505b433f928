package gate;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The gate as a Kafka Streams application, configured by environment: TOLLGATE_BROKERS, TOLLGATE_EVENTS_TOPIC,
 * TOLLGATE_DECISIONS_TOPIC, TOLLGATE_GROUP (the application's id), TOLLGATE_DENIED_TOOLS (separated by commas) and
 * TOLLGATE_STATE_DIR. `ready` on stderr says that partitions are assigned; SIGTERM ends it.
 *
 * <p>Arguments: --threads N, --guarantee at_least_once|exactly_once_v2, --eval FILE.
 */
public final class Main {
  private static final Duration CLOSE_TIME_MAX = Duration.ofSeconds(30);

  private Main() {}

  public static void main(String[] arguments) throws IOException, InterruptedException {
    Map<String, String> flags = new HashMap<>();
    for (int at = 0; at + 1 < arguments.length; at += 2) {
      flags.put(arguments[at], arguments[at + 1]);
    }
    String denied = System.getenv().getOrDefault("TOLLGATE_DENIED_TOOLS", "");
    Set<String> deniedTools =
        Arrays.stream(denied.split(",")).filter(tool -> !tool.isEmpty()).collect(Collectors.toUnmodifiableSet());
    Gate gate = new Gate(deniedTools);
    if (flags.containsKey("--eval")) {
      evaluate(gate, Path.of(flags.get("--eval")));
    } else {
      run(gate, flags);
    }
  }

  private static void run(Gate gate, Map<String, String> flags) throws IOException, InterruptedException {
    KafkaStreams streams = new KafkaStreams(topology(gate), settings(flags));
    CountDownLatch ended = new CountDownLatch(1);
    streams.setUncaughtExceptionHandler(
        failure -> {
          failure.printStackTrace();
          return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
    streams.setStateListener(
        (now, before) -> {
          if (now == KafkaStreams.State.RUNNING) {
            System.err.println("ready");
          } else if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
            ended.countDown();
          }
        });
    // Closing commits what was decided.
    Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(CLOSE_TIME_MAX)));
    streams.start();
    ended.await();
  }

  private static Topology topology(Gate gate) {
    StoreBuilder<KeyValueStore<String, ThreadState>> threads =
        Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore(GateProcessor.STORE), Serdes.String(), new ThreadStateSerde())
            .withCachingEnabled();
    ProcessorSupplier<String, byte[], String, byte[]> supplier =
        new ProcessorSupplier<>() {
          @Override
          public Processor<String, byte[], String, byte[]> get() {
            return new GateProcessor(gate);
          }

          @Override
          public Set<org.apache.kafka.streams.state.StoreBuilder<?>> stores() {
            return Set.of(threads);
          }
        };
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream(required("TOLLGATE_EVENTS_TOPIC"), Consumed.with(Serdes.String(), Serdes.ByteArray()))
        .process(supplier)
        .to(required("TOLLGATE_DECISIONS_TOPIC"), Produced.with(Serdes.String(), Serdes.ByteArray()));
    return builder.build();
  }

  private static Properties settings(Map<String, String> flags) throws IOException {
    String stateDirectory = System.getenv("TOLLGATE_STATE_DIR");
    if (stateDirectory == null) {
      stateDirectory = Files.createTempDirectory("tollgate-streams").toString();
    }
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, required("TOLLGATE_GROUP"));
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, required("TOLLGATE_BROKERS"));
    settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, flags.getOrDefault("--threads", "1"));
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, flags.getOrDefault("--guarantee", StreamsConfig.AT_LEAST_ONCE));
    // Tollgate's own checkpoints are a second apart.
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1000);
    // Between two commits a busy thread's state is written here instead of to RocksDB and the changelog.
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 256L << 20);
    settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    // The default of Streams, 100 ms, is too long for a verdict that is awaited; this is the plain producer's.
    settings.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), 5);
    settings.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 256 << 10);
    return settings;
  }

  /** Decides on a file of events, one a line, without Kafka. */
  private static void evaluate(Gate gate, Path file) throws IOException {
    Map<String, byte[]> threads = new HashMap<>();
    ThreadStateSerde serde = new ThreadStateSerde();
    PrintStream stdout = System.out;
    try (Stream<String> lines = Files.lines(file);
        OutputStream out = new BufferedOutputStream(stdout)) {
      int number = 0;
      for (String line : (Iterable<String>) lines::iterator) {
        String coordinates = "agent.events/0/" + number++;
        if (line.isBlank()) {
          continue;
        }
        // Through the serde, as in the store.
        Gate.Decided decided =
            gate.decide(
                null,
                line.getBytes(StandardCharsets.UTF_8),
                coordinates,
                thread -> serde.deserializer().deserialize(null, threads.get(thread)));
        if (decided.thread() != null) {
          threads.put(decided.threadId(), serde.serializer().serialize(null, decided.thread()));
        }
        if (decided.verdict() != null) {
          out.write(decided.verdict());
          out.write('\n');
        }
      }
    }
  }

  private static String required(String name) {
    String value = System.getenv(name);
    if (value == null) {
      System.err.println(name + " is not set");
      System.exit(2);
    }
    return value;
  }
}
