// The driver of the Go client for the conformance kit; its protocol is in tests/conformance/README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	rpccode "google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"

	taskyard "taskyard.dev/go"
)

type request struct {
	ID int    `json:"id"`
	Op string `json:"op"`

	Address       string  `json:"address"`
	Key           string  `json:"key"`
	Tenant        string  `json:"tenant"`
	Scheduler     string  `json:"scheduler"`
	TLSCA         string  `json:"tls_ca"`
	OutageTimeout float64 `json:"outage_timeout"`

	TaskID      string            `json:"task_id"`
	RequestID   string            `json:"request_id"`
	Labels      map[string]string `json:"labels"`
	Retries     *int32            `json:"retries"`
	Command     []string          `json:"command"`
	Function    string            `json:"function"`
	Payload     json.RawMessage   `json:"payload"`
	PayloadText string            `json:"payload_text"`
	Traceparent string            `json:"traceparent"`
	After       []prerequisite    `json:"after"`

	Schedule string   `json:"schedule"`
	Cron     []string `json:"cron"`
	Paused   bool     `json:"paused"`
	Note     string   `json:"note"`

	Task          string   `json:"task"`
	Tasks         []string `json:"tasks"`
	Reason        string   `json:"reason"`
	Timeout       float64  `json:"timeout"`
	Filter        string   `json:"filter"`
	PageSize      int      `json:"page_size"`
	Stream        string   `json:"stream"`
	Count         int      `json:"count"`
	Follow        bool     `json:"follow"`
	Snapshot      bool     `json:"snapshot"`
	UntilTerminal bool     `json:"until_terminal"`

	Worker       string  `json:"worker"`
	WorkerID     string  `json:"worker_id"`
	Concurrency  int     `json:"concurrency"`
	LeaseSeconds float64 `json:"lease_seconds"`
	Grace        float64 `json:"grace"`
}

type prerequisite struct {
	Task  string `json:"task"`
	Alias string `json:"alias"`
	When  string `json:"when"`
}

type object = map[string]any

type operation func(context.Context, *request) (object, error)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	driver := &driver{streams: map[string]*stream{}, workers: map[string]*runningWorker{}}
	operations := driver.operations()
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	var output sync.Mutex
	var running sync.WaitGroup
	for input.Scan() {
		var asked request
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			fmt.Fprintf(os.Stderr, "not a request: %v\n", err)
			os.Exit(2)
		}
		running.Go(func() {
			answer := object{"id": asked.ID}
			do, known := operations[asked.Op]
			if !known {
				answer["error"] = object{"kind": "UNIMPLEMENTED", "message": "no such operation: " + asked.Op}
			} else if found, err := do(ctx, &asked); err != nil {
				answer["error"] = showError(err)
			} else {
				answer["ok"] = found
			}
			line, err := json.Marshal(answer)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(2)
			}
			output.Lock()
			defer output.Unlock()
			os.Stdout.Write(append(line, '\n'))
		})
	}
	stop()
	running.Wait()
	driver.close()
}

func showError(err error) object {
	shown := object{"kind": kindOf(err), "message": err.Error(), "fields": []object{}, "retry_after": nil}
	var sent *taskyard.Error
	if errors.As(err, &sent) {
		fields := []object{}
		for _, each := range sent.Fields {
			fields = append(fields, object{"field": each.Field, "description": each.Description})
		}
		shown["fields"] = fields
		if sent.RetryAfter > 0 {
			shown["retry_after"] = sent.RetryAfter.Seconds()
		}
	}
	return shown
}

func kindOf(err error) string {
	var sent *taskyard.Error
	switch {
	case as[*taskyard.NoContextError](err):
		return "NO_CONTEXT"
	case as[*taskyard.ContextExpiredError](err):
		return "CONTEXT_EXPIRED"
	case as[*taskyard.PlaintextRefusedError](err):
		return "PLAINTEXT_REFUSED"
	case as[*taskyard.ContextError](err):
		return "CONTEXT_INVALID"
	case as[*taskyard.ServerUnreachableError](err):
		return "SERVER_UNREACHABLE"
	case as[*taskyard.CertificateUntrustedError](err):
		return "CERTIFICATE_UNTRUSTED"
	case as[*taskyard.VersionUnsupportedError](err):
		return "VERSION_UNSUPPORTED"
	case errors.Is(err, context.DeadlineExceeded):
		return "TIMEOUT"
	case errors.As(err, &sent) && sent.Reason != "":
		return string(sent.Reason)
	case errors.As(err, &sent):
		return codeName(sent.Code)
	}
	return fmt.Sprintf("%T", err)
}

func as[E error](err error) bool {
	var found E
	return errors.As(err, &found)
}

func codeName(code codes.Code) string { return rpccode.Code(code).String() }

func seconds(value float64) time.Duration { return time.Duration(value * float64(time.Second)) }
