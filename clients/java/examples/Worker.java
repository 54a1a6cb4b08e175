import com.google.protobuf.Duration;
import dev.taskyard.Payloads;
import dev.taskyard.Taskyard;
import dev.taskyard.v1.*;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.*;

/**
 * A worker that serves the function "greet", one task at a time: it claims a task, renews the lease while it works, and
 * reports the outcome. It ends after as many tasks as its argument names.
 */
public class Worker {
  private static final String ID = "java-example-" + ProcessHandle.current().pid();
  private static final int LEASE_SECONDS = 6;
  private static final RunnerRegistration OFFER =
      RunnerRegistration.newBuilder()
          .addTaskTypes("*")
          .addExecutionKinds(ExecutionKind.EXECUTION_KIND_FUNCTION)
          .addFunctions("greet")
          .setCapacity(1)
          .build();

  private record Greeting(String name, int seconds) {}

  private final Taskyard client = Taskyard.connect();
  private final ExecutorService executor = Executors.newSingleThreadExecutor();

  /** The function itself. An interrupt asks it to stop. */
  private static Object greet(Greeting input) throws InterruptedException {
    if (input.name() == null) {
      throw new IllegalArgumentException("the payload has no name");
    }
    TimeUnit.SECONDS.sleep(input.seconds());
    return Map.of("hello", input.name());
  }

  public static void main(String[] arguments) throws InterruptedException {
    Worker worker = new Worker();
    for (int left = Integer.parseInt(arguments[0]); left > 0; ) {
      for (Assignment assignment : worker.claim().getAssignmentsList()) {
        worker.execute(assignment);
        left--;
      }
    }
    worker.executor.shutdown();
    worker.client.close();
  }

  private ClaimTasksResponse claim() {
    // A request id of its own makes a claim safe to repeat: a lost answer strands no task.
    ClaimTasksRequest.Builder request =
        ClaimTasksRequest.newBuilder().setWorkerId(ID).setRequestId(UUID.randomUUID().toString()).setMaxTasks(1);
    request.setRegistration(OFFER).setLeaseDuration(seconds(LEASE_SECONDS)).setWait(seconds(20));
    return client.callScheduler(WorkServiceGrpc.getClaimTasksMethod(), request.build()).join();
  }

  private void execute(Assignment assignment) throws InterruptedException {
    LeaseRef lease = assignment.getLease();
    long expires = System.nanoTime() + TimeUnit.SECONDS.toNanos(LEASE_SECONDS);
    report(lease, RunReport.newBuilder().setStarted(RunStarted.getDefaultInstance()));
    Greeting input = Payloads.parse(assignment.getSpec().getPayload(), Greeting.class);
    Future<Object> work = executor.submit(() -> greet(input));
    while (true) {
      try {
        TaskResult.Builder result = TaskResult.newBuilder();
        result.setOutput(Payloads.json(work.get(LEASE_SECONDS / 3, TimeUnit.SECONDS)));
        report(lease, RunReport.newBuilder().setSucceeded(RunSucceeded.newBuilder().setResult(result)));
        return;
      } catch (ExecutionException failure) {
        report(lease, failed(failure.getCause()));
        return;
      } catch (TimeoutException working) {
        long sent = System.nanoTime();
        LeaseAction action = renew(lease);
        if (action == LeaseAction.LEASE_ACTION_UNSPECIFIED) {
          expires = sent + TimeUnit.SECONDS.toNanos(LEASE_SECONDS);
        } else if (action == LeaseAction.LEASE_ACTION_CANCEL) {
          work.cancel(true);
          report(lease, RunReport.newBuilder().setCancelled(RunCancelled.getDefaultInstance()));
          return;
        } else if (action == LeaseAction.LEASE_ACTION_PAUSE) {
          work.cancel(true);
          RunReleased.Builder paused = RunReleased.newBuilder().setReason(ReleaseReason.RELEASE_REASON_PAUSED);
          report(lease, RunReport.newBuilder().setReleased(paused.setMessage("paused")));
          return;
        } else if (action == LeaseAction.LEASE_ACTION_ABORT || System.nanoTime() > expires) {
          // Another worker may hold the task; a report would be rejected.
          work.cancel(true);
          return;
        }
      }
    }
  }

  /** Unspecified if the lease is renewed; UNRECOGNIZED if the scheduler could not be reached. */
  private LeaseAction renew(LeaseRef lease) {
    RenewWorkRequest.Builder request = RenewWorkRequest.newBuilder().setWorkerId(ID).addLeases(lease);
    request.setLeaseDuration(seconds(LEASE_SECONDS));
    try {
      RenewWorkResponse response =
          client.callScheduler(WorkServiceGrpc.getRenewWorkMethod(), request.build()).join();
      return response.getVerdictsCount() == 0
          ? LeaseAction.LEASE_ACTION_UNSPECIFIED
          : response.getVerdicts(0).getAction();
    } catch (CompletionException outage) {
      System.err.println("not renewed: " + outage.getCause().getMessage());
      return LeaseAction.UNRECOGNIZED;
    }
  }

  private void report(LeaseRef lease, RunReport.Builder report) {
    ReportWorkRequest.Builder request = ReportWorkRequest.newBuilder().setWorkerId(ID);
    request.addReports(report.setLease(lease));
    // Repeated over broken connections by the client; a repeated report is applied once.
    client.callScheduler(WorkServiceGrpc.getReportWorkMethod(), request.build()).join();
  }

  private static RunReport.Builder failed(Throwable cause) {
    boolean permanent = cause instanceof IllegalArgumentException;
    ErrorClass errorClass = permanent ? ErrorClass.ERROR_CLASS_PERMANENT : ErrorClass.ERROR_CLASS_TRANSIENT;
    TaskError.Builder error = TaskError.newBuilder().setErrorClass(errorClass).setCode("GREET_FAILED");
    return RunReport.newBuilder().setFailed(RunFailed.newBuilder().setError(error.setMessage(cause.getMessage())));
  }

  private static Duration seconds(long count) {
    return Duration.newBuilder().setSeconds(count).build();
  }
}
