package dev.taskyard;

import io.grpc.Context;
import java.util.concurrent.Callable;

/** W3C trace context for programs that do not set one up through {@link Taskyard.Builder#traceparent}. */
public final class Trace {
  static final Context.Key<String> TRACEPARENT = Context.keyWithDefault("traceparent", "");

  private Trace() {}

  /** Calls made by {@code work} carry this traceparent. */
  public static <T> T with(String traceparent, Callable<T> work) throws Exception {
    return Context.current().withValue(TRACEPARENT, traceparent).call(work);
  }
}
