package dev.taskyard;

import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiFunction;

/**
 * Any error of a call: a class per reason of taskyard.v1.ErrorReason, each below the class of its gRPC code.
 *
 * <p>{@link #code()} and {@link #reason()} are for programs, {@link #getMessage()} is for people.
 */
@SuppressWarnings("serial")
public class TaskyardException extends RuntimeException {
  /** One broken rule: the path of the field in the request, what is wrong, and the rule's id. */
  public record FieldViolation(String field, String description, String rule) {}

  /** What an error carries besides its message. */
  record Data(
      Status.Code code,
      String reason,
      Map<String, String> metadata,
      List<FieldViolation> violations,
      Optional<Duration> retryAfter,
      Throwable cause) {
    static Data of(Status.Code code) {
      return new Data(code, "", Map.of(), List.of(), Optional.empty(), null);
    }
  }

  private final transient Data data;

  TaskyardException(String message, Data data) {
    super(message, data.cause());
    this.data = data;
  }

  /** The canonical gRPC code. */
  public Status.Code code() {
    return data.code();
  }

  /** A name of taskyard.v1.ErrorReason without its prefix; empty if gRPC itself raised the error. */
  public String reason() {
    return data.reason();
  }

  /** The variable parts of the message, by name. */
  public Map<String, String> metadata() {
    return data.metadata();
  }

  /** The fields that break their rules. */
  public List<FieldViolation> violations() {
    return data.violations();
  }

  /** How long to wait before the request is sent again. */
  public Optional<Duration> retryAfter() {
    return data.retryAfter();
  }

  /** Whether the same request may be sent again, after {@link #retryAfter()} or a back-off. */
  public boolean retryable() {
    return data.code() == Status.Code.RESOURCE_EXHAUSTED
        ? data.retryAfter().isPresent()
        : data.code() == Status.Code.UNAVAILABLE;
  }

  /** The request breaks a rule; {@link #violations()} names each field. */
  public static class InvalidArgument extends TaskyardException { InvalidArgument(String m, Data d) { super(m, d); } }

  /** Reason FIELD_INVALID. */
  public static class FieldInvalid extends InvalidArgument { FieldInvalid(String m, Data d) { super(m, d); } }

  /** Reason PAYLOAD_SCHEMA_VIOLATION. */
  public static class PayloadSchemaViolation extends InvalidArgument { PayloadSchemaViolation(String m, Data d) { super(m, d); } }

  /** Reason FILTER_INVALID. */
  public static class FilterInvalid extends InvalidArgument { FilterInvalid(String m, Data d) { super(m, d); } }

  /** Reason ORDER_BY_INVALID. */
  public static class OrderByInvalid extends InvalidArgument { OrderByInvalid(String m, Data d) { super(m, d); } }

  /** Reason PAGE_TOKEN_INVALID. */
  public static class PageTokenInvalid extends InvalidArgument { PageTokenInvalid(String m, Data d) { super(m, d); } }

  /** Reason RESUME_TOKEN_INVALID. */
  public static class ResumeTokenInvalid extends InvalidArgument { ResumeTokenInvalid(String m, Data d) { super(m, d); } }

  /** Reason FIELD_IMMUTABLE. */
  public static class FieldImmutable extends InvalidArgument { FieldImmutable(String m, Data d) { super(m, d); } }

  /** Reason BATCH_TOO_LARGE. */
  public static class BatchTooLarge extends InvalidArgument { BatchTooLarge(String m, Data d) { super(m, d); } }

  /** Reason TOO_LARGE. */
  public static class TooLarge extends InvalidArgument { TooLarge(String m, Data d) { super(m, d); } }

  /** Reason UNAUTHENTICATED. */
  public static class Unauthenticated extends TaskyardException { Unauthenticated(String m, Data d) { super(m, d); } }

  /** Reason SIGN_IN_CODE_INVALID. */
  public static class SignInCodeInvalid extends Unauthenticated { SignInCodeInvalid(String m, Data d) { super(m, d); } }

  /** Reason PERMISSION_DENIED. */
  public static class PermissionDenied extends TaskyardException { PermissionDenied(String m, Data d) { super(m, d); } }

  /** Reason UNIMPLEMENTED. */
  public static class Unimplemented extends TaskyardException { Unimplemented(String m, Data d) { super(m, d); } }

  /** The server does not serve taskyard.v1. */
  public static class VersionUnsupported extends Unimplemented { VersionUnsupported(String m, Data d) { super(m, d); } }

  /** Reason NOT_FOUND. */
  public static class NotFound extends TaskyardException { NotFound(String m, Data d) { super(m, d); } }

  /** Reason TASK_TYPE_UNKNOWN. */
  public static class TaskTypeUnknown extends NotFound { TaskTypeUnknown(String m, Data d) { super(m, d); } }

  /** Reason ALREADY_EXISTS. */
  public static class AlreadyExists extends TaskyardException { AlreadyExists(String m, Data d) { super(m, d); } }

  /** Reason REQUEST_ID_REUSED. */
  public static class RequestIdReused extends AlreadyExists { RequestIdReused(String m, Data d) { super(m, d); } }

  /** Reason RUNNER_ID_IN_USE. */
  public static class RunnerIdInUse extends AlreadyExists { RunnerIdInUse(String m, Data d) { super(m, d); } }

  /** Code ABORTED. */
  public static class Aborted extends TaskyardException { Aborted(String m, Data d) { super(m, d); } }

  /** Reason RESOURCE_VERSION_MISMATCH. */
  public static class ResourceVersionMismatch extends Aborted { ResourceVersionMismatch(String m, Data d) { super(m, d); } }

  /** Reason STALE_GENERATION. */
  public static class StaleGeneration extends Aborted { StaleGeneration(String m, Data d) { super(m, d); } }

  /** Reason SESSION_SUPERSEDED. */
  public static class SessionSuperseded extends Aborted { SessionSuperseded(String m, Data d) { super(m, d); } }

  /** Code FAILED_PRECONDITION. */
  public static class FailedPrecondition extends TaskyardException { FailedPrecondition(String m, Data d) { super(m, d); } }

  /** Reason PHASE_CONFLICT. */
  public static class PhaseConflict extends FailedPrecondition { PhaseConflict(String m, Data d) { super(m, d); } }

  /** Reason TASK_TERMINAL. */
  public static class TaskTerminal extends FailedPrecondition { TaskTerminal(String m, Data d) { super(m, d); } }

  /** Reason LEASE_NOT_HELD. */
  public static class LeaseNotHeld extends FailedPrecondition { LeaseNotHeld(String m, Data d) { super(m, d); } }

  /** Reason LEASE_EXPIRED. */
  public static class LeaseExpired extends FailedPrecondition { LeaseExpired(String m, Data d) { super(m, d); } }

  /** Reason TASK_TYPE_DISABLED. */
  public static class TaskTypeDisabled extends FailedPrecondition { TaskTypeDisabled(String m, Data d) { super(m, d); } }

  /** Reason GROUP_CLOSED. */
  public static class GroupClosed extends FailedPrecondition { GroupClosed(String m, Data d) { super(m, d); } }
  /** Reason DELETION_PROTECTED. */
  public static class DeletionProtected extends FailedPrecondition { DeletionProtected(String m, Data d) { super(m, d); } }

  /** Reason TENANT_SUSPENDED. */
  public static class TenantSuspended extends FailedPrecondition { TenantSuspended(String m, Data d) { super(m, d); } }

  /** Reason NOT_EMPTY. */
  public static class NotEmpty extends FailedPrecondition { NotEmpty(String m, Data d) { super(m, d); } }

  /** Reason CHECKPOINT_SEQUENCE_CONFLICT. */
  public static class CheckpointSequenceConflict extends FailedPrecondition { CheckpointSequenceConflict(String m, Data d) { super(m, d); } }

  /** Reason RUNNER_BUSY. */
  public static class RunnerBusy extends FailedPrecondition { RunnerBusy(String m, Data d) { super(m, d); } }

  /** Reason PROTOCOL_VIOLATION. */
  public static class ProtocolViolation extends FailedPrecondition { ProtocolViolation(String m, Data d) { super(m, d); } }

  /** Reason PROTOCOL_VERSION_UNSUPPORTED. */
  public static class ProtocolVersionUnsupported extends FailedPrecondition { ProtocolVersionUnsupported(String m, Data d) { super(m, d); } }

  /** Code OUT_OF_RANGE. */
  public static class OutOfRange extends TaskyardException { OutOfRange(String m, Data d) { super(m, d); } }

  /** Reason RESUME_TOKEN_EXPIRED. */
  public static class ResumeTokenExpired extends OutOfRange { ResumeTokenExpired(String m, Data d) { super(m, d); } }

  /** Reason LOG_EPOCH_CHANGED. */
  public static class LogEpochChanged extends OutOfRange { LogEpochChanged(String m, Data d) { super(m, d); } }

  /** Code RESOURCE_EXHAUSTED. */
  public static class ResourceExhausted extends TaskyardException { ResourceExhausted(String m, Data d) { super(m, d); } }

  /** Reason RATE_LIMITED. */
  public static class RateLimited extends ResourceExhausted { RateLimited(String m, Data d) { super(m, d); } }

  /** Reason QUEUE_DEPTH_EXCEEDED. */
  public static class QueueDepthExceeded extends ResourceExhausted { QueueDepthExceeded(String m, Data d) { super(m, d); } }

  /** Reason STORAGE_QUOTA_EXCEEDED. */
  public static class StorageQuotaExceeded extends ResourceExhausted { StorageQuotaExceeded(String m, Data d) { super(m, d); } }
  /** Reason SLOT_QUEUE_FULL. */
  public static class SlotQueueFull extends ResourceExhausted { SlotQueueFull(String m, Data d) { super(m, d); } }

  /** Reason STREAM_LIMIT. */
  public static class StreamLimit extends ResourceExhausted { StreamLimit(String m, Data d) { super(m, d); } }

  /** Reason PLACEMENT_CLASS_LIMIT. */
  public static class PlacementClassLimit extends ResourceExhausted { PlacementClassLimit(String m, Data d) { super(m, d); } }

  /** Reason OVERLOADED. */
  public static class Overloaded extends ResourceExhausted { Overloaded(String m, Data d) { super(m, d); } }

  /** Reason CONSUMER_STALLED. */
  public static class ConsumerStalled extends ResourceExhausted { ConsumerStalled(String m, Data d) { super(m, d); } }

  /** Reason WINDOW_EXCEEDED. */
  public static class WindowExceeded extends ResourceExhausted { WindowExceeded(String m, Data d) { super(m, d); } }

  /** Code UNAVAILABLE. */
  public static class Unavailable extends TaskyardException { Unavailable(String m, Data d) { super(m, d); } }

  /** Reason SERVER_DRAINING. */
  public static class ServerDraining extends Unavailable { ServerDraining(String m, Data d) { super(m, d); } }

  /** Reason STORAGE_UNAVAILABLE. */
  public static class StorageUnavailable extends Unavailable { StorageUnavailable(String m, Data d) { super(m, d); } }

  /** Reason RESULT_CHECK_PENDING. */
  public static class ResultCheckPending extends Unavailable { ResultCheckPending(String m, Data d) { super(m, d); } }
  /** Reason HEARTBEAT_TIMEOUT. */
  public static class HeartbeatTimeout extends Unavailable { HeartbeatTimeout(String m, Data d) { super(m, d); } }

  /** Nothing answers at the address. */
  public static class ServerUnreachable extends Unavailable { ServerUnreachable(String m, Data d) { super(m, d); } }

  /** The server's certificate is not issued by the CA. */
  public static class CertificateUntrusted extends Unavailable {
    CertificateUntrusted(String m, Data d) { super(m, d); }

    @Override
    public boolean retryable() {
      return false;
    }
  }

  /** Code DATA_LOSS. */
  public static class DataLoss extends TaskyardException { DataLoss(String m, Data d) { super(m, d); } }

  /** Reason DIGEST_MISMATCH. */
  public static class DigestMismatch extends DataLoss { DigestMismatch(String m, Data d) { super(m, d); } }

  /** Reason DEADLINE_EXCEEDED. */
  public static class DeadlineExceeded extends TaskyardException { DeadlineExceeded(String m, Data d) { super(m, d); } }

  /** Code CANCELLED. */
  public static class CallCancelled extends TaskyardException { CallCancelled(String m, Data d) { super(m, d); } }

  /** Reason INTERNAL. */
  public static class Internal extends TaskyardException { Internal(String m, Data d) { super(m, d); } }

  private static final Map<String, BiFunction<String, Data, TaskyardException>> BY_REASON =
    Map.ofEntries(
        Map.entry("FIELD_INVALID", FieldInvalid::new),
        Map.entry("PAYLOAD_SCHEMA_VIOLATION", PayloadSchemaViolation::new),
        Map.entry("FILTER_INVALID", FilterInvalid::new),
        Map.entry("ORDER_BY_INVALID", OrderByInvalid::new),
        Map.entry("PAGE_TOKEN_INVALID", PageTokenInvalid::new),
        Map.entry("RESUME_TOKEN_INVALID", ResumeTokenInvalid::new),
        Map.entry("FIELD_IMMUTABLE", FieldImmutable::new),
        Map.entry("BATCH_TOO_LARGE", BatchTooLarge::new),
        Map.entry("TOO_LARGE", TooLarge::new),
        Map.entry("UNAUTHENTICATED", Unauthenticated::new),
        Map.entry("SIGN_IN_CODE_INVALID", SignInCodeInvalid::new),
        Map.entry("PERMISSION_DENIED", PermissionDenied::new),
        Map.entry("UNIMPLEMENTED", Unimplemented::new),
        Map.entry("NOT_FOUND", NotFound::new),
        Map.entry("TASK_TYPE_UNKNOWN", TaskTypeUnknown::new),
        Map.entry("ALREADY_EXISTS", AlreadyExists::new),
        Map.entry("REQUEST_ID_REUSED", RequestIdReused::new),
        Map.entry("RUNNER_ID_IN_USE", RunnerIdInUse::new),
        Map.entry("RESOURCE_VERSION_MISMATCH", ResourceVersionMismatch::new),
        Map.entry("STALE_GENERATION", StaleGeneration::new),
        Map.entry("SESSION_SUPERSEDED", SessionSuperseded::new),
        Map.entry("PHASE_CONFLICT", PhaseConflict::new),
        Map.entry("TASK_TERMINAL", TaskTerminal::new),
        Map.entry("LEASE_NOT_HELD", LeaseNotHeld::new),
        Map.entry("LEASE_EXPIRED", LeaseExpired::new),
        Map.entry("TASK_TYPE_DISABLED", TaskTypeDisabled::new),
        Map.entry("DELETION_PROTECTED", DeletionProtected::new),
        Map.entry("GROUP_CLOSED", GroupClosed::new),
        Map.entry("TENANT_SUSPENDED", TenantSuspended::new),
        Map.entry("NOT_EMPTY", NotEmpty::new),
        Map.entry("CHECKPOINT_SEQUENCE_CONFLICT", CheckpointSequenceConflict::new),
        Map.entry("RUNNER_BUSY", RunnerBusy::new),
        Map.entry("PROTOCOL_VIOLATION", ProtocolViolation::new),
        Map.entry("PROTOCOL_VERSION_UNSUPPORTED", ProtocolVersionUnsupported::new),
        Map.entry("RESUME_TOKEN_EXPIRED", ResumeTokenExpired::new),
        Map.entry("LOG_EPOCH_CHANGED", LogEpochChanged::new),
        Map.entry("RATE_LIMITED", RateLimited::new),
        Map.entry("QUEUE_DEPTH_EXCEEDED", QueueDepthExceeded::new),
        Map.entry("SLOT_QUEUE_FULL", SlotQueueFull::new),
        Map.entry("STORAGE_QUOTA_EXCEEDED", StorageQuotaExceeded::new),
        Map.entry("STREAM_LIMIT", StreamLimit::new),
        Map.entry("PLACEMENT_CLASS_LIMIT", PlacementClassLimit::new),
        Map.entry("OVERLOADED", Overloaded::new),
        Map.entry("CONSUMER_STALLED", ConsumerStalled::new),
        Map.entry("WINDOW_EXCEEDED", WindowExceeded::new),
        Map.entry("SERVER_DRAINING", ServerDraining::new),
        Map.entry("STORAGE_UNAVAILABLE", StorageUnavailable::new),
        Map.entry("HEARTBEAT_TIMEOUT", HeartbeatTimeout::new),
        Map.entry("RESULT_CHECK_PENDING", ResultCheckPending::new),
        Map.entry("DIGEST_MISMATCH", DigestMismatch::new),
        Map.entry("DEADLINE_EXCEEDED", DeadlineExceeded::new),
        Map.entry("INTERNAL", Internal::new));

  private static final Map<Status.Code, BiFunction<String, Data, TaskyardException>> BY_CODE =
    Map.ofEntries(
        Map.entry(Status.Code.INVALID_ARGUMENT, InvalidArgument::new),
        Map.entry(Status.Code.UNAUTHENTICATED, Unauthenticated::new),
        Map.entry(Status.Code.PERMISSION_DENIED, PermissionDenied::new),
        Map.entry(Status.Code.UNIMPLEMENTED, Unimplemented::new),
        Map.entry(Status.Code.NOT_FOUND, NotFound::new),
        Map.entry(Status.Code.ALREADY_EXISTS, AlreadyExists::new),
        Map.entry(Status.Code.ABORTED, Aborted::new),
        Map.entry(Status.Code.FAILED_PRECONDITION, FailedPrecondition::new),
        Map.entry(Status.Code.OUT_OF_RANGE, OutOfRange::new),
        Map.entry(Status.Code.RESOURCE_EXHAUSTED, ResourceExhausted::new),
        Map.entry(Status.Code.UNAVAILABLE, Unavailable::new),
        Map.entry(Status.Code.DATA_LOSS, DataLoss::new),
        Map.entry(Status.Code.DEADLINE_EXCEEDED, DeadlineExceeded::new),
        Map.entry(Status.Code.CANCELLED, CallCancelled::new),
        Map.entry(Status.Code.INTERNAL, Internal::new));

  /** The error of a reason, or of a code where the reason is not known to this version. */
  static TaskyardException of(String message, Data data) {
    BiFunction<String, Data, TaskyardException> general = BY_CODE.getOrDefault(data.code(), TaskyardException::new);
    return BY_REASON.getOrDefault(data.reason(), general).apply(message, data);
  }

  /** Whether this version has a class for a reason. */
  static boolean hasReason(String reason) {
    return BY_REASON.containsKey(reason);
  }
}
