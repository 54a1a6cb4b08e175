package taskyard

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "taskyard.dev/go/taskyard/v1"
)

func TestErrorsAreRecognisedByReason(t *testing.T) {
	sent, err := status.New(codes.InvalidArgument, "task_id: is not an id").WithDetails(
		&errdetails.ErrorInfo{Reason: "FIELD_INVALID", Domain: "taskyard.v1"},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "task_id", Description: "is not an id"}}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	found := translate(context.Background(), &Context{}, "a:1", sent.Err())
	var typed *Error
	if !errors.Is(found, FieldInvalid) || errors.Is(found, NotFound) || !errors.As(found, &typed) {
		t.Fatal(found)
	}
	if len(typed.Fields) != 1 || typed.Fields[0].Field != "task_id" || typed.RetryAfter != 2*time.Second {
		t.Fatalf("%+v", typed)
	}
}

func TestReasonOfAnotherDomainIsNotOurs(t *testing.T) {
	sent, _ := status.New(codes.NotFound, "x").WithDetails(&errdetails.ErrorInfo{Reason: "STALE_GENERATION", Domain: "example.com"})
	if errors.Is(translate(context.Background(), &Context{}, "a:1", sent.Err()), StaleGeneration) {
		t.Fatal("recognised")
	}
}

func TestTheCallersOwnEndStaysWhatItIs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if err := translate(ctx, &Context{}, "a:1", status.Error(codes.DeadlineExceeded, "x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestEveryReasonOfTheContractHasAConstant(t *testing.T) {
	source, err := os.ReadFile("reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	for number, name := range pb.ErrorReason_name {
		reason := strings.TrimPrefix(name, "ERROR_REASON_")
		if number != 0 && !strings.Contains(string(source), `Reason = "`+reason+`"`) {
			t.Errorf("reasons.go has no constant for %s", reason)
		}
	}
}

func TestPlaintextNeverLeavesThisMachine(t *testing.T) {
	for _, address := range []string{"192.0.2.1:7420", "example.com:1", "localhost:1,192.0.2.1:1", "http://192.0.2.1:1"} {
		_, err := New(WithAddress(address), WithKey("k"))
		var refused *PlaintextRefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"localhost:1", "127.0.0.1:1", "[::1]:1", "unix:/tmp/x", "https://192.0.2.1:1"} {
		client, err := New(WithAddress(address), WithKey("k"))
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		client.Close()
	}
}
