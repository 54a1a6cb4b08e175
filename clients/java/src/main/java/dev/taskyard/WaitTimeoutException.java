package dev.taskyard;

/** A task has not ended within the time that the caller gave. */
public final class WaitTimeoutException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  WaitTimeoutException(String message) {
    super(message);
  }
}
