package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	taskyard "taskyard.dev/go"
	pb "taskyard.dev/go/taskyard/v1"
)

// stream is an opened sequence, read one item at a time.
type stream struct {
	next func() (object, error, bool)
	stop func()
}

type driver struct {
	mutex   sync.Mutex
	client  *taskyard.Client
	clients []*taskyard.Client
	streams map[string]*stream
	workers map[string]*runningWorker
}

func (d *driver) operations() map[string]operation {
	return map[string]operation{
		"hello":           d.hello,
		"connect":         d.connect,
		"create":          d.create,
		"get":             d.get,
		"wait":            d.wait,
		"cancel":          d.cancel,
		"list":            d.list,
		"watch":           d.watch,
		"logs":            d.logs,
		"next":            d.nextItems,
		"close":           d.closeStream,
		"schedule_create": d.scheduleCreate,
		"schedule_get":    d.scheduleGet,
		"schedule_list":   d.scheduleList,
		"schedule_pause":  d.schedulePause,
		"schedule_resume": d.scheduleResume,
		"schedule_run":    d.scheduleRun,
		"schedule_delete": d.scheduleDelete,
		"worker_start":    d.workerStart,
		"worker_events":   d.workerEvents,
		"worker_release":  d.workerRelease,
		"worker_stop":     d.workerStop,
	}
}

func (d *driver) close() {
	for _, each := range d.streams {
		each.stop()
	}
	for _, each := range d.workers {
		each.stop()
	}
	for _, each := range d.clients {
		each.Close()
	}
}

func (d *driver) hello(context.Context, *request) (object, error) {
	return object{"language": "go", "features": []string{"worker"}}, nil
}

func (d *driver) connect(_ context.Context, r *request) (object, error) {
	// An option without a value leaves the choice to the environment and the files.
	options := []taskyard.Option{taskyard.WithAddress(r.Address), taskyard.WithKey(r.Key), taskyard.WithTenant(r.Tenant),
		taskyard.WithScheduler(r.Scheduler), taskyard.WithTLSCA(r.TLSCA)}
	if r.OutageTimeout > 0 {
		options = append(options, taskyard.WithOutageTimeout(seconds(r.OutageTimeout)))
	}
	client, err := taskyard.New(options...)
	if err != nil {
		return nil, err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	// The workers and streams of an earlier client go on.
	d.clients = append(d.clients, client)
	d.client = client
	return object{"address": client.Context.Address, "tenant": client.Context.Tenant}, nil
}

func (d *driver) create(ctx context.Context, r *request) (object, error) {
	execution, options := newTask(r)
	if r.Traceparent != "" {
		ctx = taskyard.ContextWithTraceparent(ctx, r.Traceparent)
	}
	created, err := d.client.Create(ctx, execution, options...)
	if err != nil {
		return nil, err
	}
	outcome := strings.TrimPrefix(created.Outcome.String(), "CREATE_OUTCOME_")
	return object{"name": created.GetName(), "outcome": outcome, "phase": created.Phase()}, nil
}

func newTask(r *request) (taskyard.Execution, []taskyard.TaskOption) {
	execution := taskyard.External()
	if r.Function != "" {
		execution = taskyard.Function(r.Function)
	} else if len(r.Command) > 0 {
		execution = taskyard.Command(r.Command[0], r.Command[1:]...)
	}
	options := []taskyard.TaskOption{taskyard.ID(r.TaskID), taskyard.Labels(r.Labels)}
	if r.RequestID != "" {
		options = append(options, taskyard.RequestID(r.RequestID))
	}
	if r.PayloadText != "" {
		options = append(options, taskyard.Payload(json.RawMessage(r.PayloadText)))
	} else if len(r.Payload) > 0 {
		options = append(options, taskyard.Payload(r.Payload))
	}
	if r.Retries != nil {
		short := durationpb.New(10 * time.Millisecond)
		options = append(options, taskyard.Retry(&pb.RetryPolicy{
			MaxRetries: r.Retries, Backoff: &pb.BackoffPolicy{Initial: short, Max: short}}))
	}
	for _, each := range r.After {
		when := pb.DependencyCondition_value["DEPENDENCY_CONDITION_"+strings.ToUpper(each.When)]
		options = append(options, taskyard.Dependency(&pb.Dependency{
			Task: each.Task, Alias: each.Alias, When: pb.DependencyCondition(when)}))
	}
	return execution, options
}

func (d *driver) get(ctx context.Context, r *request) (object, error) {
	return showTask(d.client.Get(ctx, r.Task))
}

func (d *driver) wait(ctx context.Context, r *request) (object, error) {
	if r.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, seconds(r.Timeout))
		defer cancel()
		ctx = limited
	}
	return showTask(d.client.Wait(ctx, r.Task))
}

func (d *driver) cancel(ctx context.Context, r *request) (object, error) {
	return showTask(d.client.Cancel(ctx, r.Task, r.Reason))
}

func showTask(task *taskyard.Task, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	shown := object{"name": task.GetName(), "phase": task.Phase(), "attempt": task.GetStatus().GetAttempt(), "exit_code": nil,
		"payload_text": string(task.GetSpec().GetPayload().GetRaw()), "output": nil, "error": nil,
		"traceparent": task.GetMetadata().GetTraceparent()}
	if task.GetStatus().ExitCode != nil {
		shown["exit_code"] = task.GetStatus().GetExitCode()
	}
	if task.GetStatus().GetResult().GetOutput() != nil {
		var output any
		if err := task.Output(&output); err != nil {
			return nil, err
		}
		shown["output"] = output
	}
	if failure := task.Failure(); failure != nil {
		shown["error"] = object{"code": failure.GetCode(), "message": failure.GetMessage()}
	}
	return shown, nil
}

func (d *driver) list(ctx context.Context, r *request) (object, error) {
	names := []string{}
	for task, err := range d.client.List(ctx, taskyard.ListOptions{Filter: r.Filter, PageSize: r.PageSize}) {
		if err != nil {
			return nil, err
		}
		names = append(names, task.GetName())
	}
	return object{"names": names}, nil
}

func (d *driver) watch(ctx context.Context, r *request) (object, error) {
	ctx, cancel := context.WithCancel(ctx)
	events := d.client.Watch(ctx, taskyard.WatchOptions{
		Tasks: r.Tasks, Filter: r.Filter, Snapshot: r.Snapshot, UntilTerminal: r.UntilTerminal})
	d.open(r.Stream, cancel, shown(events, func(event *taskyard.Event) object {
		return object{"type": strings.TrimPrefix(event.GetType().String(), "TASK_EVENT_TYPE_"), "name": event.Task().GetName(),
			"phase": event.Phase(), "version": event.GetResourceVersion()}
	}))
	return object{}, nil
}

func (d *driver) logs(ctx context.Context, r *request) (object, error) {
	ctx, cancel := context.WithCancel(ctx)
	entries := d.client.Logs(ctx, r.Task, taskyard.LogOptions{Follow: r.Follow})
	d.open(r.Stream, cancel, shown(entries, func(entry *pb.LogEntry) object {
		return object{"message": entry.GetMessage(), "level": strings.TrimPrefix(entry.GetLevel().String(), "LOG_LEVEL_"),
			"generation": entry.GetGeneration(), "sequence": entry.GetSequence()}
	}))
	return object{}, nil
}

func shown[T any](items iter.Seq2[T, error], show func(T) object) iter.Seq2[object, error] {
	return func(yield func(object, error) bool) {
		for item, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(show(item), nil) {
				return
			}
		}
	}
}

func (d *driver) open(name string, cancel func(), items iter.Seq2[object, error]) {
	next, stop := iter.Pull2(items)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	// A reader that waits ends by its context; only then the iterator may be stopped.
	d.streams[name] = &stream{next: func() (object, error, bool) { return next() }, stop: func() { cancel(); stop() }}
}

func (d *driver) stream(name string) (*stream, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if found := d.streams[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("no stream %q is open", name)
}

func (d *driver) nextItems(_ context.Context, r *request) (object, error) {
	stream, err := d.stream(r.Stream)
	if err != nil {
		return nil, err
	}
	items := []object{}
	for len(items) < r.Count {
		item, err, more := stream.next()
		if !more {
			return object{"items": items, "ended": true}, nil
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return object{"items": items, "ended": false}, nil
}

func (d *driver) closeStream(_ context.Context, r *request) (object, error) {
	stream, err := d.stream(r.Stream)
	if err != nil {
		return nil, err
	}
	stream.stop()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.streams, r.Stream)
	return object{}, nil
}

var errNoWorker = errors.New("no such worker; start it first")
