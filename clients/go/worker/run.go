package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "taskyard.dev/go/taskyard/v1"
)

// maxOutput is the largest output that a task stores.
const maxOutput = 1 << 20

// Failure is an error that chooses how a run failed; make it with Fail.
type Failure struct {
	// Code is the machine-readable cause in UPPER_SNAKE_CASE.
	Code, Message string
	// Permanent failures are not retried.
	Permanent bool
	// RetryAfter delays the retry.
	RetryAfter time.Duration
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Fail returns a failure that is retried under the task's policy.
func Fail(code, message string) *Failure { return &Failure{Code: code, Message: message} }

// FailPermanently returns a failure that is not retried.
func FailPermanently(code, message string) *Failure {
	return &Failure{Code: code, Message: message, Permanent: true}
}

// run is one held lease and its handler.
type run struct {
	worker     *Worker
	assignment *pb.Assignment
	cancel     context.CancelCauseFunc
	// expires is when the lease ends unless it is renewed, on this machine's monotonic clock.
	expires atomic.Pointer[time.Time]
	lost    atomic.Bool

	mutex       sync.Mutex
	logSequence int64
	checkpoint  int64
}

func (w *Worker) start(background context.Context, assignment *pb.Assignment, sent time.Time, running *sync.WaitGroup) {
	ctx, cancel := context.WithCancelCause(background)
	one := &run{worker: w, assignment: assignment, cancel: cancel, checkpoint: assignment.GetCheckpoint().GetSequence()}
	one.extend(sent, assignment.GetLeaseTtl())
	w.mutex.Lock()
	w.runs[one] = struct{}{}
	w.mutex.Unlock()
	running.Go(func() {
		defer w.remove(one)
		defer cancel(nil)
		one.execute(ctx)
	})
}

func (r *run) extend(sent time.Time, ttl *durationpb.Duration) {
	until := sent.Add(ttl.AsDuration())
	r.expires.Store(&until)
}

// lose ends the run without a report.
func (r *run) lose() {
	r.lost.Store(true)
	r.cancel(ErrLeaseLost)
}

func (r *run) function() string {
	if name := r.assignment.GetSpec().GetExecution().GetFunction().GetFunction(); name != "" {
		return name
	}
	return r.assignment.GetSpec().GetTaskType()
}

func (r *run) execute(ctx context.Context) {
	handler := r.worker.handlers[r.function()]
	if handler == nil {
		r.report(&pb.RunReport{Report: &pb.RunReport_Released{Released: &pb.RunReleased{
			Reason:  pb.ReleaseReason_RELEASE_REASON_UNSUPPORTED,
			Message: fmt.Sprintf("worker %s has no function %q", r.worker.id, r.function())}}})
		return
	}
	started := &pb.RunStarted{CheckpointSequence: r.checkpoint}
	r.report(&pb.RunReport{Report: &pb.RunReport_Started{Started: started}})
	ctx, stop := r.limit(ctx)
	defer stop()
	output, err := r.call(ctx, handler)
	if r.lost.Load() {
		return
	}
	r.mutex.Lock()
	written := r.logSequence
	r.mutex.Unlock()
	outcome := r.outcome(ctx, output, err)
	outcome.LogSequence = &written
	r.report(outcome)
}

// limit ends the context when the time of the attempt or of the task is up.
func (r *run) limit(ctx context.Context) (context.Context, func()) {
	spec := r.assignment.GetSpec()
	limited, cancel := ctx, func() {}
	if limit := spec.GetAttemptTimeout(); limit != nil {
		limited, cancel = context.WithTimeoutCause(ctx, limit.AsDuration(), &timeoutError{"ATTEMPT_TIMEOUT"})
	}
	if limit := r.assignment.GetTotalTimeout(); limit != nil {
		inner := cancel
		var outer func()
		limited, outer = context.WithTimeoutCause(limited, limit.AsDuration(), &timeoutError{"TOTAL_TIMEOUT"})
		cancel = func() { outer(); inner() }
	}
	return limited, cancel
}

type timeoutError struct{ code string }

func (e *timeoutError) Error() string { return ErrTimeout.Error() + " (" + e.code + ")" }
func (e *timeoutError) Unwrap() error { return ErrTimeout }

// call runs the handler; a panic is a failure of the run, not of the worker.
func (r *run) call(ctx context.Context, handler Handler) (output any, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = &Failure{Code: "PANIC", Message: fmt.Sprintf("%v\n%s", caught, debug.Stack())}
		}
	}()
	return handler(ctx, &Task{run: r})
}

// outcome is the report about what a handler returned, in the light of why its context ended.
func (r *run) outcome(ctx context.Context, output any, err error) *pb.RunReport {
	var failure *Failure
	var cancelled *CancelledError
	var timeout *timeoutError
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return r.success(output)
	case errors.As(err, &failure):
	case errors.As(cause, &cancelled):
		return &pb.RunReport{Report: &pb.RunReport_Cancelled{Cancelled: &pb.RunCancelled{}}}
	case errors.Is(cause, ErrPaused):
		return released(pb.ReleaseReason_RELEASE_REASON_PAUSED, "paused")
	case errors.Is(cause, ErrStopping):
		return released(pb.ReleaseReason_RELEASE_REASON_DRAINED, "the worker stops")
	case errors.As(cause, &timeout):
		return &pb.RunReport{Report: &pb.RunReport_TimedOut{TimedOut: &pb.RunTimedOut{Code: timeout.code}}}
	default:
		failure = &Failure{Code: "ERROR", Message: err.Error()}
	}
	return failed(failure)
}

func released(reason pb.ReleaseReason, message string) *pb.RunReport {
	return &pb.RunReport{Report: &pb.RunReport_Released{Released: &pb.RunReleased{Reason: reason, Message: message}}}
}

func failed(failure *Failure) *pb.RunReport {
	class := pb.ErrorClass_ERROR_CLASS_TRANSIENT
	if failure.Permanent {
		class = pb.ErrorClass_ERROR_CLASS_PERMANENT
	}
	made := &pb.RunFailed{Error: &pb.TaskError{ErrorClass: class, Code: failure.Code, Message: clip(failure.Message, 60_000)}}
	if failure.RetryAfter > 0 {
		made.RetryAfter = durationpb.New(failure.RetryAfter)
	}
	return &pb.RunReport{Report: &pb.RunReport_Failed{Failed: made}}
}

func (r *run) success(output any) *pb.RunReport {
	succeeded := &pb.RunSucceeded{}
	if output != nil {
		text, err := json.Marshal(output)
		if err != nil {
			return failed(FailPermanently("INVALID_RESULT", "the result cannot be JSON: "+err.Error()))
		}
		if len(text) > maxOutput {
			return failed(FailPermanently("RESULT_TOO_LARGE",
				fmt.Sprintf("the result has %d bytes, more than %d; store it elsewhere and name it", len(text), maxOutput)))
		}
		succeeded.Result = &pb.TaskResult{
			Output: &pb.Payload{Value: &pb.Payload_Raw{Raw: text}, ContentType: "application/json"}}
	}
	return &pb.RunReport{Report: &pb.RunReport_Succeeded{Succeeded: succeeded}}
}

func (r *run) report(report *pb.RunReport) {
	report.Lease, report.Time = r.assignment.GetLease(), timestamppb.Now()
	r.worker.sender.report(report)
}

// clip cuts a text to at most `size` bytes without cutting a character.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && text[size]&0xC0 == 0x80 {
		size--
	}
	return text[:size]
}
