package dev.taskyard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.taskyard.v1.CreateOutcome;
import dev.taskyard.v1.ErrorReason;
import dev.taskyard.v1.Task;
import dev.taskyard.v1.TaskPhase;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The client against a real suite, which the variables of its environment name. */
final class TaskyardTest {
  private static Taskyard client;

  @BeforeAll
  static void connect() {
    client = Taskyard.connect();
  }

  @AfterAll
  static void close() {
    client.close();
  }

  private static String unused() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return "127.0.0.1:" + socket.getLocalPort();
    }
  }

  @Test
  void aCreatedTaskRunsAndItsOutputIsItsLog() {
    String task = client.create(NewTask.command("sh", "-c", "echo $WHO").env("WHO", "java")).getTask().getName();
    Task ended = client.waitFor(task, Duration.ofMinutes(1));
    assertEquals(TaskPhase.TASK_PHASE_SUCCEEDED, ended.getStatus().getPhase());
    List<String> lines = new ArrayList<>();
    client.logs(task, true).forEachRemaining(entry -> lines.add(entry.getMessage()));
    assertEquals(List.of("java"), lines);
  }

  @Test
  void aRepeatedRequestIdCreatesOneTask() {
    NewTask task = NewTask.external().requestId("java-" + System.nanoTime());
    String first = client.create(task).getTask().getName();
    assertEquals(first, client.create(task).getTask().getName());
    assertEquals(CreateOutcome.CREATE_OUTCOME_REPLAYED, client.create(task).getOutcome());
  }

  @Test
  void futuresCompleteWithTheErrorOfTheirReason() throws InterruptedException {
    CompletableFuture<Task> missing = client.getAsync("no-such-task");
    ExecutionException failed = assertThrows(ExecutionException.class, missing::get);
    TaskyardException error = assertInstanceOf(TaskyardException.NotFound.class, failed.getCause());
    assertEquals("tenants/default/tasks/no-such-task", error.metadata().get("name"));
  }

  @Test
  void aBrokenRuleNamesItsField() {
    TaskyardException error =
        assertThrows(
            TaskyardException.FieldInvalid.class, () -> client.create(NewTask.external().priority(5000)));
    assertEquals("task.spec.priority", error.violations().get(0).field());
    assertFalse(error.retryable());
  }

  @Test
  void everyReasonOfTheContractHasAClass() {
    List<String> missing =
        Arrays.stream(ErrorReason.values())
            .filter(reason -> reason != ErrorReason.UNRECOGNIZED && reason.getNumber() != 0)
            .map(reason -> reason.name().replace("ERROR_REASON_", ""))
            .filter(reason -> !TaskyardException.hasReason(reason))
            .toList();
    assertEquals(List.of(), missing);
  }

  @Test
  void aBatchAnswersEachItemAndPagesAreOneStream() {
    String label = "java-" + System.nanoTime();
    List<NewTask> tasks =
        IntStream.range(0, 7).mapToObj(n -> NewTask.external().label("label", label)).toList();
    assertTrue(client.createAll(tasks).stream().allMatch(result -> result.hasCreated()));
    String filter = "metadata.labels.label = \"" + label + "\"";
    assertEquals(7, client.list(filter, 3).stream().map(Task::getName).distinct().count());
    var mixed = client.createAll(List.of(NewTask.external(), NewTask.external().priority(-1)));
    assertEquals("FIELD_INVALID", Taskyard.errorOf(mixed.get(1)).reason());
  }

  @Test
  void aWatchEndsWithItsTaskAndAClosedOneEndsAtOnce() throws InterruptedException {
    String task = client.create(NewTask.command("false").retries(0)).getTask().getName();
    List<TaskPhase> phases = new ArrayList<>();
    client.watch(task).forEachRemaining(change -> phases.add(change.event().getStatus().getPhase()));
    assertEquals(TaskPhase.TASK_PHASE_FAILED, phases.get(phases.size() - 1));
    TaskStream<WatchEvent> open = client.watch(client.create(NewTask.external()).getTask().getName());
    open.next();
    Thread closer = new Thread(open::close);
    closer.start();
    assertFalse(open.hasNext());
    closer.join();
  }

  @Test
  void aWaitThatTakesTooLongIsATimeout() {
    String task = client.create(NewTask.external()).getTask().getName();
    assertThrows(WaitTimeoutException.class, () -> client.waitFor(task, Duration.ofMillis(50)));
  }

  @Test
  void callsGoToTheNextAddress() throws IOException {
    String both = unused() + "," + client.context().address();
    try (Taskyard two = Taskyard.builder().address(both).key(client.context().key()).build()) {
      assertFalse(two.create(NewTask.external()).getTask().getName().isEmpty());
    }
  }

  @Test
  void badConnectionsHaveErrorsOfTheirOwn() throws IOException {
    String nobody = unused();
    try (Taskyard lost = Taskyard.builder().address(nobody).key("k").build()) {
      var error = assertThrows(TaskyardException.ServerUnreachable.class, () -> lost.get("x"));
      assertTrue(error.getMessage().contains(nobody), error.getMessage());
    }
    String here = client.context().address();
    try (Taskyard wrong = Taskyard.builder().address(here).key("ty_wrong_0123456789abcdef").build()) {
      var error = assertThrows(TaskyardException.Unauthenticated.class, () -> wrong.get("x"));
      assertTrue(error.getMessage().contains("TASKYARD_KEY"), error.getMessage());
    }
    assertThrows(
        ContextException.PlaintextRefused.class, () -> Taskyard.builder().address("192.0.2.1:7420").build());
  }

  @Test
  void filesOfTheContextAreChecked(@TempDir Path folder) throws IOException {
    Path file = Files.createDirectory(folder.resolve(".taskyard")).resolve("context.toml");
    Map<String, String> home = Map.of("HOME", folder.toString());
    assertThrows(ContextException.NoContext.class, () -> TaskyardContext.find(Map.of(), home, folder));
    Files.writeString(file, "address = \"a:1\"\nkey = \"k\"\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    assertEquals("k", TaskyardContext.find(Map.of(), home, folder).key());
    assertEquals("", TaskyardContext.find(Map.of("address", "b:2"), home, folder).key());
    Map<String, String> bare = Map.of("HOME", folder.toString(), "TASKYARD_KEY", "mine");
    assertThrows(ContextException.class, () -> TaskyardContext.find(Map.of(), bare, folder));
    Files.writeString(file, "address = \"a:1\"\nexpire_time = \"2020-01-31T12:00:00Z\"\n");
    assertThrows(ContextException.Expired.class, () -> TaskyardContext.find(Map.of(), home, folder));
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
    assertThrows(ContextException.class, () -> TaskyardContext.find(Map.of(), home, folder));
  }
}
