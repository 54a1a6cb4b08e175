package taskyard

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"iter"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "taskyard.dev/go/taskyard/v1"
)

const (
	// pageSize is the number of tasks that one call of List returns.
	pageSize = 1000
	// waitSlice is the longest wait of one WaitTask call before it is repeated.
	waitSlice = 60 * time.Second
)

// Client is a connection to Taskyard, safe for concurrent use. A task is named by its id or its full name.
type Client struct {
	Context  Context
	settings settings

	mutex       sync.Mutex
	connections map[[2]string]*grpc.ClientConn
	// tenant is known once it is configured, or the server has answered whose the key is.
	tenant string
}

// New returns a client. It fails with NoContextError, ContextError, ContextExpiredError or PlaintextRefusedError; it does not wait
// for the server.
func New(options ...Option) (*Client, error) {
	chosen := settings{given: map[string]string{}, outageTimeout: 5 * time.Minute, trace: traceparentOf}
	for _, option := range options {
		option(&chosen)
	}
	found, err := FindContext(chosen.given)
	if err != nil {
		return nil, err
	}
	client := &Client{Context: *found, settings: chosen, connections: map[[2]string]*grpc.ClientConn{}, tenant: found.Tenant}
	if _, err := client.connection(found.Address, found.Key); err != nil {
		return nil, err
	}
	if found.Scheduler != "" {
		if _, err := client.connection(found.Scheduler, found.Key); err != nil {
			client.Close()
			return nil, err
		}
	}
	return client, nil
}

// Close ends the connections and cancels the calls in flight.
func (c *Client) Close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var first error
	for _, each := range c.connections {
		if err := each.Close(); err != nil && first == nil {
			first = err
		}
	}
	clear(c.connections)
	return first
}

func (c *Client) connection(address, key string) (*grpc.ClientConn, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found := c.connections[[2]string{address, key}]; found != nil {
		return found, nil
	}
	made, err := dial(address, key, c.Context.TLSCA, c.settings.trace)
	if err == nil {
		c.connections[[2]string{address, key}] = made
	}
	return made, err
}

// Conn is the connection to taskdb with the client's key, for stubs of taskyard.v1 that have no method here. Their errors
// are those of gRPC; Translate turns them into errors of this package.
func (c *Client) Conn() grpc.ClientConnInterface {
	found, _ := c.connection(c.Context.Address, c.Context.Key)
	return found
}

// AdminConn is the connection to taskdb with the administrator's key.
func (c *Client) AdminConn() (grpc.ClientConnInterface, error) {
	key := c.Context.AdminKey
	if key == "" {
		key = c.Context.Key
	}
	return c.connection(c.Context.Address, key)
}

// SchedulerConn is the connection to the scheduler; a ContextError if its address is not configured.
func (c *Client) SchedulerConn() (grpc.ClientConnInterface, error) {
	if c.Context.Scheduler == "" {
		return nil, &ContextError{Message: c.Context.Source + " names no scheduler; set TASKYARD_SCHEDULER to its host and port"}
	}
	return c.connection(c.Context.Scheduler, c.Context.Key)
}

// Translate turns an error of a stub on Conn into one of this package.
func (c *Client) Translate(ctx context.Context, err error) error {
	return translate(ctx, &c.Context, c.Context.Address, err)
}

// TranslateScheduler turns an error of a stub on SchedulerConn into one of this package.
func (c *Client) TranslateScheduler(ctx context.Context, err error) error {
	return translate(ctx, &c.Context, c.Context.Scheduler, err)
}

func (c *Client) tasks() pb.TaskServiceClient { return pb.NewTaskServiceClient(c.Conn()) }

// Tenant is the tenant of the context; where it names none, that of the key, which the first use asks the server for.
func (c *Client) Tenant(ctx context.Context) (string, error) {
	c.mutex.Lock()
	tenant := c.tenant
	c.mutex.Unlock()
	if tenant != "" {
		return tenant, nil
	}
	response, err := pb.NewApiKeyServiceClient(c.Conn()).WhoAmI(ctx, &pb.WhoAmIRequest{})
	// A server of before this RPC does not implement it.
	if err != nil && status.Code(err) != codes.Unimplemented {
		return "", c.Translate(ctx, err)
	}
	if tenant = response.GetApiKey().GetTenant(); tenant == "" {
		tenant = defaultTenant
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.tenant = tenant
	return tenant, nil
}

func (c *Client) parent(ctx context.Context) (string, error) {
	tenant, err := c.Tenant(ctx)
	return "tenants/" + tenant, err
}

func (c *Client) name(ctx context.Context, task string) (string, error) {
	if strings.HasPrefix(task, "tenants/") {
		return task, nil
	}
	parent, err := c.parent(ctx)
	return taskName(parent, task), err
}

func taskName(parent, task string) string {
	if strings.HasPrefix(task, "tenants/") {
		return task
	}
	return parent + "/tasks/" + task
}

// NewRequestID returns a request id, with which a create can be repeated safely.
func NewRequestID() string {
	var bytes [16]byte
	rand.Read(bytes[:])
	return hex.EncodeToString(bytes[:])
}

// Create stores a task durably. It carries a request id of its own, so a repeat after a broken connection makes no second
// task; RequestID chooses it.
func (c *Client) Create(ctx context.Context, execution Execution, options ...TaskOption) (*Created, error) {
	request, err := createRequest(execution, options)
	if err != nil {
		return nil, err
	}
	if request.Parent, err = c.parent(ctx); err != nil {
		return nil, err
	}
	response, err := c.tasks().CreateTask(ctx, request)
	if err != nil {
		return nil, c.Translate(ctx, err)
	}
	return &Created{Task: Task{response.GetTask()}, Outcome: response.GetOutcome(), Replaced: response.GetReplacedTasks()}, nil
}

func createRequest(execution Execution, options []TaskOption) (*pb.CreateTaskRequest, error) {
	request := &pb.CreateTaskRequest{
		RequestId: NewRequestID(),
		Task:      &pb.Task{Metadata: &pb.TaskMetadata{}, Spec: &pb.TaskSpec{Execution: execution.proto}},
		View:      pb.TaskView_TASK_VIEW_BASIC,
	}
	for _, option := range options {
		if err := option(request); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// Get returns a task with all of its fields.
func (c *Client) Get(ctx context.Context, task string) (*Task, error) {
	name, err := c.name(ctx, task)
	if err != nil {
		return nil, err
	}
	request := &pb.GetTaskRequest{Name: name, View: pb.TaskView_TASK_VIEW_FULL}
	response, err := c.tasks().GetTask(ctx, request)
	if err != nil {
		return nil, c.Translate(ctx, err)
	}
	return &Task{response.GetTask()}, nil
}

// Cancel asks for the end of a task; repeating it is safe.
func (c *Client) Cancel(ctx context.Context, task, reason string) (*Task, error) {
	name, err := c.name(ctx, task)
	if err != nil {
		return nil, err
	}
	response, err := c.tasks().CancelTask(ctx, &pb.CancelTaskRequest{Name: name, Reason: reason})
	if err != nil {
		return nil, c.Translate(ctx, err)
	}
	return &Task{response.GetTask()}, nil
}

// ListOptions choose the tasks of a list; the zero value lists all, newest first.
type ListOptions struct {
	// Filter is an expression such as metadata.labels.team = "a".
	Filter  string
	OrderBy string
	// PageSize is how many tasks one call returns; 1000 by default.
	PageSize int
	View     pb.TaskView
}

// List yields tasks, fetched page by page as they are read. An error ends it.
func (c *Client) List(ctx context.Context, options ListOptions) iter.Seq2[*Task, error] {
	return func(yield func(*Task, error) bool) {
		parent, err := c.parent(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		request := &pb.ListTasksRequest{Parent: parent, Filter: options.Filter, OrderBy: options.OrderBy,
			PageSize: int32(options.PageSize), View: options.View}
		if request.PageSize == 0 {
			request.PageSize = pageSize
		}
		for {
			page, err := c.tasks().ListTasks(ctx, request)
			if err != nil {
				yield(nil, c.Translate(ctx, err))
				return
			}
			for _, each := range page.GetTasks() {
				if !yield(&Task{each}, nil) {
					return
				}
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				return
			}
		}
	}
}

// Wait returns the task once it has ended. It goes on over outages; the context limits it.
func (c *Client) Wait(ctx context.Context, task string) (*Task, error) {
	timer := newRetryTimer(c.settings.outageTimeout)
	for {
		slice := waitSlice
		if deadline, ok := ctx.Deadline(); ok {
			// The server answers a second before the deadline of the call.
			slice = max(0, min(slice, time.Until(deadline)))
		}
		response, err := c.waitOnce(ctx, task, slice)
		if err != nil {
			if err = timer.wait(ctx, err); err != nil {
				return nil, err
			}
			continue
		}
		timer.refresh()
		if response.GetSatisfied() {
			return &Task{response.GetTask()}, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func (c *Client) waitOnce(ctx context.Context, task string, limit time.Duration) (*pb.WaitTaskResponse, error) {
	name, err := c.name(ctx, task)
	if err != nil {
		return nil, err
	}
	request := &pb.WaitTaskRequest{Name: name, Timeout: durationpb.New(limit), View: pb.TaskView_TASK_VIEW_FULL}
	response, err := c.tasks().WaitTask(ctx, request)
	return response, c.Translate(ctx, err)
}
