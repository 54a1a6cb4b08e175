package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	taskyard "taskyard.dev/go"
	pb "taskyard.dev/go/taskyard/v1"
)

const (
	checkpointPiece = 256 << 10
	maxLine         = 64 << 10
)

// Task is a claimed task as its handler sees it.
type Task struct {
	run *run
}

// Name is tenants/{tenant}/tasks/{task}.
func (t *Task) Name() string { return t.run.assignment.GetLease().GetTask() }

// Attempt counts the started runs, from 1.
func (t *Task) Attempt() int { return int(t.run.assignment.GetAttempt()) }

// Labels are those of the task.
func (t *Task) Labels() map[string]string { return t.run.assignment.GetLabels() }

// Assignment has everything that came with the claim.
func (t *Task) Assignment() *pb.Assignment { return t.run.assignment }

// Payload reads the JSON input into `into`. An error of it is a good reason to fail permanently: return InvalidPayload(err).
func (t *Task) Payload(into any) error { return json.Unmarshal(t.RawPayload(), into) }

// InvalidPayload is the failure of a task whose input cannot be read.
func InvalidPayload(err error) *Failure { return FailPermanently("INVALID_PAYLOAD", err.Error()) }

// RawPayload is the input as it was sent, byte for byte.
func (t *Task) RawPayload() []byte { return t.run.assignment.GetSpec().GetPayload().GetRaw() }

// Input reads the result of the prerequisite with this alias into `into`. It fails if there is no such alias, or if the result
// was too large to come with the claim: Client.Get returns it.
func (t *Task) Input(alias string, into any) error {
	for _, each := range t.run.assignment.GetInputs() {
		if each.GetAlias() != alias {
			continue
		}
		if each.GetOmitted() {
			return fmt.Errorf("the result of %s (alias %q) is too large for the claim; get the task", each.GetTask(), alias)
		}
		if each.GetResult().GetOutput() == nil {
			return json.Unmarshal([]byte("null"), into)
		}
		return taskyard.ReadPayload(each.GetResult().GetOutput(), into)
	}
	return fmt.Errorf("no prerequisite of %s has the alias %q", t.Name(), alias)
}

// FencingToken guards the handler's own side effects: a store that keeps the highest token refuses a late writer, or asks
// taskdb (CheckFence).
func (t *Task) FencingToken() string {
	lease := t.run.assignment.GetLease()
	return fmt.Sprintf("%d.%d", lease.GetGeneration(), lease.GetLeaseId())
}

// CheckFence asks taskdb whether this run still holds the task. The client's key has to be allowed to read the task.
func (t *Task) CheckFence(ctx context.Context) (bool, error) {
	client := t.run.worker.client
	request := &pb.CheckFenceRequest{Name: t.Name(), FencingToken: t.FencingToken()}
	response, err := pb.NewTaskServiceClient(client.Conn()).CheckFence(ctx, request)
	return response.GetCurrent(), client.Translate(ctx, err)
}

// Traceparent is the W3C trace context of the submission; empty if there is none.
func (t *Task) Traceparent() string { return t.run.assignment.GetTraceparent() }

// Progress reports how far the work is, from 0 to 100. Only the newest is sent.
func (t *Task) Progress(percent int, message string) {
	t.run.report(&pb.RunReport{Report: &pb.RunReport_Progress{Progress: &pb.Progress{
		Percent: int32(percent), Message: clip(message, 4096), ObserveTime: timestamppb.New(time.Now())}}})
}

// Log stores a line of the run's log, at level INFO.
func (t *Task) Log(format string, arguments ...any) {
	t.LogLevel(pb.LogLevel_LOG_LEVEL_INFO, fmt.Sprintf(format, arguments...))
}

// LogLevel stores a line of the run's log.
func (t *Task) LogLevel(level pb.LogLevel, message string) {
	t.run.mutex.Lock()
	defer t.run.mutex.Unlock()
	t.run.logSequence++
	t.run.worker.sender.log(t.run, &pb.LogEntry{Sequence: t.run.logSequence, Time: timestamppb.Now(), Level: level,
		Message: clip(message, maxLine), Source: pb.LogSource_LOG_SOURCE_WORKLOAD})
}

// SaveCheckpoint stores the state of the work, at most 10 MiB, from which a later run continues. It is stored when it returns.
func (t *Task) SaveCheckpoint(ctx context.Context, content []byte) error {
	lease := t.run.assignment.GetLease()
	t.run.mutex.Lock()
	t.run.checkpoint++
	sequence := t.run.checkpoint
	t.run.mutex.Unlock()
	digest := sha256.Sum256(content)
	header := &pb.CheckpointHeader{Task: lease.GetTask(), Generation: lease.GetGeneration(), LeaseId: lease.GetLeaseId(),
		Sequence: sequence, SizeBytes: int64(len(content)), Sha256: digest[:], ContentType: "application/octet-stream"}
	// Sent again after an outage: a repeat of the same checkpoint is safe.
	return t.run.worker.repeated(ctx, func() error { return t.writeCheckpoint(ctx, header, content) })
}

func (t *Task) writeCheckpoint(ctx context.Context, header *pb.CheckpointHeader, content []byte) error {
	stream, err := t.run.worker.stub.WriteWorkCheckpoint(ctx)
	if err != nil {
		return err
	}
	for offset := 0; offset == 0 || offset < len(content); offset += checkpointPiece {
		end := min(offset+checkpointPiece, len(content))
		chunk := &pb.CheckpointChunk{Offset: int64(offset), Data: content[offset:end], Last: end == len(content)}
		if offset == 0 {
			chunk.Header = header
		}
		request := &pb.WriteWorkCheckpointRequest{WorkerId: t.run.worker.id, Chunk: chunk}
		// The reason of a broken stream comes with its end.
		if err := stream.Send(request); err != nil {
			break
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

// LoadCheckpoint returns the newest checkpoint of the task; false if there is none.
func (t *Task) LoadCheckpoint(ctx context.Context) ([]byte, bool, error) {
	if t.run.assignment.GetCheckpoint() == nil {
		return nil, false, nil
	}
	var content bytes.Buffer
	err := t.run.worker.repeated(ctx, func() error {
		content.Reset()
		request := &pb.ReadWorkCheckpointRequest{WorkerId: t.run.worker.id, Lease: t.run.assignment.GetLease()}
		stream, err := t.run.worker.stub.ReadWorkCheckpoint(ctx, request)
		if err != nil {
			return err
		}
		for {
			piece, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			content.Write(piece.GetData())
		}
	})
	return content.Bytes(), err == nil, err
}

// repeated calls again while the server cannot be reached, until the context ends.
func (w *Worker) repeated(ctx context.Context, call func() error) error {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		err := w.client.TranslateScheduler(ctx, call())
		var sent *taskyard.Error
		var unreachable *taskyard.ServerUnreachableError
		retryable := errors.As(err, &unreachable) || errors.As(err, &sent) && sent.Retryable()
		if !retryable {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(delay):
		}
	}
}
