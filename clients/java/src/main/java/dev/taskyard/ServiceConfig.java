package dev.taskyard;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The retry and timeout of every method: service_config.json, the gRPC service config that all clients read. */
final class ServiceConfig {
  private record Name(String service, String method) {}

  private record Method(List<Name> name, String timeout, Map<String, Object> retryPolicy) {}

  private record Methods(List<Method> methodConfig) {}

  /** The config for gRPC's own use, without timeouts: the client sends a deadline with each call. */
  static final Map<String, Object> RETRIES = withoutTimeouts();

  /** The timeout by method, "taskyard.v1.TaskService/GetTask"; streams have none. */
  static final Map<String, Duration> TIMEOUTS = new HashMap<>();

  /** The methods that are safe to repeat: those with a retry policy. */
  static final Set<String> REPEATABLE = new HashSet<>();

  static {
    for (Method method : new Gson().fromJson(text(), Methods.class).methodConfig()) {
      for (Name name : method.name()) {
        String path = name.service() + "/" + name.method();
        if (method.timeout() != null) {
          TIMEOUTS.put(path, Duration.parse("PT" + method.timeout()));
        }
        if (method.retryPolicy() != null) {
          REPEATABLE.add(path);
        }
      }
    }
  }

  private ServiceConfig() {}

  private static Map<String, Object> withoutTimeouts() {
    Map<String, Object> config = new Gson().fromJson(text(), new TypeToken<Map<String, Object>>() {}.getType());
    for (Object method : (List<?>) config.get("methodConfig")) {
      ((Map<?, ?>) method).remove("timeout");
    }
    return config;
  }

  private static String text() {
    try (InputStream stream = ServiceConfig.class.getResourceAsStream("service_config.json");
        Reader reader = new InputStreamReader(stream, StandardCharsets.UTF_8)) {
      StringBuilder text = new StringBuilder();
      for (int letter = reader.read(); letter >= 0; letter = reader.read()) {
        text.append((char) letter);
      }
      return text.toString();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
