package taskyard

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// domain marks the details that Taskyard's servers write.
const domain = "taskyard.v1"

// Error is any error that a server sent. Reason is for programs: errors.Is(err, taskyard.NotFound).
type Error struct {
	Code    codes.Code
	Reason  Reason
	Message string
	// Fields names each broken rule of an invalid request.
	Fields []FieldViolation
	// RetryAfter is how long the server asks to wait; zero if it does not ask.
	RetryAfter time.Duration
	// Metadata are the values that belong to the reason, such as current_generation.
	Metadata map[string]string
}

// FieldViolation is one broken rule: the path of the field in the request, what is wrong, and the rule's id.
type FieldViolation struct {
	Field, Description, Rule string
}

// Error returns one sentence with the remedy.
func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, reason) true for the error's own reason.
func (e *Error) Is(target error) bool {
	if reason, ok := target.(Reason); ok {
		return reason == e.Reason
	}
	return target == context.DeadlineExceeded && e.Code == codes.DeadlineExceeded
}

// Retryable reports whether the same request may be sent again, after RetryAfter or a back-off.
func (e *Error) Retryable() bool {
	return e.Code == codes.Unavailable || e.Code == codes.ResourceExhausted && e.RetryAfter > 0
}

// ServerUnreachableError means that nothing answers at the address.
type ServerUnreachableError struct {
	Address, Problem string
}

func (e *ServerUnreachableError) Error() string {
	return fmt.Sprintf("no server answers at %s (%s); start it or correct the address", e.Address, e.Problem)
}

// UnauthenticatedError means that the server demands a key, or rejects the one that was sent.
type UnauthenticatedError struct {
	Message string
	// Sent is the error of the server.
	Sent *Error
}

func (e *UnauthenticatedError) Error() string { return e.Message }

func (e *UnauthenticatedError) Unwrap() error { return e.Sent }

func unauthenticated(used *Context, address string, sent *Error) error {
	made := &UnauthenticatedError{Sent: sent}
	problem, remedy := sent.Metadata["problem"], "set TASKYARD_KEY to a key that is in force"
	if problem == "" {
		problem = sent.Message
	}
	switch {
	case used.Key == "":
		made.Message = fmt.Sprintf("a key is required by the server at %s (from %s); set TASKYARD_KEY", address, used.Source)
		return made
	case used.KeyFile != "":
		remedy = fmt.Sprintf("put a key that is in force into %s", used.KeyFile)
	}
	made.Message = fmt.Sprintf("the key is rejected by the server at %s (from %s): %s; %s", address, used.Source, problem, remedy)
	return made
}

// CertificateUntrustedError means that TLS does not come about: another authority, another name, or no TLS on the other side.
type CertificateUntrustedError struct {
	Address, Problem string
}

func (e *CertificateUntrustedError) Error() string {
	return fmt.Sprintf("the certificate of %s is not accepted (%s); set TASKYARD_TLS_CA to the authority that signed it, "+
		"and use the name that it is for", e.Address, e.Problem)
}

// VersionUnsupportedError means that the server does not serve the contract of this client.
type VersionUnsupportedError struct {
	Address string
}

func (e *VersionUnsupportedError) Error() string {
	return fmt.Sprintf("the server at %s does not serve taskyard.v1: it is of another major version than this client, "+
		"or not Taskyard; use a client of its version, or correct the address", e.Address)
}

// ContextError means that a context file, or the way in which it would be used, is invalid.
type ContextError struct {
	Message string
}

func (e *ContextError) Error() string { return e.Message }

// NoContextError means that no server is configured.
type NoContextError struct{}

func (e *NoContextError) Error() string {
	return "no server is configured: start one here with `make up` or `taskyard up`, " +
		"or set TASKYARD_ADDRESS and TASKYARD_KEY"
}

// ContextExpiredError means that the time that a context file is good for has passed.
type ContextExpiredError struct {
	File, ExpireTime string
}

func (e *ContextExpiredError) Error() string {
	return fmt.Sprintf("%s expired at %s; get a new one", e.File, e.ExpireTime)
}

// PlaintextRefusedError means that a key would leave this machine in plaintext.
type PlaintextRefusedError struct {
	Address string
}

func (e *PlaintextRefusedError) Error() string {
	return e.Address + " is not on this machine and would get the key in plaintext; use TLS: " +
		"https:// before the address, or TASKYARD_TLS_CA"
}

// translate turns an error of gRPC into one of this package. The caller's own cancellation stays what it is.
func translate(ctx context.Context, used *Context, address string, err error) error {
	if err == nil {
		return nil
	}
	if ctx != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	sent, ok := status.FromError(err)
	if !ok {
		return err
	}
	made := FromStatus(sent.Proto())
	if made.Code == codes.Unauthenticated && (made.Reason == "" || made.Reason == Unauthenticated) {
		return unauthenticated(used, address, made)
	}
	if made.Reason != "" {
		return made
	}
	switch {
	case sent.Code() == codes.Unimplemented:
		return &VersionUnsupportedError{Address: address}
	case sent.Code() == codes.Unavailable && strings.Contains(sent.Message(), "handshake failed"):
		return &CertificateUntrustedError{Address: address, Problem: lastCause(sent.Message())}
	case sent.Code() == codes.Unavailable && isConnectionFailure(sent.Message()):
		return &ServerUnreachableError{Address: address, Problem: lastCause(sent.Message())}
	}
	return made
}

// FromStatus turns a status, of a call or of one item of a batch, into an Error.
func FromStatus(sent *statuspb.Status) *Error {
	made := &Error{Code: codes.Code(sent.GetCode()), Message: sent.GetMessage()}
	for _, detail := range sent.GetDetails() {
		message, err := detail.UnmarshalNew()
		if err != nil {
			continue
		}
		switch found := message.(type) {
		case *errdetails.ErrorInfo:
			if found.GetDomain() == domain {
				made.Reason, made.Metadata = Reason(found.GetReason()), found.GetMetadata()
			}
		case *errdetails.BadRequest:
			for _, each := range found.GetFieldViolations() {
				made.Fields = append(made.Fields, FieldViolation{each.GetField(), each.GetDescription(), each.GetReason()})
			}
		case *errdetails.RetryInfo:
			made.RetryAfter = found.GetRetryDelay().AsDuration()
		}
	}
	return made
}

var transportNoise = regexp.MustCompile(`^.*(?:transport: |desc = )`)

func isConnectionFailure(message string) bool {
	return strings.Contains(message, "connection error") || strings.Contains(message, "name resolver error") ||
		strings.Contains(message, "no children to pick from")
}

func lastCause(message string) string {
	return strings.Trim(transportNoise.ReplaceAllString(message, ""), `"`)
}

// transient reports whether a stream or a wait may go on after this error.
func transient(err error) bool {
	var sent *Error
	if errors.As(err, &sent) {
		if sent.Retryable() || sent.Reason == ConsumerStalled {
			return true
		}
		// Errors that gRPC itself makes for a broken connection carry no reason; our servers always set one.
		broken := sent.Code == codes.Internal || sent.Code == codes.Unknown || sent.Code == codes.Canceled
		return sent.Reason == "" && broken
	}
	var unreachable *ServerUnreachableError
	return errors.As(err, &unreachable)
}
