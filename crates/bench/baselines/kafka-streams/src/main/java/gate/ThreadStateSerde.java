package gate;

import gate.Json.Digest;
import gate.ThreadState.Call;
import gate.ThreadState.Counter;
import gate.ThreadState.Signature;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Set;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/** Thread states as bytes: a compact binary form, which costs less than JSON at every read and write of the store. */
final class ThreadStateSerde implements Serde<ThreadState> {
  private static final byte VERSION = 1;

  @Override
  public Serializer<ThreadState> serializer() {
    return (topic, state) -> state == null ? null : write(state);
  }

  @Override
  public Deserializer<ThreadState> deserializer() {
    return (topic, bytes) -> bytes == null ? null : read(bytes);
  }

  private static byte[] write(ThreadState state) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(512);
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeByte(VERSION);
      writeText(out, state.turnId);
      writeText(out, state.startedBy);
      out.writeByte((state.hasEnded ? 1 : 0) | (state.anySuppressed ? 2 : 0) | (state.allSuppressed ? 4 : 0));
      out.writeLong(state.touchedMs);
      out.writeByte(state.earlier.size());
      for (String turn : state.earlier) {
        out.writeUTF(turn);
      }
      out.writeInt(state.counters.size());
      for (var entry : state.counters.entrySet()) {
        Counter counter = entry.getValue();
        out.writeUTF(entry.getKey().tool());
        writeDigest(out, entry.getKey().args());
        out.writeInt(counter.failures);
        out.writeInt(counter.repeats);
        if (counter.repeats > 0) {
          writeDigest(out, counter.result);
        }
      }
      out.writeInt(state.toolFailures.size());
      for (var entry : state.toolFailures.entrySet()) {
        out.writeUTF(entry.getKey());
        out.writeInt(entry.getValue());
      }
      out.writeInt(state.calls.size());
      for (var entry : state.calls.entrySet()) {
        out.writeUTF(entry.getKey());
        writeCall(out, entry.getValue());
      }
      writeTexts(out, state.suppressedIds);
      writeTexts(out, state.suppressedTools);
    } catch (IOException failure) {
      throw new SerializationException(failure);
    }
    return bytes.toByteArray();
  }

  private static ThreadState read(byte[] bytes) {
    ThreadState state = new ThreadState();
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      if (in.readByte() != VERSION) {
        throw new SerializationException("a state of another version");
      }
      state.turnId = readText(in);
      state.startedBy = readText(in);
      int flags = in.readByte();
      state.hasEnded = (flags & 1) != 0;
      state.anySuppressed = (flags & 2) != 0;
      state.allSuppressed = (flags & 4) != 0;
      state.touchedMs = in.readLong();
      for (int left = in.readByte(); left > 0; left--) {
        state.earlier.add(in.readUTF());
      }
      for (int left = in.readInt(); left > 0; left--) {
        Signature signature = new Signature(in.readUTF(), readDigest(in));
        Counter counter = new Counter();
        counter.failures = in.readInt();
        counter.repeats = in.readInt();
        counter.result = counter.repeats > 0 ? readDigest(in) : null;
        state.counters.put(signature, counter);
      }
      for (int left = in.readInt(); left > 0; left--) {
        state.toolFailures.put(in.readUTF(), in.readInt());
      }
      for (int left = in.readInt(); left > 0; left--) {
        state.calls.put(in.readUTF(), readCall(in));
      }
      readTexts(in, state.suppressedIds);
      readTexts(in, state.suppressedTools);
    } catch (IOException failure) {
      throw new SerializationException(failure);
    }
    return state;
  }

  private static void writeCall(DataOutputStream out, Call call) throws IOException {
    writeText(out, call.tool);
    writeDigest(out, call.args);
    out.writeBoolean(call.isOpen);
    writeAnswer(out, call.callEvent, call.callRuling);
    writeAnswer(out, call.resultEvent, call.resultRuling);
  }

  private static Call readCall(DataInputStream in) throws IOException {
    Call call = new Call();
    call.tool = readText(in);
    call.args = readDigest(in);
    call.isOpen = in.readBoolean();
    call.callEvent = readText(in);
    call.callRuling = call.callEvent == null ? null : readRuling(in);
    call.resultEvent = readText(in);
    call.resultRuling = call.resultEvent == null ? null : readRuling(in);
    return call;
  }

  private static void writeAnswer(DataOutputStream out, String event, Ruling ruling) throws IOException {
    writeText(out, event);
    if (event != null) {
      out.writeByte(ruling.code().ordinal());
      out.writeInt(ruling.count());
    }
  }

  private static Ruling readRuling(DataInputStream in) throws IOException {
    return new Ruling(Ruling.Code.of(in.readByte()), in.readInt());
  }

  private static void writeDigest(DataOutputStream out, Digest digest) throws IOException {
    out.writeLong(digest.high());
    out.writeLong(digest.low());
  }

  private static Digest readDigest(DataInputStream in) throws IOException {
    return new Digest(in.readLong(), in.readLong());
  }

  private static void writeText(DataOutputStream out, String text) throws IOException {
    out.writeBoolean(text != null);
    if (text != null) {
      out.writeUTF(text);
    }
  }

  private static String readText(DataInputStream in) throws IOException {
    return in.readBoolean() ? in.readUTF() : null;
  }

  private static void writeTexts(DataOutputStream out, Set<String> texts) throws IOException {
    out.writeInt(texts.size());
    for (String text : texts) {
      out.writeUTF(text);
    }
  }

  private static void readTexts(DataInputStream in, Set<String> texts) throws IOException {
    for (int left = in.readInt(); left > 0; left--) {
      texts.add(in.readUTF());
    }
  }
}
