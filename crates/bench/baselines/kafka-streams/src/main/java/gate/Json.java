package gate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** Reading JSON as leniently as Python does, one spelling for every value, and digests of it. */
final class Json {
  static final ObjectMapper MAPPER =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(StreamReadConstraints.builder().maxNumberLength(4300).maxNestingDepth(1024).build())
                  .build())
          .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();
  private static final ObjectReader READER = MAPPER.readerFor(JsonNode.class);
  private static final ObjectWriter SORTED = MAPPER.writer().with(JsonNodeFeature.WRITE_PROPERTIES_SORTED);
  private static final ThreadLocal<MessageDigest> SHA_256 = ThreadLocal.withInitial(Json::sha256);

  /** The first half of a SHA-256. */
  record Digest(long high, long low) {}

  static final Digest EMPTY_OBJECT = digest("{}".getBytes(StandardCharsets.UTF_8));

  private Json() {}

  /** The value, or null if the bytes are no JSON. */
  static JsonNode parse(byte[] text) {
    try {
      JsonNode node = READER.readValue(text);
      return node == null || node.isMissingNode() ? null : node;
    } catch (IOException notJson) {
      return null;
    }
  }

  /** The value, or null if the text is no JSON. */
  static JsonNode parse(String text) {
    try {
      JsonNode node = READER.readValue(text);
      return node == null || node.isMissingNode() ? null : node;
    } catch (JsonProcessingException notJson) {
      return null;
    }
  }

  /** One spelling for every value: members in order, no white space. */
  static byte[] canonical(JsonNode value) {
    try {
      return SORTED.writeValueAsBytes(value);
    } catch (JsonProcessingException halfASurrogatePair) {
      return value.toString().getBytes(StandardCharsets.UTF_16BE);
    }
  }

  static Digest digest(byte[] bytes) {
    ByteBuffer digest = ByteBuffer.wrap(SHA_256.get().digest(bytes));
    return new Digest(digest.getLong(), digest.getLong());
  }

  /** The digest of a call's arguments; anything but an object counts as an empty one. */
  static Digest arguments(JsonNode value) {
    return value == null || !value.isObject() || value.isEmpty() ? EMPTY_OBJECT : digest(canonical(value));
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
