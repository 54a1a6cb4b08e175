package dev.taskyard.conformance;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.taskyard.ContextException;
import dev.taskyard.NewTask;
import dev.taskyard.Payloads;
import dev.taskyard.TaskStream;
import dev.taskyard.Taskyard;
import dev.taskyard.TaskyardException;
import dev.taskyard.Trace;
import dev.taskyard.WaitTimeoutException;
import dev.taskyard.v1.BackoffPolicy;
import dev.taskyard.v1.CreateTaskResponse;
import dev.taskyard.v1.Dependency;
import dev.taskyard.v1.DependencyCondition;
import dev.taskyard.v1.RetryPolicy;
import dev.taskyard.v1.Task;
import dev.taskyard.v1.WatchTasksRequest;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;

/** The driver of the Java client; the protocol is in tests/conformance/README.md. */
public final class Driver {
  private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
  private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  private static final Map<Class<? extends Exception>, String> KINDS = new LinkedHashMap<>();

  static {
    KINDS.put(ContextException.NoContext.class, "NO_CONTEXT");
    KINDS.put(ContextException.Expired.class, "CONTEXT_EXPIRED");
    KINDS.put(ContextException.PlaintextRefused.class, "PLAINTEXT_REFUSED");
    KINDS.put(ContextException.class, "CONTEXT_INVALID");
    KINDS.put(TaskyardException.ServerUnreachable.class, "SERVER_UNREACHABLE");
    KINDS.put(TaskyardException.CertificateUntrusted.class, "CERTIFICATE_UNTRUSTED");
    KINDS.put(TaskyardException.VersionUnsupported.class, "VERSION_UNSUPPORTED");
    KINDS.put(WaitTimeoutException.class, "TIMEOUT");
  }

  private final Map<String, Items> streams = new ConcurrentHashMap<>();
  private volatile Taskyard client;

  /** An open stream, and how its items are shown. */
  private record Items(TaskStream<?> stream, Function<Object, JsonObject> show) {}

  private Driver() {}

  public static void main(String[] arguments) throws IOException {
    Driver driver = new Driver();
    ExecutorService threads = Executors.newCachedThreadPool();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      JsonObject request = JsonParser.parseString(line).getAsJsonObject();
      threads.submit(() -> driver.respond(request));
    }
    System.exit(0);
  }

  private void respond(JsonObject request) {
    JsonObject answer = new JsonObject();
    answer.add("id", request.get("id"));
    try {
      answer.add("ok", answer(request.get("op").getAsString(), request));
    } catch (Exception error) {
      answer.add("error", showError(error));
    }
    OUT.println(GSON.toJson(answer));
  }

  private JsonObject answer(String op, JsonObject given) throws Exception {
    JsonObject nothing = new JsonObject();
    switch (op) {
      case "hello":
        nothing.addProperty("language", "java");
        nothing.add("features", new JsonArray());
        return nothing;
      case "connect":
        return connect(given);
      case "create":
        return create(given);
      case "get":
        return showTask(client.get(text(given, "task")));
      case "wait":
        return showTask(
            given.has("timeout")
                ? client.waitFor(text(given, "task"), seconds(given, "timeout"))
                : client.waitFor(text(given, "task")));
      case "cancel":
        return showTask(client.cancel(text(given, "task"), text(given, "reason")));
      case "list":
        JsonArray names = new JsonArray();
        int pageSize = given.has("page_size") ? given.get("page_size").getAsInt() : 0;
        client.list(text(given, "filter"), pageSize).forEachRemaining(task -> names.add(task.getName()));
        nothing.add("names", names);
        return nothing;
      case "watch":
        streams.put(text(given, "stream"), new Items(client.watch(watchRequest(given)), Driver::showEvent));
        return nothing;
      case "logs":
        boolean follow = given.has("follow") && given.get("follow").getAsBoolean();
        streams.put(text(given, "stream"), new Items(client.logs(text(given, "task"), follow), Driver::showEntry));
        return nothing;
      case "next":
        return next(streams.get(text(given, "stream")), given.get("count").getAsInt());
      case "close":
        streams.remove(text(given, "stream")).stream().close();
        return nothing;
      default:
        if (op.startsWith("schedule_")) {
          return ScheduleOperations.answer(op, given, client.schedules());
        }
        throw new IllegalArgumentException("no such operation: " + op);
    }
  }

  private JsonObject connect(JsonObject given) {
    if (client != null) {
      client.close();
    }
    Taskyard.Builder builder =
        Taskyard.builder()
            .address(text(given, "address"))
            .key(text(given, "key"))
            .tenant(text(given, "tenant"))
            .scheduler(text(given, "scheduler"))
            .tlsCa(text(given, "tls_ca"));
    if (given.has("outage_timeout")) {
      builder.outageTimeout(seconds(given, "outage_timeout"));
    }
    client = builder.build();
    JsonObject shown = new JsonObject();
    shown.addProperty("address", client.context().address());
    shown.addProperty("tenant", client.context().tenant());
    return shown;
  }

  private JsonObject create(JsonObject given) throws Exception {
    NewTask task = newTask(given);
    CreateTaskResponse made = Trace.with(text(given, "traceparent"), () -> client.create(task));
    JsonObject shown = new JsonObject();
    shown.addProperty("name", made.getTask().getName());
    shown.addProperty("outcome", made.getOutcome().name().replace("CREATE_OUTCOME_", ""));
    shown.addProperty("phase", phase(made.getTask()));
    return shown;
  }

  static NewTask newTask(JsonObject given) {
    NewTask task = NewTask.external();
    if (given.has("function")) {
      task = NewTask.function(text(given, "function"));
    } else if (given.has("command")) {
      List<String> words = given.getAsJsonArray("command").asList().stream().map(JsonElement::getAsString).toList();
      task = NewTask.command(words.get(0), words.subList(1, words.size()).toArray(new String[0]));
    }
    task.id(text(given, "task_id")).requestId(text(given, "request_id"));
    if (given.has("labels")) {
      for (Map.Entry<String, JsonElement> label : given.getAsJsonObject("labels").entrySet()) {
        task.label(label.getKey(), label.getValue().getAsString());
      }
    }
    if (given.has("retries")) {
      com.google.protobuf.Duration soon = com.google.protobuf.Duration.newBuilder().setNanos(10_000_000).build();
      task.retry(
          RetryPolicy.newBuilder()
              .setMaxRetries(given.get("retries").getAsInt())
              .setBackoff(BackoffPolicy.newBuilder().setInitial(soon).setMax(soon))
              .build());
    }
    if (given.has("after")) {
      for (JsonElement one : given.getAsJsonArray("after")) {
        task.after(dependency(one.getAsJsonObject()));
      }
    }
    if (given.has("payload_text")) {
      task.payload(Payloads.jsonText(text(given, "payload_text")));
    } else if (given.has("payload")) {
      task.payload(given.get("payload"));
    }
    return task;
  }

  private static Dependency dependency(JsonObject given) {
    Dependency.Builder made = Dependency.newBuilder().setTask(text(given, "task")).setAlias(text(given, "alias"));
    if (given.has("when")) {
      made.setWhen(DependencyCondition.valueOf("DEPENDENCY_CONDITION_" + text(given, "when").toUpperCase(Locale.ROOT)));
    }
    return made.build();
  }

  private static WatchTasksRequest watchRequest(JsonObject given) {
    WatchTasksRequest.Builder request =
        WatchTasksRequest.newBuilder()
            .setFilter(text(given, "filter"))
            .setSnapshot(given.has("snapshot") && given.get("snapshot").getAsBoolean())
            .setUntilTerminal(given.has("until_terminal") && given.get("until_terminal").getAsBoolean());
    if (given.has("tasks")) {
      given.getAsJsonArray("tasks").forEach(task -> request.addNames(task.getAsString()));
    }
    return request.build();
  }

  private static JsonObject next(Items from, int count) {
    JsonArray items = new JsonArray();
    while (items.size() < count && from.stream().hasNext()) {
      items.add(from.show().apply(from.stream().next()));
    }
    JsonObject shown = new JsonObject();
    shown.add("items", items);
    shown.addProperty("ended", items.size() < count);
    return shown;
  }

  private static JsonObject showEvent(Object item) {
    dev.taskyard.v1.TaskEvent event = ((dev.taskyard.WatchEvent) item).event();
    JsonObject shown = new JsonObject();
    shown.addProperty("type", event.getType().name().replace("TASK_EVENT_TYPE_", ""));
    shown.addProperty("name", event.getTask().getName());
    shown.addProperty("phase", event.getStatus().getPhase().name().replace("TASK_PHASE_", ""));
    shown.addProperty("version", event.getResourceVersion());
    return shown;
  }

  private static JsonObject showEntry(Object item) {
    dev.taskyard.v1.LogEntry entry = (dev.taskyard.v1.LogEntry) item;
    JsonObject shown = new JsonObject();
    shown.addProperty("message", entry.getMessage());
    shown.addProperty("level", entry.getLevel().name().replace("LOG_LEVEL_", ""));
    shown.addProperty("generation", entry.getGeneration());
    shown.addProperty("sequence", entry.getSequence());
    return shown;
  }

  static JsonObject showTask(Task task) {
    JsonObject shown = new JsonObject();
    shown.addProperty("name", task.getName());
    shown.addProperty("phase", phase(task));
    shown.addProperty("attempt", task.getStatus().getAttempt());
    shown.add(
        "exit_code",
        task.getStatus().hasExitCode() ? GSON.toJsonTree(task.getStatus().getExitCode()) : JsonNull.INSTANCE);
    shown.addProperty("payload_text", Payloads.text(task.getSpec().getPayload()));
    String output = Payloads.text(task.getStatus().getResult().getOutput());
    shown.add("output", output.isEmpty() ? JsonNull.INSTANCE : JsonParser.parseString(output));
    JsonElement error = JsonNull.INSTANCE;
    if (task.getStatus().hasError()) {
      JsonObject failure = new JsonObject();
      failure.addProperty("code", task.getStatus().getError().getCode());
      failure.addProperty("message", task.getStatus().getError().getMessage());
      error = failure;
    }
    shown.add("error", error);
    shown.addProperty("traceparent", task.getMetadata().getTraceparent());
    return shown;
  }

  private static JsonObject showError(Exception error) {
    JsonObject shown = new JsonObject();
    JsonArray fields = new JsonArray();
    JsonElement retryAfter = JsonNull.INSTANCE;
    String kind = error.getClass().getSimpleName();
    if (error instanceof TaskyardException found) {
      kind = found.reason().isEmpty() ? found.code().name() : found.reason();
      for (TaskyardException.FieldViolation violation : found.violations()) {
        JsonObject field = new JsonObject();
        field.addProperty("field", violation.field());
        field.addProperty("description", violation.description());
        fields.add(field);
      }
      if (found.retryAfter().isPresent()) {
        retryAfter = GSON.toJsonTree(found.retryAfter().get().toMillis() / 1000.0);
      }
    }
    for (Map.Entry<Class<? extends Exception>, String> known : KINDS.entrySet()) {
      if (known.getKey().isInstance(error)) {
        kind = known.getValue();
        break;
      }
    }
    shown.addProperty("kind", kind);
    shown.addProperty("message", String.valueOf(error.getMessage()));
    shown.add("fields", fields);
    shown.add("retry_after", retryAfter);
    return shown;
  }

  private static String phase(Task task) {
    return task.getStatus().getPhase().name().replace("TASK_PHASE_", "");
  }

  static String text(JsonObject given, String name) {
    return given.has(name) ? given.get(name).getAsString() : "";
  }

  private static Duration seconds(JsonObject given, String name) {
    return Duration.ofMillis((long) (given.get(name).getAsDouble() * 1000));
  }
}
