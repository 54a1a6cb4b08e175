package dev.taskyard;

import dev.taskyard.Channels.Server;
import dev.taskyard.v1.AuditEvent;
import dev.taskyard.v1.BatchCreateTasksRequest;
import dev.taskyard.v1.BatchCreateTasksResult;
import dev.taskyard.v1.BatchMode;
import dev.taskyard.v1.CancelTaskRequest;
import dev.taskyard.v1.CancelTaskResponse;
import dev.taskyard.v1.Checkpoint;
import dev.taskyard.v1.CreateTaskResponse;
import dev.taskyard.v1.DeleteTaskRequest;
import dev.taskyard.v1.ExplainServiceGrpc;
import dev.taskyard.v1.ExplainTaskRequest;
import dev.taskyard.v1.ExplainTaskResponse;
import dev.taskyard.v1.GetTaskRequest;
import dev.taskyard.v1.GetTaskResponse;
import dev.taskyard.v1.ListAuditEventsRequest;
import dev.taskyard.v1.ListAuditEventsResponse;
import dev.taskyard.v1.ListCheckpointsRequest;
import dev.taskyard.v1.ListCheckpointsResponse;
import dev.taskyard.v1.ListTaskRunsRequest;
import dev.taskyard.v1.ListTaskRunsResponse;
import dev.taskyard.v1.ListTasksRequest;
import dev.taskyard.v1.ListTasksResponse;
import dev.taskyard.v1.LogEntry;
import dev.taskyard.v1.PauseTaskRequest;
import dev.taskyard.v1.ReportTaskStatusRequest;
import dev.taskyard.v1.ResumeTaskRequest;
import dev.taskyard.v1.RetryTaskRequest;
import dev.taskyard.v1.TailTaskLogsRequest;
import dev.taskyard.v1.TailTaskLogsResponse;
import dev.taskyard.v1.Task;
import dev.taskyard.v1.TaskRun;
import dev.taskyard.v1.TaskServiceGrpc;
import dev.taskyard.v1.WaitTaskRequest;
import dev.taskyard.v1.WaitTaskResponse;
import dev.taskyard.v1.WatchTasksRequest;
import dev.taskyard.v1.WatchTasksResponse;
import io.grpc.MethodDescriptor;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A connection to Taskyard, safe to share between threads. What its builder is not given comes from TASKYARD_ADDRESS,
 * TASKYARD_KEY and so on, then from .taskyard/context.toml in this folder or one above, then from
 * ~/.config/taskyard/config.toml.
 *
 * <p>A task is given by its id or full name. Methods throw {@link TaskyardException}; futures complete with it.
 */
public final class Taskyard implements AutoCloseable {
  // The longest wait of one WaitTask call, and the time for its response beyond that.
  private static final Duration WAIT = Duration.ofSeconds(60);
  private static final Duration RESPONSE = Duration.ofSeconds(15);

  private final TaskyardContext context;
  private final Channels channels;
  private final Duration outage;
  private final Tenant tenant;
  private final Schedules schedules;

  private Taskyard(Builder builder) {
    context = TaskyardContext.find(builder.given, System.getenv(), Path.of(""));
    channels = new Channels(context, builder.timeout, builder.traceparent);
    outage = builder.outage;
    tenant = new Tenant(context, channels);
    schedules = new Schedules(this);
  }

  /** A client of the context that is found. */
  public static Taskyard connect() {
    return builder().build();
  }

  public static Builder builder() {
    return new Builder();
  }

  /** The options of a client. */
  public static final class Builder {
    private final Map<String, String> given = new HashMap<>();
    private Duration timeout;
    private Duration outage = Duration.ofMinutes(5);
    private Supplier<String> traceparent = () -> "";

    private Builder() {}

    private Builder set(String name, String value) {
      if (value != null && !value.isEmpty()) {
        given.put(name, value);
      }
      return this;
    }

    /** taskdb as host:port; several replicas are separated by commas. "https://" in front means TLS. */
    public Builder address(String value) {
      return set("address", value);
    }

    /** The scheduler as host:port. */
    public Builder scheduler(String value) {
      return set("scheduler", value);
    }

    public Builder key(String value) {
      return set("key", value);
    }

    /** The key for administrative calls. */
    public Builder adminKey(String value) {
      return set("admin_key", value);
    }

    /** The tenant whose tasks the client names; without it the one of the context, then that of the key. */
    public Builder tenant(String value) {
      return set("tenant", value);
    }

    /** File with the certificates of the CA; its presence means TLS. */
    public Builder tlsCa(String value) {
      return set("tls_ca", value);
    }

    /** Replaces the timeout per method of service_config.json. */
    public Builder timeout(Duration value) {
      timeout = value;
      return this;
    }

    /** How long watch, logs and waitFor retry while the server cannot be reached; 5 minutes by default. */
    public Builder outageTimeout(Duration value) {
      outage = value;
      return this;
    }

    /** Where the W3C traceparent of a call comes from, for example OpenTelemetry's current span. */
    public Builder traceparent(Supplier<String> value) {
      traceparent = value;
      return this;
    }

    /** Throws {@link ContextException} if no server is configured as it has to be. */
    public Taskyard build() {
      return new Taskyard(this);
    }
  }

  /** The effective servers and keys. */
  public TaskyardContext context() {
    return context;
  }

  /** The tenant of the context; where it names none, that of the key. */
  public String tenant() {
    return join(tenant.id());
  }

  /** The schedules of the tenant: tasks that are created by time. */
  public Schedules schedules() {
    return schedules;
  }

  /** Closes the connections and cancels the calls in flight. */
  @Override
  public void close() {
    channels.close();
  }

  /** Any unary method of taskdb, with the key, deadline, retries and errors of this client. */
  public <Q, R> CompletableFuture<R> call(MethodDescriptor<Q, R> method, Q request) {
    return channels.unary(Server.TASKDB, method, request, null);
  }

  /** The same with the administrator's key. */
  public <Q, R> CompletableFuture<R> callAsAdmin(MethodDescriptor<Q, R> method, Q request) {
    return channels.unary(Server.ADMIN, method, request, null);
  }

  /** Any unary method of the scheduler, such as those of WorkService. */
  public <Q, R> CompletableFuture<R> callScheduler(MethodDescriptor<Q, R> method, Q request) {
    return channels.unary(Server.SCHEDULER, method, request, null);
  }

  // Creating

  /** Creates a task; when this completes it is stored durably. A retry inside creates no second task. */
  public CompletableFuture<CreateTaskResponse> createAsync(NewTask task) {
    return tenant
        .parent()
        .thenCompose(parent -> call(TaskServiceGrpc.getCreateTaskMethod(), task.request(parent)));
  }

  /** Creates a task; when this returns it is stored durably. A retry inside creates no second task. */
  public CreateTaskResponse create(NewTask task) {
    return join(createAsync(task));
  }

  /** Creates up to 1000 tasks in one call; for each, in order, the created task or its error. */
  public List<BatchCreateTasksResult> createAll(List<NewTask> tasks) {
    BatchCreateTasksRequest request =
        BatchCreateTasksRequest.newBuilder()
            .setParent(parent())
            .setMode(BatchMode.BATCH_MODE_PER_ITEM)
            .addAllRequests(tasks.stream().map(task -> task.request("")).toList())
            .build();
    return join(call(TaskServiceGrpc.getBatchCreateTasksMethod(), request)).getResultsList();
  }

  /** The error of an item of {@link #createAll}. */
  public static TaskyardException errorOf(BatchCreateTasksResult result) {
    return StatusErrors.fromStatus(result.getError(), null);
  }

  // Reading

  public CompletableFuture<Task> getAsync(String task) {
    return tenant
        .task(task)
        .thenApply(name -> GetTaskRequest.newBuilder().setName(name).build())
        .thenCompose(request -> call(TaskServiceGrpc.getGetTaskMethod(), request))
        .thenApply(GetTaskResponse::getTask);
  }

  public Task get(String task) {
    return join(getAsync(task));
  }

  /** Tasks that match a filter such as {@code metadata.labels.team = "a"}, newest first, in pages of the default size. */
  public TaskStream<Task> list(String filter) {
    return list(filter, 0);
  }

  /** Tasks that match a filter, fetched page by page as they are read. */
  public TaskStream<Task> list(String filter, int pageSize) {
    ListTasksRequest.Builder request =
        ListTasksRequest.newBuilder().setFilter(filter).setPageSize(pageSize);
    return new Pages<>(
        token ->
            join(
                call(
                    TaskServiceGrpc.getListTasksMethod(),
                    request.setParent(parent()).setPageToken(token).build())),
        ListTasksResponse::getTasksList,
        ListTasksResponse::getNextPageToken);
  }

  /** The runs of a task, newest first. */
  public TaskStream<TaskRun> runs(String task) {
    ListTaskRunsRequest.Builder request = ListTaskRunsRequest.newBuilder();
    return new Pages<>(
        token ->
            join(
                call(
                    TaskServiceGrpc.getListTaskRunsMethod(),
                    request.setParent(name(task)).setPageToken(token).build())),
        ListTaskRunsResponse::getRunsList,
        ListTaskRunsResponse::getNextPageToken);
  }

  /** The checkpoints of a task, newest first. */
  public TaskStream<Checkpoint> checkpoints(String task) {
    ListCheckpointsRequest.Builder request = ListCheckpointsRequest.newBuilder();
    return new Pages<>(
        token ->
            join(
                call(
                    TaskServiceGrpc.getListCheckpointsMethod(),
                    request.setParent(name(task)).setPageToken(token).build())),
        ListCheckpointsResponse::getCheckpointsList,
        ListCheckpointsResponse::getNextPageToken);
  }

  /** Who did what, newest first. */
  public TaskStream<AuditEvent> audit(String filter) {
    ListAuditEventsRequest.Builder request = ListAuditEventsRequest.newBuilder().setFilter(filter);
    return new Pages<>(
        token ->
            join(
                call(
                    TaskServiceGrpc.getListAuditEventsMethod(),
                    request.setParent(parent()).setPageToken(token).build())),
        ListAuditEventsResponse::getAuditEventsList,
        ListAuditEventsResponse::getNextPageToken);
  }

  /** Why a task does not run. */
  public ExplainTaskResponse explain(String task) {
    ExplainTaskRequest request = ExplainTaskRequest.newBuilder().setParent(parent()).setName(name(task)).build();
    return join(channels.unary(Server.SCHEDULER, ExplainServiceGrpc.getExplainTaskMethod(), request, null));
  }

  /** Whether a new task would run. */
  public ExplainTaskResponse explain(NewTask task) {
    ExplainTaskRequest request = ExplainTaskRequest.newBuilder().setParent(parent()).setSpec(task.spec()).build();
    return join(channels.unary(Server.SCHEDULER, ExplainServiceGrpc.getExplainTaskMethod(), request, null));
  }

  // Following

  /** The task once it has ended; throws {@link WaitTimeoutException} after the limit. Retries over outages. */
  public Task waitFor(String task, Duration limit) {
    return join(waitForAsync(task, limit));
  }

  /** The task once it has ended. */
  public Task waitFor(String task) {
    return waitFor(task, Duration.ofDays(365));
  }

  /** The task once it has ended; completes with {@link WaitTimeoutException} after the limit. */
  public CompletableFuture<Task> waitForAsync(String task, Duration limit) {
    return waitOnce(task, limit, System.nanoTime() + limit.toNanos(), new RetryTimer(outage));
  }

  private CompletableFuture<Task> waitOnce(String task, Duration limit, long ends, RetryTimer timer) {
    Duration left = Duration.ofNanos(Math.max(0, Math.min(WAIT.toNanos(), ends - System.nanoTime())));
    WaitTaskRequest.Builder request = WaitTaskRequest.newBuilder().setTimeout(NewTask.durationOf(left));
    return tenant
        .task(task)
        .thenCompose(
            name ->
                channels.unary(
                    Server.TASKDB,
                    TaskServiceGrpc.getWaitTaskMethod(),
                    request.setName(name).build(),
                    left.plus(RESPONSE)))
        .handle(
            (response, error) -> {
              if (error != null) {
                if (!(cause(error) instanceof TaskyardException lost)) {
                  return CompletableFuture.<Task>failedFuture(cause(error));
                }
                long delay = timer.nextDelayMs(lost);
                return CompletableFuture.supplyAsync(
                        () -> null, CompletableFuture.delayedExecutor(delay, TimeUnit.MILLISECONDS))
                    .thenCompose(none -> waitOnce(task, limit, ends, timer));
              }
              timer.refresh();
              return satisfied(response, task, limit, ends, timer);
            })
        .thenCompose(next -> next);
  }

  private CompletableFuture<Task> satisfied(
      WaitTaskResponse response, String task, Duration limit, long ends, RetryTimer timer) {
    if (response.getSatisfied()) {
      return CompletableFuture.completedFuture(response.getTask());
    }
    if (System.nanoTime() >= ends) {
      String phase = response.getTask().getStatus().getPhase().name().replace("TASK_PHASE_", "");
      return CompletableFuture.failedFuture(
          new WaitTimeoutException(task + " is still " + phase + " after " + limit));
    }
    return waitOnce(task, limit, ends, timer);
  }

  /** Every change of one task from its current state until it has ended. */
  public TaskStream<WatchEvent> watch(String task) {
    return watch(
        WatchTasksRequest.newBuilder().addNames(task).setSnapshot(true).setUntilTerminal(true).build());
  }

  /**
   * Every change that the request selects, once and in order, over broken connections and restarts of the server; parent
   * and short names are filled in. Throws {@link TaskyardException.OutOfRange} if the history after the token is gone.
   */
  public TaskStream<WatchEvent> watch(WatchTasksRequest request) {
    Repeats repeats = new Repeats();
    return new ResumingStream<>(
        new ResumingStream.Source<WatchTasksResponse, WatchEvent>(
            token ->
                channels.serverStream(
                    Server.TASKDB,
                    TaskServiceGrpc.getWatchTasksMethod(),
                    named(request).setResumeToken(token).setSnapshot(request.getSnapshot() && token.isEmpty()).build(),
                    ResumingStream.STREAM_LIMIT),
            response -> new ResumingStream.Mark(response.getResumeToken(), response.getClosing(), false),
            repeats::events,
            !request.getUntilTerminal(),
            ResumingStream.SILENCE),
        request.getResumeToken(),
        outage);
  }

  private WatchTasksRequest.Builder named(WatchTasksRequest request) {
    List<String> names = request.getNamesList().stream().map(this::name).toList();
    return request.toBuilder().setParent(parent()).clearNames().addAllNames(names);
  }

  /** The output of a task; with {@code follow} until it has ended. Resumes without gaps or repeats. */
  public TaskStream<LogEntry> logs(String task, boolean follow) {
    return logs(TailTaskLogsRequest.newBuilder().setParent(task).setFollow(follow).build());
  }

  /** The output that the request selects. */
  public TaskStream<LogEntry> logs(TailTaskLogsRequest request) {
    Repeats repeats = new Repeats();
    return new ResumingStream<>(
        new ResumingStream.Source<TailTaskLogsResponse, LogEntry>(
            token ->
                channels.serverStream(
                    Server.TASKDB,
                    TaskServiceGrpc.getTailTaskLogsMethod(),
                    request.toBuilder().setParent(name(request.getParent())).setResumeToken(token).build(),
                    ResumingStream.STREAM_LIMIT),
            response ->
                new ResumingStream.Mark(response.getResumeToken(), response.getClosing(), response.getComplete()),
            (response, before) -> repeats.entries(response),
            false,
            ResumingStream.STREAM_LIMIT),
        request.getResumeToken(),
        outage);
  }

  // Controlling

  /** Requests cancellation; no new attempt starts after this returns. Repeating it is safe. */
  public Task cancel(String task, String reason) {
    CancelTaskRequest request = CancelTaskRequest.newBuilder().setName(name(task)).setReason(reason).build();
    return join(call(TaskServiceGrpc.getCancelTaskMethod(), request).thenApply(CancelTaskResponse::getTask));
  }

  /** Requests a pause; the workload may write a checkpoint before it stops. Repeating it is safe. */
  public Task pause(String task, String reason) {
    PauseTaskRequest request = PauseTaskRequest.newBuilder().setName(name(task)).setReason(reason).build();
    return join(call(TaskServiceGrpc.getPauseTaskMethod(), request)).getTask();
  }

  /** Resumes a paused task. Repeating it is safe. */
  public Task resume(String task) {
    ResumeTaskRequest request = ResumeTaskRequest.newBuilder().setName(name(task)).build();
    return join(call(TaskServiceGrpc.getResumeTaskMethod(), request)).getTask();
  }

  /** Runs a task that ended without success again, from its latest checkpoint. */
  public Task retry(String task) {
    RetryTaskRequest request =
        RetryTaskRequest.newBuilder().setName(name(task)).setRequestId(Names.newRequestId()).build();
    return join(call(TaskServiceGrpc.getRetryTaskMethod(), request)).getTask();
  }

  /** Deletes an ended task with its runs and logs; its audit trail is kept. */
  public void delete(String task) {
    join(call(TaskServiceGrpc.getDeleteTaskMethod(), DeleteTaskRequest.newBuilder().setName(name(task)).build()));
  }

  /** Reports the status of an external task, as its owner; name and request id are filled in. */
  public Task report(String task, ReportTaskStatusRequest report) {
    ReportTaskStatusRequest request =
        report.toBuilder().setName(name(task)).setRequestId(Names.newRequestId()).build();
    return join(call(TaskServiceGrpc.getReportTaskStatusMethod(), request)).getTask();
  }

  private String parent() {
    return join(tenant.parent());
  }

  private String name(String task) {
    return join(tenant.task(task));
  }

  static <T> T join(CompletableFuture<T> future) {
    try {
      return future.join();
    } catch (CompletionException error) {
      if (error.getCause() instanceof RuntimeException found) {
        throw found;
      }
      throw error;
    }
  }

  private static Throwable cause(Throwable error) {
    return error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
  }
}
