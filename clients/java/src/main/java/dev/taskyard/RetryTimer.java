package dev.taskyard;

import io.grpc.Status;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/** Waits longer with each failure in a row, for at most a limit since the last success. */
final class RetryTimer {
  private static final long FIRST_DELAY_MS = 100;
  private static final long MAX_DELAY_MS = 1000;
  // Errors that gRPC itself raises for a broken connection carry no reason; the servers always set one.
  private static final Set<Status.Code> BROKEN =
      Set.of(Status.Code.INTERNAL, Status.Code.UNKNOWN, Status.Code.CANCELLED);

  private final Duration limit;
  private long delayMs = FIRST_DELAY_MS;
  private long deadline;

  RetryTimer(Duration limit) {
    this.limit = limit;
    refresh();
  }

  /** Whether a retry may succeed: the server asks for one, is unavailable, or the connection broke. */
  static boolean isTransient(TaskyardException error) {
    return error.retryable()
        || error instanceof TaskyardException.ConsumerStalled
        || (error.reason().isEmpty() && BROKEN.contains(error.code()));
  }

  /** Restarts the limit after a success. */
  void refresh() {
    delayMs = FIRST_DELAY_MS;
    deadline = System.nanoTime() + limit.toNanos();
  }

  /** The delay before a retry; throws the error if it is permanent or time is up. */
  long nextDelayMs(TaskyardException error) {
    long requested = error.retryAfter().map(Duration::toMillis).orElse(0L);
    long delay = Math.max(requested, (long) (delayMs * ThreadLocalRandom.current().nextDouble(0.5, 1.0)));
    if (!isTransient(error) || System.nanoTime() + delay * 1_000_000 > deadline) {
      throw error;
    }
    delayMs = Math.min(MAX_DELAY_MS, delayMs * 2);
    return delay;
  }

  /** Returns when the call should be retried; throws the error if it is permanent or time is up. */
  void await(TaskyardException error) {
    try {
      Thread.sleep(nextDelayMs(error));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw error;
    }
  }
}
