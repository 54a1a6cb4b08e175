package dev.taskyard;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import javax.net.ssl.SSLException;

/** Errors of gRPC to errors of Taskyard: by reason, never by message text. */
final class StatusErrors {
  private static final String DOMAIN = "taskyard.v1";
  private static final Metadata.Key<byte[]> DETAILS =
      Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

  /** Where a call went, for the message of an error of the connection. */
  record Target(String address, String key, String service, TaskyardContext context) {}

  private StatusErrors() {}

  /** The error of a status: of a batch item or of a call. */
  static TaskyardException fromStatus(com.google.rpc.Status status, Throwable cause) {
    ErrorInfo info = ErrorInfo.getDefaultInstance();
    List<TaskyardException.FieldViolation> violations = List.of();
    Optional<Duration> retryAfter = Optional.empty();
    try {
      for (Any detail : status.getDetailsList()) {
        switch (detail.getTypeUrl().substring(detail.getTypeUrl().lastIndexOf('/') + 1)) {
          case "google.rpc.ErrorInfo" -> info = ErrorInfo.parseFrom(detail.getValue());
          case "google.rpc.BadRequest" ->
              violations =
                  BadRequest.parseFrom(detail.getValue()).getFieldViolationsList().stream()
                      .map(v -> new TaskyardException.FieldViolation(v.getField(), v.getDescription(), v.getReason()))
                      .toList();
          case "google.rpc.RetryInfo" -> {
            com.google.protobuf.Duration delay = RetryInfo.parseFrom(detail.getValue()).getRetryDelay();
            retryAfter = Optional.of(Duration.ofSeconds(delay.getSeconds(), delay.getNanos()));
          }
          default -> {}
        }
      }
    } catch (InvalidProtocolBufferException damaged) {
      // What could be read is used.
    }
    Status.Code code = Status.fromCodeValue(status.getCode()).getCode();
    String reason = info.getDomain().equals(DOMAIN) ? info.getReason() : "";
    String message = status.getMessage().isEmpty() ? code.name() : status.getMessage();
    Map<String, String> metadata = Map.copyOf(info.getMetadataMap());
    return TaskyardException.of(
        message, new TaskyardException.Data(code, reason, metadata, violations, retryAfter, cause));
  }

  /** The error of a failed call; errors of the connection name what is wrong and the remedy. */
  static TaskyardException fromCall(StatusRuntimeException failed, Target target) {
    TaskyardException error = fromStatus(statusOf(failed), failed);
    TaskyardException.Data data =
        new TaskyardException.Data(
            error.code(), error.reason(), error.metadata(), error.violations(), error.retryAfter(), failed);
    String where = target.address() + " (from " + target.context().source() + ")";
    if (error.code() == Status.Code.UNAUTHENTICATED) {
      return new TaskyardException.Unauthenticated(rejectedKey(error, target, where), data);
    }
    if (!error.reason().isEmpty()) {
      return error;
    }
    if (error.code() == Status.Code.UNIMPLEMENTED) {
      return new TaskyardException.VersionUnsupported(
          "the server at " + where + " does not serve " + target.service() + ", so it is of another major version;"
              + " use the client of its version, or set TASKYARD_ADDRESS to another server",
          data);
    }
    if (error.code() != Status.Code.UNAVAILABLE) {
      return error;
    }
    Optional<String> tls = tlsProblem(failed);
    if (tls.isPresent()) {
      return new TaskyardException.CertificateUntrusted(
          "the certificate of the server at " + where + " is not trusted (" + tls.get() + ");"
              + " set TASKYARD_TLS_CA to the file of the CA that issued it",
          data);
    }
    return new TaskyardException.ServerUnreachable(
        "no server answers at " + where + "; start one with `make up` or `taskyard up`,"
            + " or set TASKYARD_ADDRESS and TASKYARD_KEY",
        data);
  }

  private static String rejectedKey(TaskyardException error, Target target, String where) {
    if (target.key().isEmpty()) {
      return "a key is required by the server at " + where + "; set TASKYARD_KEY";
    }
    String file = target.key().equals(target.context().key()) ? target.context().keyFile() : "";
    String problem = error.metadata().getOrDefault("problem", error.getMessage());
    return "the key" + (file.isEmpty() ? "" : " in " + file) + " is rejected by the server at " + where + ": "
        + problem + "; "
        + (file.isEmpty() ? "set TASKYARD_KEY to a key that is in force" : "put a key that is in force into it");
  }

  private static com.google.rpc.Status statusOf(StatusRuntimeException failed) {
    byte[] details = failed.getTrailers() == null ? null : failed.getTrailers().get(DETAILS);
    if (details != null) {
      try {
        return com.google.rpc.Status.parseFrom(details);
      } catch (InvalidProtocolBufferException damaged) {
        // The code and the message are still there.
      }
    }
    String message = failed.getStatus().getDescription();
    return com.google.rpc.Status.newBuilder()
        .setCode(failed.getStatus().getCode().value())
        .setMessage(message == null ? "" : message)
        .build();
  }

  private static Optional<String> tlsProblem(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof SSLException) {
        // Netty's own says nothing; the reason is the last cause.
        Throwable last = cause;
        while (last.getCause() != null) {
          last = last.getCause();
        }
        return Optional.of(String.valueOf(last.getMessage()));
      }
    }
    return Optional.empty();
  }
}
