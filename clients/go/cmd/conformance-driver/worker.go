package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"taskyard.dev/go/worker"
)

// runningWorker is a worker with the functions of the kit, and what they recorded.
type runningWorker struct {
	end      context.CancelFunc
	ended    chan error
	mutex    sync.Mutex
	changed  chan struct{}
	events   []string
	released chan struct{}
}

func (w *runningWorker) stop() error {
	w.end()
	return <-w.ended
}

func (w *runningWorker) record(event string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.events = append(w.events, event)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (d *driver) worker(name string) (*runningWorker, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if found := d.workers[name]; found != nil {
		return found, nil
	}
	return nil, errNoWorker
}

func (d *driver) workerStart(_ context.Context, r *request) (object, error) {
	made, err := worker.New(d.client, worker.WithID(r.WorkerID), worker.WithConcurrency(r.Concurrency),
		worker.WithLease(seconds(max(5, r.LeaseSeconds))), worker.WithStopGrace(seconds(r.Grace)))
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	running := &runningWorker{end: end, ended: make(chan error, 1), changed: make(chan struct{}), released: make(chan struct{})}
	for function, handler := range running.functions() {
		made.Handle(function, handler)
	}
	go func() { running.ended <- made.Run(ctx) }()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.workers[r.Worker] = running
	return object{}, nil
}

func (d *driver) workerEvents(ctx context.Context, r *request) (object, error) {
	found, err := d.worker(r.Worker)
	if err != nil {
		return nil, err
	}
	for {
		found.mutex.Lock()
		events, changed := append([]string{}, found.events...), found.changed
		found.mutex.Unlock()
		if len(events) >= r.Count {
			return object{"events": events}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (d *driver) workerRelease(_ context.Context, r *request) (object, error) {
	found, err := d.worker(r.Worker)
	if err != nil {
		return nil, err
	}
	close(found.released)
	return object{}, nil
}

func (d *driver) workerStop(_ context.Context, r *request) (object, error) {
	found, err := d.worker(r.Worker)
	if err != nil {
		return nil, err
	}
	err = found.stop()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.workers, r.Worker)
	return object{}, err
}

func (w *runningWorker) functions() map[string]worker.Handler {
	return map[string]worker.Handler{
		"conf.echo": func(_ context.Context, task *worker.Task) (any, error) {
			return json.RawMessage(task.RawPayload()), nil
		},
		"conf.fail":       w.fail,
		"conf.block":      w.block,
		"conf.log":        writeLog,
		"conf.checkpoint": w.checkpoint,
		"conf.fence":      fence,
		"conf.input":      input,
	}
}

func (w *runningWorker) fail(_ context.Context, task *worker.Task) (any, error) {
	var asked struct {
		Code, Message string
		Permanent     bool
		SucceedAt     int `json:"succeed_at"`
	}
	if err := task.Payload(&asked); err != nil {
		return nil, worker.InvalidPayload(err)
	}
	if task.Attempt() >= asked.SucceedAt {
		return "recovered", nil
	}
	w.record(fmt.Sprintf("failing %d", task.Attempt()))
	return nil, &worker.Failure{Code: asked.Code, Message: asked.Message, Permanent: asked.Permanent}
}

func (w *runningWorker) block(ctx context.Context, task *worker.Task) (any, error) {
	w.record("started")
	task.Progress(50, "halfway")
	select {
	case <-w.released:
		w.record("released")
		return "released", nil
	case <-ctx.Done():
	}
	var cancelled *worker.CancelledError
	cause := context.Cause(ctx)
	switch {
	case errors.As(cause, &cancelled):
		w.record("cancelled: " + cancelled.Reason)
	case errors.Is(cause, worker.ErrLeaseLost):
		w.record("lost")
	case errors.Is(cause, worker.ErrStopping):
		w.record("stopping")
	}
	return nil, ctx.Err()
}

func writeLog(_ context.Context, task *worker.Task) (any, error) {
	var asked struct{ Lines int }
	if err := task.Payload(&asked); err != nil {
		return nil, worker.InvalidPayload(err)
	}
	for line := range asked.Lines {
		task.Log("line %d", line+1)
	}
	return nil, nil
}

func (w *runningWorker) checkpoint(ctx context.Context, task *worker.Task) (any, error) {
	content, found, err := task.LoadCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	if found {
		w.record("resumed " + string(content))
		return json.RawMessage(content), nil
	}
	if err := task.SaveCheckpoint(ctx, []byte(`{"page":3}`)); err != nil {
		return nil, err
	}
	w.record("saved")
	return nil, worker.Fail("CRASH", "after the checkpoint")
}

func fence(ctx context.Context, task *worker.Task) (any, error) {
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	valid, err := task.CheckFence(limited)
	if err != nil {
		return nil, err
	}
	return object{"token": task.FencingToken(), "valid": valid}, nil
}

func input(_ context.Context, task *worker.Task) (any, error) {
	var asked struct{ Alias string }
	if err := task.Payload(&asked); err != nil {
		return nil, worker.InvalidPayload(err)
	}
	var found any
	if err := task.Input(asked.Alias, &found); err != nil {
		return nil, worker.FailPermanently("NO_INPUT", err.Error())
	}
	return found, nil
}
