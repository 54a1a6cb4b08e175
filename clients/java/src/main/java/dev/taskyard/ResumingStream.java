package dev.taskyard;

import io.grpc.Context;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;

/** A stream that outlives its connections: it resumes where it broke, without gaps or repeats. */
final class ResumingStream<R, T> implements TaskStream<T> {
  /** The server ends a stream after at most 66 minutes and announces that. */
  static final Duration STREAM_LIMIT = Duration.ofMinutes(70);

  /** Longest silence of a watch; the server sends a bookmark every 15 s. */
  static final Duration SILENCE = Duration.ofSeconds(60);

  private static final ScheduledExecutorService CLOCK =
      Executors.newSingleThreadScheduledExecutor(
          work -> {
            Thread thread = new Thread(work, "taskyard-silence");
            thread.setDaemon(true);
            return thread;
          });

  /** What a response holds: its token, whether the server is about to end the stream, or the end of the work. */
  record Mark(String resumeToken, boolean closing, boolean complete) {}

  /** How the stream is opened, what its responses mean, and when its end is the end. */
  record Source<R, T>(
      Function<String, Iterator<R>> connect,
      Function<R, Mark> mark,
      BiFunction<R, String, List<T>> items,
      boolean endless,
      Duration silence) {}

  private final Source<R, T> source;
  private final Duration outage;
  private final Deque<T> ready = new ArrayDeque<>();
  private String token;
  private Iterator<R> responses;
  private RetryTimer timer;
  private boolean closing;
  private boolean ended;
  private volatile boolean closed;
  private volatile Context.CancellableContext call;

  ResumingStream(Source<R, T> source, String token, Duration outage) {
    this.source = source;
    this.token = token;
    this.outage = outage;
  }

  @Override
  public boolean hasNext() {
    while (ready.isEmpty() && !ended && !closed) {
      try {
        read();
      } catch (TaskyardException lost) {
        drop();
        if (closed) {
          break;
        }
        (timer == null ? new RetryTimer(Duration.ZERO) : timer).await(lost);
      }
    }
    return !ready.isEmpty() && !closed;
  }

  @Override
  public T next() {
    if (!hasNext()) {
      throw new NoSuchElementException("the stream has ended");
    }
    return ready.remove();
  }

  @Override
  public void close() {
    closed = true;
    cancel();
  }

  private void read() {
    if (responses == null) {
      call = Context.current().withCancellation();
      closing = source.endless();
      responses = within(() -> source.connect().apply(token));
    }
    if (!withinSilence()) {
      drop();
      if (closing) {
        throw TaskyardException.of("the server ended the stream", TaskyardException.Data.of(Status.Code.UNAVAILABLE));
      }
      ended = true;
      return;
    }
    R response = responses.next();
    if (timer == null) {
      timer = new RetryTimer(outage);
    }
    timer.refresh();
    Mark mark = source.mark().apply(response);
    String before = token;
    token = mark.resumeToken().isEmpty() ? token : mark.resumeToken();
    ready.addAll(source.items().apply(response, before));
    closing = source.endless() || mark.closing();
    if (mark.complete()) {
      ended = true;
      drop();
    }
  }

  private boolean withinSilence() {
    Context.CancellableContext current = call;
    Throwable silent =
        Status.UNAVAILABLE.withDescription("the server sent nothing for " + source.silence()).asRuntimeException();
    ScheduledFuture<?> alarm =
        CLOCK.schedule(() -> current.cancel(silent), source.silence().toMillis(), TimeUnit.MILLISECONDS);
    try {
      return responses.hasNext();
    } finally {
      alarm.cancel(false);
    }
  }

  private <V> V within(Supplier<V> work) {
    Context previous = call.attach();
    try {
      return work.get();
    } finally {
      call.detach(previous);
    }
  }

  private void drop() {
    cancel();
    responses = null;
  }

  private void cancel() {
    Context.CancellableContext current = call;
    if (current != null) {
      current.cancel(null);
    }
  }
}
