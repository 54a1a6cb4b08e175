package taskyard

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "taskyard.dev/go/taskyard/v1"
)

const (
	jsonType  = "application/json"
	bytesType = "application/octet-stream"
)

// Task is a task as the server returned it, with the getters of the message and a few of its own.
type Task struct {
	*pb.Task
}

// ID is the last part of the name.
func (t *Task) ID() string { return t.GetName()[strings.LastIndex(t.GetName(), "/")+1:] }

// Phase is the name of the phase, such as SUCCEEDED.
func (t *Task) Phase() string { return PhaseName(t.GetStatus().GetPhase()) }

// Ended reports whether the task has reached its last phase.
func (t *Task) Ended() bool {
	phase := t.GetStatus().GetPhase()
	return phase >= pb.TaskPhase_TASK_PHASE_SUCCEEDED && phase <= pb.TaskPhase_TASK_PHASE_EXHAUSTED
}

// Failure is why the last unsuccessful run failed; nil if none did.
func (t *Task) Failure() *pb.TaskError { return t.GetStatus().GetError() }

// Output reads the document that a successful run returned into `into`, as json.Unmarshal does.
func (t *Task) Output(into any) error {
	return ReadPayload(t.GetStatus().GetResult().GetOutput(), into)
}

// PhaseName is the name of a phase without its prefix.
func PhaseName(phase pb.TaskPhase) string { return strings.TrimPrefix(phase.String(), "TASK_PHASE_") }

// ReadPayload reads the document of a payload into `into`, as json.Unmarshal does.
func ReadPayload(payload *pb.Payload, into any) error {
	if document := payload.GetJson(); document != nil {
		text, err := document.MarshalJSON()
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	return json.Unmarshal(payload.GetRaw(), into)
}

// Created is the task that a create returned: a new one, or an existing one according to Outcome.
type Created struct {
	Task
	Outcome  pb.CreateOutcome
	Replaced []string
}

// Execution is what a task executes.
type Execution struct {
	proto *pb.Execution
}

// Command runs a program on the runner's host, without a shell.
func Command(program string, arguments ...string) Execution {
	command := &pb.CommandExecution{Program: program, Args: arguments}
	return Execution{&pb.Execution{Kind: &pb.Execution_Command{Command: command}}}
}

// Function runs a function that a worker or a runner's application has registered.
func Function(name string) Execution {
	return Execution{&pb.Execution{Kind: &pb.Execution_Function{Function: &pb.FunctionExecution{Function: name}}}}
}

// External is work that its owner does and reports; no runner is involved.
func External() Execution {
	return Execution{&pb.Execution{Kind: &pb.Execution_External{External: &pb.ExternalExecution{}}}}
}

// Custom is any execution of taskyard.v1; nil is that of the task's type.
func Custom(execution *pb.Execution) Execution { return Execution{execution} }

// TaskOption sets something of a new task besides its execution.
type TaskOption func(*pb.CreateTaskRequest) error

// ID chooses the task's id; the server makes one otherwise.
func ID(id string) TaskOption { return setting(func(r *pb.CreateTaskRequest) { r.TaskId = id }) }

// RequestID chooses the request id: repeating a create with it returns the first task.
func RequestID(id string) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) { r.RequestId = id })
}

// Type sets a registered type with its defaults, or a mere classification.
func Type(name string) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) { r.Task.Spec.TaskType = name })
}

// Labels are to find the task by.
func Labels(labels map[string]string) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) { r.Task.Metadata.Labels = labels })
}

// Payload is the input as JSON. A json.RawMessage is sent byte for byte.
func Payload(value any) TaskOption {
	return func(r *pb.CreateTaskRequest) error {
		text, ok := value.(json.RawMessage)
		if !ok {
			var err error
			if text, err = json.Marshal(value); err != nil {
				return err
			}
		}
		r.Task.Spec.Payload = &pb.Payload{Value: &pb.Payload_Raw{Raw: text}, ContentType: jsonType}
		return nil
	}
}

// Bytes is an input that is not JSON.
func Bytes(content []byte) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) {
		r.Task.Spec.Payload = &pb.Payload{Value: &pb.Payload_Raw{Raw: content}, ContentType: bytesType}
	})
}

// Env is the environment of the workload.
func Env(variables map[string]string) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) {
		for name, value := range variables {
			r.Task.Spec.Env = append(r.Task.Spec.Env, &pb.EnvVar{Name: name, Value: value})
		}
	})
}

// Retry sets the retry policy.
func Retry(policy *pb.RetryPolicy) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) { r.Task.Spec.Retry = policy })
}

// Retries sets the number of retries, with the default back-off.
func Retries(count int) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) {
		limit := int32(count)
		r.Task.Spec.Retry = &pb.RetryPolicy{MaxRetries: &limit}
	})
}

// Timeout is the longest time of one attempt.
func Timeout(limit time.Duration) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) { r.Task.Spec.AttemptTimeout = durationpb.New(limit) })
}

// After names tasks that have to succeed first, by id or full name.
func After(tasks ...string) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) {
		for _, task := range tasks {
			r.Task.Spec.After = append(r.Task.Spec.After, &pb.Dependency{Task: task})
		}
	})
}

// Dependency is a task that has to end first, with the condition and the alias under which its result reaches the workload.
func Dependency(prerequisite *pb.Dependency) TaskOption {
	return setting(func(r *pb.CreateTaskRequest) { r.Task.Spec.After = append(r.Task.Spec.After, prerequisite) })
}

// With changes anything else of the request.
func With(change func(*pb.CreateTaskRequest)) TaskOption { return setting(change) }

func setting(change func(*pb.CreateTaskRequest)) TaskOption {
	return func(r *pb.CreateTaskRequest) error {
		change(r)
		return nil
	}
}
