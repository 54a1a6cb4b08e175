package taskyard

// Reason is the machine-readable cause of an Error, and an error itself for errors.Is: the name of a taskyard.v1.ErrorReason
// without its prefix.
type Reason string

// Error returns the reason.
func (r Reason) Error() string { return string(r) }

// The reasons of taskyard.v1.ErrorReason.
const (
	FieldInvalid               Reason = "FIELD_INVALID"
	PayloadSchemaViolation     Reason = "PAYLOAD_SCHEMA_VIOLATION"
	FilterInvalid              Reason = "FILTER_INVALID"
	OrderByInvalid             Reason = "ORDER_BY_INVALID"
	PageTokenInvalid           Reason = "PAGE_TOKEN_INVALID"
	ResumeTokenInvalid         Reason = "RESUME_TOKEN_INVALID"
	BatchTooLarge              Reason = "BATCH_TOO_LARGE"
	FieldImmutable             Reason = "FIELD_IMMUTABLE"
	TooLarge                   Reason = "TOO_LARGE"
	Unauthenticated            Reason = "UNAUTHENTICATED"
	SignInCodeInvalid          Reason = "SIGN_IN_CODE_INVALID"
	PermissionDenied           Reason = "PERMISSION_DENIED"
	Unimplemented              Reason = "UNIMPLEMENTED"
	DeadlineExceeded           Reason = "DEADLINE_EXCEEDED"
	Internal                   Reason = "INTERNAL"
	NotFound                   Reason = "NOT_FOUND"
	TaskTypeUnknown            Reason = "TASK_TYPE_UNKNOWN"
	AlreadyExists              Reason = "ALREADY_EXISTS"
	RequestIDReused            Reason = "REQUEST_ID_REUSED"
	ResourceVersionMismatch    Reason = "RESOURCE_VERSION_MISMATCH"
	StaleGeneration            Reason = "STALE_GENERATION"
	SessionSuperseded          Reason = "SESSION_SUPERSEDED"
	PhaseConflict              Reason = "PHASE_CONFLICT"
	TaskTerminal               Reason = "TASK_TERMINAL"
	LeaseNotHeld               Reason = "LEASE_NOT_HELD"
	TaskTypeDisabled           Reason = "TASK_TYPE_DISABLED"
	DeletionProtected          Reason = "DELETION_PROTECTED"
	GroupClosed                Reason = "GROUP_CLOSED"
	TenantSuspended            Reason = "TENANT_SUSPENDED"
	NotEmpty                   Reason = "NOT_EMPTY"
	CheckpointSequenceConflict Reason = "CHECKPOINT_SEQUENCE_CONFLICT"
	RunnerBusy                 Reason = "RUNNER_BUSY"
	ProtocolViolation          Reason = "PROTOCOL_VIOLATION"
	ProtocolVersionUnsupported Reason = "PROTOCOL_VERSION_UNSUPPORTED"
	LeaseExpired               Reason = "LEASE_EXPIRED"
	RunnerIDInUse              Reason = "RUNNER_ID_IN_USE"
	ResumeTokenExpired         Reason = "RESUME_TOKEN_EXPIRED"
	LogEpochChanged            Reason = "LOG_EPOCH_CHANGED"
	RateLimited                Reason = "RATE_LIMITED"
	QueueDepthExceeded         Reason = "QUEUE_DEPTH_EXCEEDED"
	ConsumerStalled            Reason = "CONSUMER_STALLED"
	WindowExceeded             Reason = "WINDOW_EXCEEDED"
	SlotQueueFull              Reason = "SLOT_QUEUE_FULL"
	StorageQuotaExceeded       Reason = "STORAGE_QUOTA_EXCEEDED"
	StreamLimit                Reason = "STREAM_LIMIT"
	PlacementClassLimit        Reason = "PLACEMENT_CLASS_LIMIT"
	Overloaded                 Reason = "OVERLOADED"
	ServerDraining             Reason = "SERVER_DRAINING"
	StorageUnavailable         Reason = "STORAGE_UNAVAILABLE"
	HeartbeatTimeout           Reason = "HEARTBEAT_TIMEOUT"
	ResultCheckPending         Reason = "RESULT_CHECK_PENDING"
	DigestMismatch             Reason = "DIGEST_MISMATCH"
)
