package dev.taskyard;

/** The servers and keys are not configured as they have to be; the message names the remedy. */
public class ContextException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ContextException(String message) {
    super(message);
  }

  /** No server is configured. */
  public static final class NoContext extends ContextException {
    private static final long serialVersionUID = 1L;

    NoContext(String message) {
      super(message);
    }
  }

  /** The expire_time of a context file has passed. */
  public static final class Expired extends ContextException {
    private static final long serialVersionUID = 1L;

    Expired(String message) {
      super(message);
    }
  }

  /** A key would leave this machine in plaintext. */
  public static final class PlaintextRefused extends ContextException {
    private static final long serialVersionUID = 1L;

    PlaintextRefused(String message) {
      super(message);
    }
  }
}
