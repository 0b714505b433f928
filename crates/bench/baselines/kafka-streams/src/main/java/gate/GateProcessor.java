package gate;

import gate.Gate.Decided;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/** Decides on the events of one partition; the state of its threads is in the store. */
final class GateProcessor implements Processor<String, byte[], String, byte[]> {
  static final String STORE = "threads";
  private static final Duration IDLE_MAX = Duration.ofDays(1);
  private static final Duration SWEEP_INTERVAL = Duration.ofHours(1);

  private final Gate gate;
  private ProcessorContext<String, byte[]> context;
  private KeyValueStore<String, ThreadState> threads;

  GateProcessor(Gate gate) {
    this.gate = gate;
  }

  @Override
  public void init(ProcessorContext<String, byte[]> processorContext) {
    context = processorContext;
    threads = processorContext.getStateStore(STORE);
    processorContext.schedule(SWEEP_INTERVAL, PunctuationType.STREAM_TIME, this::forgetIdle);
  }

  @Override
  public void process(Record<String, byte[]> event) {
    String coordinates =
        context.recordMetadata().map(meta -> meta.topic() + "/" + meta.partition() + "/" + meta.offset()).orElse("");
    Decided decided = gate.decide(event.key(), event.value(), coordinates, threads::get);
    if (decided.thread() != null) {
      decided.thread().touchedMs = event.timestamp();
      // A thread that is over leaves nothing.
      threads.put(decided.threadId(), decided.thread().isOver() ? null : decided.thread());
    }
    if (decided.verdict() == null) {
      return;
    }
    RecordHeaders headers = new RecordHeaders();
    headers.add("event_id", decided.eventId().getBytes(StandardCharsets.UTF_8));
    Header correlation = event.headers().lastHeader("correlation_id");
    if (correlation != null) {
      headers.add(correlation);
    }
    context.forward(new Record<>(decided.threadId(), decided.verdict(), event.timestamp(), headers));
  }

  private void forgetIdle(long nowMs) {
    try (KeyValueIterator<String, ThreadState> all = threads.all()) {
      while (all.hasNext()) {
        KeyValue<String, ThreadState> entry = all.next();
        if (nowMs - entry.value.touchedMs > IDLE_MAX.toMillis()) {
          threads.delete(entry.key);
        }
      }
    }
  }
}
