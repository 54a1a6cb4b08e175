package dev.taskyard;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import dev.taskyard.v1.AdmissionPolicy;
import dev.taskyard.v1.CommandExecution;
import dev.taskyard.v1.ContainerExecution;
import dev.taskyard.v1.CreateTaskRequest;
import dev.taskyard.v1.Dependency;
import dev.taskyard.v1.EnvVar;
import dev.taskyard.v1.Execution;
import dev.taskyard.v1.ExternalExecution;
import dev.taskyard.v1.FunctionExecution;
import dev.taskyard.v1.Interpreter;
import dev.taskyard.v1.OverlapPolicy;
import dev.taskyard.v1.Payload;
import dev.taskyard.v1.Placement;
import dev.taskyard.v1.RetryPolicy;
import dev.taskyard.v1.RunnerConstraint;
import dev.taskyard.v1.RunnerSelector;
import dev.taskyard.v1.ScriptExecution;
import dev.taskyard.v1.Task;
import dev.taskyard.v1.TaskMetadata;
import dev.taskyard.v1.TaskSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.function.Consumer;

/** A task to create, as a builder; {@link #spec} sets what has no method here. */
public final class NewTask {
  private final TaskSpec.Builder spec = TaskSpec.newBuilder();
  private final TaskMetadata.Builder metadata = TaskMetadata.newBuilder();
  private String id = "";
  private String requestId = "";

  private NewTask() {}

  private static NewTask of(Execution.Builder execution) {
    NewTask task = new NewTask();
    task.spec.setExecution(execution);
    return task;
  }

  /** A program on the runner's host, started without a shell. */
  public static NewTask command(String program, String... args) {
    return of(
        Execution.newBuilder()
            .setCommand(CommandExecution.newBuilder().setProgram(program).addAllArgs(List.of(args))));
  }

  /** A script on the runner's host; the arguments follow it. */
  public static NewTask script(Interpreter interpreter, String body, String... args) {
    return of(
        Execution.newBuilder()
            .setScript(
                ScriptExecution.newBuilder()
                    .setInterpreter(interpreter)
                    .setBody(ByteString.copyFromUtf8(body))
                    .addAllArgs(List.of(args))));
  }

  /** A function that a worker or a runner's application has registered. */
  public static NewTask function(String name) {
    return of(Execution.newBuilder().setFunction(FunctionExecution.newBuilder().setFunction(name)));
  }

  /** An OCI container; the arguments go to its entry point. */
  public static NewTask container(String image, String... args) {
    return of(
        Execution.newBuilder()
            .setContainer(ContainerExecution.newBuilder().setImage(image).addAllArgs(List.of(args))));
  }

  /** Work that its owner executes and reports; no runner is involved. */
  public static NewTask external() {
    return of(Execution.newBuilder().setExternal(ExternalExecution.getDefaultInstance()));
  }

  /** A task of a registered type; the type defines what is executed. */
  public static NewTask typed(String taskType) {
    NewTask task = new NewTask();
    task.spec.setTaskType(taskType);
    return task;
  }

  /** The caller's own id; the server makes one otherwise. */
  public NewTask id(String value) {
    id = value;
    return this;
  }

  /** Repeating a create with it returns the first task; made by the client otherwise. */
  public NewTask requestId(String value) {
    requestId = value;
    return this;
  }

  /** A label to find the task by. */
  public NewTask label(String name, String value) {
    metadata.putLabels(name, value);
    return this;
  }

  /** A variable of the workload's environment. */
  public NewTask env(String name, String value) {
    spec.addEnv(EnvVar.newBuilder().setName(name).setValue(value));
    return this;
  }

  /** A registered type with its defaults, or a mere classification. */
  public NewTask taskType(String value) {
    spec.setTaskType(value);
    return this;
  }

  /** The input as JSON. */
  public NewTask payload(Object value) {
    return payload(Payloads.json(value));
  }

  /** The input, see {@link Payloads}. */
  public NewTask payload(Payload value) {
    spec.setPayload(value);
    return this;
  }

  /** 0 to 1000, higher first. */
  public NewTask priority(int value) {
    spec.setPriority(value);
    return this;
  }

  /** At most one live task of a slot runs at a time. */
  public NewTask slot(String value, AdmissionPolicy admission) {
    spec.setSlot(value).setAdmission(admission);
    return this;
  }

  /** How often an unsuccessful task is retried. */
  public NewTask retries(int value) {
    return retry(RetryPolicy.newBuilder().setMaxRetries(value).build());
  }

  /** How an unsuccessful task is retried. */
  public NewTask retry(RetryPolicy value) {
    spec.setRetry(value);
    return this;
  }

  /** Longest time of one attempt. */
  public NewTask timeout(Duration value) {
    spec.setAttemptTimeout(durationOf(value));
    return this;
  }

  /** Longest time from creation to end, over all attempts. */
  public NewTask totalTimeout(Duration value) {
    spec.setTotalTimeout(durationOf(value));
    return this;
  }

  /** Tasks that have to succeed first, by id or full name. */
  public NewTask after(String... tasks) {
    for (String task : tasks) {
      after(Dependency.newBuilder().setTask(task).build());
    }
    return this;
  }

  /** A task that has to end first, with its condition and the alias under which its result reaches the workload. */
  public NewTask after(Dependency value) {
    spec.addAfter(value);
    return this;
  }

  /** Earliest start. */
  public NewTask notBefore(Instant value) {
    spec.setNotBefore(timestampOf(value));
    return this;
  }

  /** Only runners with this label. */
  public NewTask runnerLabel(String name, String value) {
    Placement placement = spec.getPlacement();
    RunnerConstraint required = placement.getRequired();
    RunnerSelector selector = required.getSelector().toBuilder().putMatchLabels(name, value).build();
    spec.setPlacement(placement.toBuilder().setRequired(required.toBuilder().setSelector(selector)));
    return this;
  }

  /** Whether a new run may start while an old one, out of reach, may still be running. */
  public NewTask overlap(OverlapPolicy value) {
    spec.setOverlap(value);
    return this;
  }

  /** Changes any other field. */
  public NewTask spec(Consumer<TaskSpec.Builder> change) {
    change.accept(spec);
    return this;
  }

  TaskSpec spec() {
    return spec.build();
  }

  /** The task of a schedule. */
  Task template() {
    return Task.newBuilder().setMetadata(metadata).setSpec(spec).build();
  }

  /** The request of one create; it has a request id. */
  CreateTaskRequest request(String parent) {
    return CreateTaskRequest.newBuilder()
        .setParent(parent)
        .setTaskId(id)
        .setRequestId(requestId.isEmpty() ? Names.newRequestId() : requestId)
        .setTask(template())
        .build();
  }

  static Timestamp timestampOf(Instant value) {
    return Timestamp.newBuilder().setSeconds(value.getEpochSecond()).setNanos(value.getNano()).build();
  }

  static com.google.protobuf.Duration durationOf(Duration value) {
    return com.google.protobuf.Duration.newBuilder()
        .setSeconds(value.getSeconds())
        .setNanos(value.getNano())
        .build();
  }
}
