// Package worker runs functions of a Go program as tasks of Taskyard.
//
// A Worker claims tasks whose function it has a handler for, renews their leases while the handlers run, and reports what
// they return. A handler learns through its context that it has to stop; context.Cause returns why.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	taskyard "taskyard.dev/go"
	pb "taskyard.dev/go/taskyard/v1"
)

// Handler executes one task. What it returns is the task's output, as JSON; an error fails the run (see Fail).
type Handler func(ctx context.Context, task *Task) (any, error)

// Causes of the end of a handler's context.
var (
	// ErrLeaseLost means that another run of the task has begun or may begin: stop at once, nothing is reported.
	ErrLeaseLost = errors.New("the lease is lost; stop the work")
	// ErrStopping means that the worker stops: the task is released and runs again elsewhere.
	ErrStopping = errors.New("the worker stops")
	// ErrPaused means that the task was paused: checkpoint if possible and stop.
	ErrPaused = errors.New("the task is paused")
	// ErrTimeout means that the attempt, or the task as a whole, took longer than it may.
	ErrTimeout = errors.New("the time of the task is up")
)

// CancelledError is the cause when a user cancelled the task.
type CancelledError struct {
	Reason string
}

func (e *CancelledError) Error() string { return "the task was cancelled: " + e.Reason }

// Option configures a Worker.
type Option func(*Worker)

// WithID sets the worker's id, which has to be unique; by default it is made of host and process.
func WithID(id string) Option { return func(w *Worker) { w.id = id } }

// WithConcurrency sets how many handlers run at a time; 1 by default.
func WithConcurrency(count int) Option { return func(w *Worker) { w.concurrency = max(1, count) } }

// WithLease sets how long a claim is held without renewal, 5 s to 1 h; 30 s by default. It is renewed every third of it.
func WithLease(duration time.Duration) Option { return func(w *Worker) { w.lease = duration } }

// WithStopGrace sets how long handlers may go on after Run's context has ended; 30 s by default.
func WithStopGrace(duration time.Duration) Option { return func(w *Worker) { w.stopGrace = duration } }

// WithLabels sets labels for placement, where the key does not set them.
func WithLabels(labels map[string]string) Option { return func(w *Worker) { w.labels = labels } }

// WithLogger sets where the worker logs what concerns no single task; slog.Default() otherwise.
func WithLogger(logger *slog.Logger) Option { return func(w *Worker) { w.logger = logger } }

// claimWait is the long poll of one claim.
const claimWait = 20 * time.Second

// Worker runs handlers. Register them with Handle, then call Run.
type Worker struct {
	client      *taskyard.Client
	stub        pb.WorkServiceClient
	id          string
	concurrency int
	lease       time.Duration
	stopGrace   time.Duration
	labels      map[string]string
	logger      *slog.Logger
	handlers    map[string]Handler

	sender *sender
	mutex  sync.Mutex
	runs   map[*run]struct{}
	// freed has a token when a run has ended.
	freed chan struct{}
}

// New returns a worker that uses the client's scheduler and key, which is a runner's. It fails if no scheduler is configured.
func New(client *taskyard.Client, options ...Option) (*Worker, error) {
	connection, err := client.SchedulerConn()
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	worker := &Worker{
		client: client, stub: pb.NewWorkServiceClient(connection), id: fmt.Sprintf("%s-%d", host, os.Getpid()), concurrency: 1,
		lease: 30 * time.Second, stopGrace: 30 * time.Second, logger: slog.Default(), handlers: map[string]Handler{},
		runs: map[*run]struct{}{}, freed: make(chan struct{}, 1),
	}
	for _, option := range options {
		option(worker)
	}
	worker.sender = newSender(worker)
	return worker, nil
}

// Handle registers the handler of a function, which is the task's type if the task names no function. Call it before Run.
func (w *Worker) Handle(function string, handler Handler) { w.handlers[function] = handler }

// Run claims and executes tasks until the context ends, then stops gracefully: it claims no more, lets handlers finish for the
// stop grace, ends the context of those left, releases their tasks, and returns nil when all is reported. It returns an error
// if claims are refused for good, such as by a wrong key.
func (w *Worker) Run(ctx context.Context) error {
	if len(w.handlers) == 0 {
		return errors.New("no function is registered; call Handle before Run")
	}
	// What is under way outlives the stop.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var helpers sync.WaitGroup
	helpers.Go(func() { w.renewLoop(background) })
	helpers.Go(func() { w.sender.loop(background) })
	var running sync.WaitGroup
	err := w.claimLoop(ctx, background, &running)
	w.finish(&running)
	w.sender.drain(background)
	end()
	helpers.Wait()
	return err
}

// finish waits for the handlers, and ends the contexts of those that outlive the grace.
func (w *Worker) finish(running *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-time.After(w.stopGrace):
	}
	for _, each := range w.held() {
		each.cancel(ErrStopping)
	}
	<-done
}

func (w *Worker) claimLoop(ctx, background context.Context, running *sync.WaitGroup) error {
	requestID := taskyard.NewRequestID()
	delay := 100 * time.Millisecond
	for {
		free := w.concurrency - len(w.held())
		if free == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-w.freed:
				continue
			}
		}
		// A claim in flight is not cancelled by the stop: its tasks would wait for the end of their leases.
		sent := time.Now()
		response, err := w.claim(ctx, background, requestID, free)
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			if err = w.client.TranslateScheduler(context.Background(), err); permanent(err) {
				return err
			}
			w.logger.Warn("claim failed", "worker", w.id, "error", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(delay):
			}
			// The same request id: a claim whose answer was lost is answered again.
			delay = min(2*delay, 5*time.Second)
			continue
		}
		requestID, delay = taskyard.NewRequestID(), 100*time.Millisecond
		for _, assignment := range response.GetAssignments() {
			w.start(background, assignment, sent, running)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// claim makes one call. When the worker stops during the long poll, it is given a moment to answer and then left; a claim
// that was answered after that expires with its lease.
func (w *Worker) claim(ctx, background context.Context, requestID string, free int) (*pb.ClaimTasksResponse, error) {
	call, cancel := context.WithCancel(background)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(100*time.Millisecond, cancel) })()
	functions := make([]string, 0, len(w.handlers))
	for name := range w.handlers {
		functions = append(functions, name)
	}
	slices.Sort(functions)
	return w.stub.ClaimTasks(call, &pb.ClaimTasksRequest{
		WorkerId: w.id, RequestId: requestID, MaxTasks: int32(min(free, 1000)),
		LeaseDuration: durationpb.New(w.lease), Wait: durationpb.New(claimWait),
		Registration: &pb.RunnerRegistration{
			TaskTypes: []string{"*"}, ExecutionKinds: []pb.ExecutionKind{pb.ExecutionKind_EXECUTION_KIND_FUNCTION},
			Capacity: int32(w.concurrency), Functions: functions, Labels: w.labels,
		},
	})
}

func permanent(err error) bool {
	var sent *taskyard.Error
	var certificate *taskyard.CertificateUntrustedError
	var version *taskyard.VersionUnsupportedError
	refused := errors.As(err, &sent) && (sent.Reason == taskyard.Unauthenticated || sent.Reason == taskyard.PermissionDenied ||
		sent.Reason == taskyard.FieldInvalid)
	return refused || errors.As(err, &certificate) || errors.As(err, &version)
}

func (w *Worker) held() []*run {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	held := make([]*run, 0, len(w.runs))
	for each := range w.runs {
		held = append(held, each)
	}
	return held
}

func (w *Worker) remove(ended *run) {
	w.mutex.Lock()
	delete(w.runs, ended)
	w.mutex.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}
