package dev.taskyard;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.protobuf.ByteString;
import dev.taskyard.v1.Payload;

/** Values of Java to and from the payload of a task: bytes unchanged, anything else as JSON. */
public final class Payloads {
  private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
  private static final String JSON = "application/json";

  private Payloads() {}

  /** A value as JSON, by Gson. Raw and not Struct, so that the bytes stay as they are. */
  public static Payload json(Object value) {
    return jsonText(GSON.toJson(value));
  }

  /** A JSON document, byte for byte. */
  public static Payload jsonText(String document) {
    return Payload.newBuilder().setRaw(ByteString.copyFromUtf8(document)).setContentType(JSON).build();
  }

  /** Bytes as they are. */
  public static Payload bytes(byte[] content) {
    return Payload.newBuilder()
        .setRaw(ByteString.copyFrom(content))
        .setContentType("application/octet-stream")
        .build();
  }

  /** The document of a raw payload as text; empty if there is none. */
  public static String text(Payload payload) {
    return payload.getRaw().toStringUtf8();
  }

  /** The document of a raw JSON payload as a value of this class. */
  public static <T> T parse(Payload payload, Class<T> type) {
    return GSON.fromJson(text(payload), type);
  }
}
