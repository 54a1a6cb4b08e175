/**
 * Every error of the client, as one tree; a class per reason of taskyard.v1.ErrorReason.
 *
 *     ContextError                       a context file is damaged, foreign or writable by others
 *     ├── NoContext                      no server is configured
 *     ├── ContextExpired                 the expire_time of a context file has passed
 *     └── PlaintextRefused               a key would leave this machine in plaintext
 *     WaitTimeout                        the time that the caller gave to a wait is up
 *     TaskyardError                      any error of a call
 *     ├── InvalidArgument                correct the request; `violations` names each field
 *     ├── Unauthenticated                no key, or an invalid one
 *     ├── PermissionDenied
 *     ├── Unimplemented                  not in this version of the server
 *     │   └── VersionUnsupported              the server does not serve taskyard.v1
 *     ├── NotFound, AlreadyExists
 *     ├── Aborted                        re-read, then decide
 *     ├── FailedPrecondition             the state has to change first
 *     ├── OutOfRange                     list again, then watch from there
 *     ├── ResourceExhausted              retry after `retryAfterMs`, if there is one
 *     ├── Unavailable                    retry with back-off
 *     │   ├── ServerUnreachable              nothing answers at the address
 *     │   └── CertificateUntrusted           the server's certificate is not of a trusted CA
 *     ├── DataLoss
 *     ├── DeadlineExceeded               the outcome of a write is unknown
 *     ├── CallCancelled                  the AbortSignal of the call was aborted, or the client closed
 *     └── Internal                       a bug; search the server's log for metadata.correlation_id
 */

/** The canonical gRPC status codes. */
export enum Code {
  OK = 0,
  CANCELLED,
  UNKNOWN,
  INVALID_ARGUMENT,
  DEADLINE_EXCEEDED,
  NOT_FOUND,
  ALREADY_EXISTS,
  PERMISSION_DENIED,
  RESOURCE_EXHAUSTED,
  FAILED_PRECONDITION,
  ABORTED,
  OUT_OF_RANGE,
  UNIMPLEMENTED,
  INTERNAL,
  UNAVAILABLE,
  DATA_LOSS,
  UNAUTHENTICATED,
}

/** One broken rule: the path of the field in the request, what is wrong, and the rule's id. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
  readonly rule: string;
}

/** What an error carries besides its message. */
export interface ErrorData {
  readonly code: Code;
  /** A name of taskyard.v1.ErrorReason without its prefix; empty if gRPC itself raised the error. */
  readonly reason?: string;
  /** The variable parts of the message, by name. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly FieldViolation[];
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The servers and keys are not configured as they have to be; the message names the remedy. */
export class ContextError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}
export class NoContext extends ContextError {}
export class ContextExpired extends ContextError {}
export class PlaintextRefused extends ContextError {}

/** A task has not ended within the time that the caller gave. */
export class WaitTimeout extends Error {
  override name = "WaitTimeout";
}

/** Any error of a call; `code` and `reason` are for programs, `message` is for people. */
export class TaskyardError extends Error {
  readonly code: Code;
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[];
  readonly retryAfterMs: number | undefined;

  constructor(message: string, data: ErrorData) {
    super(message, { cause: data.cause });
    this.name = new.target.name;
    this.code = data.code;
    this.reason = data.reason ?? "";
    this.metadata = data.metadata ?? {};
    this.violations = data.violations ?? [];
    this.retryAfterMs = data.retryAfterMs;
  }

  /** Whether the same request may be sent again, after `retryAfterMs` or a back-off. */
  get retryable(): boolean {
    if (this.code === Code.RESOURCE_EXHAUSTED) return this.retryAfterMs !== undefined;
    return this.code === Code.UNAVAILABLE;
  }
}

export class InvalidArgument extends TaskyardError {}
export class FieldInvalid extends InvalidArgument {}
export class PayloadSchemaViolation extends InvalidArgument {}
export class FilterInvalid extends InvalidArgument {}
export class OrderByInvalid extends InvalidArgument {}
export class PageTokenInvalid extends InvalidArgument {}
export class ResumeTokenInvalid extends InvalidArgument {}
export class BatchTooLarge extends InvalidArgument {}
export class FieldImmutable extends InvalidArgument {}
export class TooLarge extends InvalidArgument {}
export class Unauthenticated extends TaskyardError {}
export class SignInCodeInvalid extends Unauthenticated {}
export class PermissionDenied extends TaskyardError {}
export class Unimplemented extends TaskyardError {}
export class VersionUnsupported extends Unimplemented {}
export class NotFound extends TaskyardError {}
export class TaskTypeUnknown extends NotFound {}
export class AlreadyExists extends TaskyardError {}
export class RequestIdReused extends AlreadyExists {}
export class RunnerIdInUse extends AlreadyExists {}
export class Aborted extends TaskyardError {}
export class ResourceVersionUnsupported extends Aborted {}
export class StaleGeneration extends Aborted {}
export class SessionSuperseded extends Aborted {}
export class FailedPrecondition extends TaskyardError {}
export class PhaseConflict extends FailedPrecondition {}
export class TaskTerminal extends FailedPrecondition {}
export class LeaseNotHeld extends FailedPrecondition {}
export class LeaseExpired extends FailedPrecondition {}
export class TaskTypeDisabled extends FailedPrecondition {}
export class DeletionProtected extends FailedPrecondition {}
export class GroupClosed extends FailedPrecondition {}
export class TenantSuspended extends FailedPrecondition {}
export class NotEmpty extends FailedPrecondition {}
export class CheckpointSequenceConflict extends FailedPrecondition {}
export class RunnerBusy extends FailedPrecondition {}
export class ProtocolViolation extends FailedPrecondition {}
export class ProtocolVersionUnsupported extends FailedPrecondition {}
export class OutOfRange extends TaskyardError {}
export class ResumeTokenExpired extends OutOfRange {}
export class LogEpochChanged extends OutOfRange {}
export class ResourceExhausted extends TaskyardError {}
export class RateLimited extends ResourceExhausted {}
export class QueueDepthExceeded extends ResourceExhausted {}
export class SlotQueueFull extends ResourceExhausted {}
export class StorageQuotaExceeded extends ResourceExhausted {}
export class StreamLimit extends ResourceExhausted {}
export class PlacementClassLimit extends ResourceExhausted {}
export class Overloaded extends ResourceExhausted {}
export class ConsumerStalled extends ResourceExhausted {}
export class WindowExceeded extends ResourceExhausted {}
export class Unavailable extends TaskyardError {}
export class ServerUnreachable extends Unavailable {}
export class CertificateUntrusted extends Unavailable {
  override get retryable(): boolean {
    return false;
  }
}
export class ServerDraining extends Unavailable {}
export class StorageUnavailable extends Unavailable {}
export class HeartbeatTimeout extends Unavailable {}
export class ResultCheckPending extends Unavailable {}
export class DataLoss extends TaskyardError {}
export class DigestMismatch extends DataLoss {}
export class DeadlineExceeded extends TaskyardError {}
export class CallCancelled extends TaskyardError {}
export class Internal extends TaskyardError {}

export type ErrorClass = new (message: string, data: ErrorData) => TaskyardError;

/** The class of each reason. */
export const BY_REASON: Readonly<Record<string, ErrorClass>> = {
  FIELD_INVALID: FieldInvalid,
  PAYLOAD_SCHEMA_VIOLATION: PayloadSchemaViolation,
  FILTER_INVALID: FilterInvalid,
  ORDER_BY_INVALID: OrderByInvalid,
  PAGE_TOKEN_INVALID: PageTokenInvalid,
  RESUME_TOKEN_INVALID: ResumeTokenInvalid,
  BATCH_TOO_LARGE: BatchTooLarge,
  FIELD_IMMUTABLE: FieldImmutable,
  TOO_LARGE: TooLarge,
  UNAUTHENTICATED: Unauthenticated,
  SIGN_IN_CODE_INVALID: SignInCodeInvalid,
  PERMISSION_DENIED: PermissionDenied,
  UNIMPLEMENTED: Unimplemented,
  DEADLINE_EXCEEDED: DeadlineExceeded,
  INTERNAL: Internal,
  NOT_FOUND: NotFound,
  TASK_TYPE_UNKNOWN: TaskTypeUnknown,
  ALREADY_EXISTS: AlreadyExists,
  REQUEST_ID_REUSED: RequestIdReused,
  RUNNER_ID_IN_USE: RunnerIdInUse,
  RESOURCE_VERSION_MISMATCH: ResourceVersionUnsupported,
  STALE_GENERATION: StaleGeneration,
  SESSION_SUPERSEDED: SessionSuperseded,
  PHASE_CONFLICT: PhaseConflict,
  TASK_TERMINAL: TaskTerminal,
  LEASE_NOT_HELD: LeaseNotHeld,
  LEASE_EXPIRED: LeaseExpired,
  TASK_TYPE_DISABLED: TaskTypeDisabled,
  DELETION_PROTECTED: DeletionProtected,
  GROUP_CLOSED: GroupClosed,
  TENANT_SUSPENDED: TenantSuspended,
  NOT_EMPTY: NotEmpty,
  CHECKPOINT_SEQUENCE_CONFLICT: CheckpointSequenceConflict,
  RUNNER_BUSY: RunnerBusy,
  PROTOCOL_VIOLATION: ProtocolViolation,
  PROTOCOL_VERSION_UNSUPPORTED: ProtocolVersionUnsupported,
  RESUME_TOKEN_EXPIRED: ResumeTokenExpired,
  LOG_EPOCH_CHANGED: LogEpochChanged,
  RATE_LIMITED: RateLimited,
  QUEUE_DEPTH_EXCEEDED: QueueDepthExceeded,
  SLOT_QUEUE_FULL: SlotQueueFull,
  STORAGE_QUOTA_EXCEEDED: StorageQuotaExceeded,
  STREAM_LIMIT: StreamLimit,
  PLACEMENT_CLASS_LIMIT: PlacementClassLimit,
  OVERLOADED: Overloaded,
  CONSUMER_STALLED: ConsumerStalled,
  WINDOW_EXCEEDED: WindowExceeded,
  SERVER_DRAINING: ServerDraining,
  STORAGE_UNAVAILABLE: StorageUnavailable,
  HEARTBEAT_TIMEOUT: HeartbeatTimeout,
  RESULT_CHECK_PENDING: ResultCheckPending,
  DIGEST_MISMATCH: DigestMismatch,
};

/** The most general class of each code; TaskyardError itself for codes that are not here. */
export const BY_CODE: Readonly<Partial<Record<Code, ErrorClass>>> = {
  [Code.CANCELLED]: CallCancelled,
  [Code.INVALID_ARGUMENT]: InvalidArgument,
  [Code.DEADLINE_EXCEEDED]: DeadlineExceeded,
  [Code.NOT_FOUND]: NotFound,
  [Code.ALREADY_EXISTS]: AlreadyExists,
  [Code.PERMISSION_DENIED]: PermissionDenied,
  [Code.RESOURCE_EXHAUSTED]: ResourceExhausted,
  [Code.FAILED_PRECONDITION]: FailedPrecondition,
  [Code.ABORTED]: Aborted,
  [Code.OUT_OF_RANGE]: OutOfRange,
  [Code.UNIMPLEMENTED]: Unimplemented,
  [Code.INTERNAL]: Internal,
  [Code.UNAVAILABLE]: Unavailable,
  [Code.DATA_LOSS]: DataLoss,
  [Code.UNAUTHENTICATED]: Unauthenticated,
};
