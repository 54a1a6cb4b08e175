package taskyard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"google.golang.org/grpc"

	pb "taskyard.dev/go/taskyard/v1"
)

const (
	// silence is the longest that a watch may be silent; the server sends a bookmark every 15 s.
	silence = 60 * time.Second
	// maxTracked is how many tasks' newest versions are kept to detect repeats.
	maxTracked = 100_000
)

var errSilence = fmt.Errorf("the server sent nothing for %v", silence)

// Event is one change of a task; a watch resumed from ResumeToken continues after this event.
type Event struct {
	*pb.TaskEvent
	ResumeToken string
}

// Task is the task as it is at delivery, possibly newer than the change.
func (e *Event) Task() *Task { return &Task{e.GetTask()} }

// Phase is the name of the phase right after this change.
func (e *Event) Phase() string {
	phase := e.GetStatus().GetPhase()
	if phase == pb.TaskPhase_TASK_PHASE_UNSPECIFIED {
		phase = e.GetTask().GetStatus().GetPhase()
	}
	return PhaseName(phase)
}

// WatchOptions choose what a watch shows; the zero value shows every change of the tenant from now on.
type WatchOptions struct {
	// Tasks limits it to these ids or names.
	Tasks  []string
	Filter string
	// ResumeToken continues after an event of an earlier watch.
	ResumeToken string
	// Snapshot begins with the current tasks.
	Snapshot bool
	// UntilTerminal ends it once all Tasks have ended.
	UntilTerminal bool
	View          pb.TaskView
}

// Watch yields every change once and in order, over broken connections and restarts of the server. An error ends it:
// errors.Is(err, ResumeTokenExpired) if the history after the token is gone.
func (c *Client) Watch(ctx context.Context, options WatchOptions) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		request, err := c.watchRequest(ctx, options)
		if err != nil {
			yield(nil, err)
			return
		}
		token, seen := options.ResumeToken, versions{}
		source := resumed[pb.WatchTasksResponse]{client: c, token: token, endless: !options.UntilTerminal, silence: silence,
			open: func(ctx context.Context, token string) (grpc.ServerStreamingClient[pb.WatchTasksResponse], error) {
				request.ResumeToken, request.Snapshot = token, options.Snapshot && token == ""
				return c.tasks().WatchTasks(ctx, request)
			}}
		err = source.each(ctx, func(response *pb.WatchTasksResponse) (bool, error) {
			for position, event := range response.GetEvents() {
				// Until the last event of a response is processed, only the token before it is safe.
				if position == len(response.GetEvents())-1 && response.GetResumeToken() != "" {
					token = response.GetResumeToken()
				}
				if seen.isNew(event) && !yield(&Event{event, token}, nil) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

func (c *Client) watchRequest(ctx context.Context, options WatchOptions) (*pb.WatchTasksRequest, error) {
	parent, err := c.parent(ctx)
	request := &pb.WatchTasksRequest{Parent: parent, Filter: options.Filter, UntilTerminal: options.UntilTerminal, View: options.View}
	for _, each := range options.Tasks {
		request.Names = append(request.Names, taskName(parent, each))
	}
	return request, err
}

// LogOptions choose what of a log is read; the zero value is all that is stored now.
type LogOptions struct {
	// Follow goes on until the task has ended.
	Follow bool
	// Tail begins with the last lines.
	Tail int
	// Generation limits it to one run.
	Generation int64
	MinLevel   pb.LogLevel
}

// Logs yields the output of a task, each line once, over broken connections and restarts of the server.
func (c *Client) Logs(ctx context.Context, task string, options LogOptions) iter.Seq2[*pb.LogEntry, error] {
	return func(yield func(*pb.LogEntry, error) bool) {
		name, err := c.name(ctx, task)
		if err != nil {
			yield(nil, err)
			return
		}
		request := &pb.TailTaskLogsRequest{Parent: name, Follow: options.Follow, TailLines: int32(options.Tail),
			Generation: options.Generation, MinLevel: options.MinLevel}
		last := map[int64]int64{}
		source := resumed[pb.TailTaskLogsResponse]{client: c,
			open: func(ctx context.Context, token string) (grpc.ServerStreamingClient[pb.TailTaskLogsResponse], error) {
				request.ResumeToken = token
				return c.tasks().TailTaskLogs(ctx, request)
			}}
		err = source.each(ctx, func(response *pb.TailTaskLogsResponse) (bool, error) {
			if response.GetDroppedCount() > 0 && !yield(dropped(response), nil) {
				return false, nil
			}
			for _, entry := range response.GetEntries() {
				if entry.GetSequence() <= last[entry.GetGeneration()] {
					continue
				}
				last[entry.GetGeneration()] = entry.GetSequence()
				if !yield(entry, nil) {
					return false, nil
				}
			}
			return !response.GetComplete(), nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

func dropped(response *pb.TailTaskLogsResponse) *pb.LogEntry {
	entry := &pb.LogEntry{Level: pb.LogLevel_LOG_LEVEL_WARNING, Source: pb.LogSource_LOG_SOURCE_RUNNER,
		Message: fmt.Sprintf("%d lines are missing here; they were written too fast to be sent", response.GetDroppedCount())}
	if len(response.GetEntries()) > 0 {
		entry.Generation = response.GetEntries()[0].GetGeneration()
	}
	return entry
}

// resumed is a stream that is opened again where it broke.
type resumed[R any] struct {
	client  *Client
	token   string
	endless bool
	// silence ends a connection without responses; zero waits for keepalive alone.
	silence time.Duration
	open    func(context.Context, string) (grpc.ServerStreamingClient[R], error)
}

type resumable interface {
	GetResumeToken() string
	GetClosing() bool
}

// each calls `take` with every response until it returns false or the stream ends for good. The first connection is not
// repeated: an address that is wrong shows at once.
func (s *resumed[R]) each(ctx context.Context, take func(*R) (bool, error)) error {
	var timer *retryTimer
	for {
		more, err := s.once(ctx, take, func() {
			if timer == nil {
				timer = newRetryTimer(s.client.settings.outageTimeout)
			}
			timer.refresh()
		})
		if err == nil {
			if !more {
				return nil
			}
			// Announced by the server, or an endless stream that a draining server ended.
			err = &Error{Code: 14, Reason: ServerDraining, Message: "the server ended the stream; it is opened again"}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if timer == nil {
			return err
		}
		if err := timer.wait(ctx, err); err != nil {
			return err
		}
	}
}

// once reads one connection; it returns true if the stream goes on elsewhere.
func (s *resumed[R]) once(ctx context.Context, take func(*R) (bool, error), received func()) (bool, error) {
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := s.open(call, s.token)
	if err != nil {
		return false, s.client.Translate(ctx, err)
	}
	goesOn := s.endless
	for {
		response, err := s.receive(stream, cancel)
		if errors.Is(err, io.EOF) {
			return goesOn, nil
		}
		if err != nil {
			if context.Cause(call) == errSilence {
				return false, &ServerUnreachableError{Address: s.client.Context.Address, Problem: errSilence.Error()}
			}
			return false, s.client.Translate(ctx, err)
		}
		received()
		if more, err := take(response); err != nil || !more {
			return false, err
		}
		found := any(response).(resumable)
		if found.GetResumeToken() != "" {
			s.token = found.GetResumeToken()
		}
		goesOn = s.endless || found.GetClosing()
	}
}

func (s *resumed[R]) receive(stream grpc.ServerStreamingClient[R], cancel context.CancelCauseFunc) (*R, error) {
	if s.silence > 0 {
		defer time.AfterFunc(s.silence, func() { cancel(errSilence) }).Stop()
	}
	return stream.Recv()
}

// versions is the newest version seen of each task, to drop repeated events.
type versions map[string]int64

func (v versions) isNew(event *pb.TaskEvent) bool {
	// A task that was deleted and created again has the old name and a new uid.
	key := event.GetTask().GetMetadata().GetUid()
	if key == "" {
		key = event.GetTask().GetName()
	}
	version := event.GetResourceVersion()
	if event.GetType() == pb.TaskEventType_TASK_EVENT_TYPE_DELETED {
		version = math.MaxInt64
	}
	last, known := v[key]
	if known && version <= last {
		return false
	}
	if len(v) >= maxTracked {
		for any := range v {
			delete(v, any)
			break
		}
	}
	v[key] = version
	return true
}
