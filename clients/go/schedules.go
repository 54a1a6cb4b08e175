package taskyard

import (
	"context"
	"iter"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "taskyard.dev/go/taskyard/v1"
)

// Schedules creates, reads and controls the schedules of the client's tenant: tasks that are created by time. A schedule is
// named by its id or its full name.
type Schedules struct {
	client *Client
}

// Schedules returns the schedules of the client's tenant.
func (c *Client) Schedules() Schedules { return Schedules{c} }

func (s Schedules) stub() pb.ScheduleServiceClient {
	return pb.NewScheduleServiceClient(s.client.Conn())
}

func (s Schedules) name(ctx context.Context, schedule string) (string, error) {
	if strings.HasPrefix(schedule, "tenants/") {
		return schedule, nil
	}
	parent, err := s.client.parent(ctx)
	return parent + "/schedules/" + schedule, err
}

// Create stores a schedule, which has the times and policies; the execution and its options are the task that it creates. A
// repeat after a broken connection makes no second schedule.
func (s Schedules) Create(
	ctx context.Context, id string, schedule *pb.Schedule, execution Execution, options ...TaskOption,
) (*pb.Schedule, error) {
	task, err := createRequest(execution, options)
	if err != nil {
		return nil, err
	}
	parent, err := s.client.parent(ctx)
	if err != nil {
		return nil, err
	}
	made := proto.CloneOf(schedule)
	made.Template = task.GetTask()
	request := &pb.CreateScheduleRequest{Parent: parent, ScheduleId: id, Schedule: made, RequestId: NewRequestID()}
	response, err := s.stub().CreateSchedule(ctx, request)
	return response.GetSchedule(), s.client.Translate(ctx, err)
}

// Get returns a schedule.
func (s Schedules) Get(ctx context.Context, schedule string) (*pb.Schedule, error) {
	name, err := s.name(ctx, schedule)
	if err != nil {
		return nil, err
	}
	response, err := s.stub().GetSchedule(ctx, &pb.GetScheduleRequest{Name: name})
	return response.GetSchedule(), s.client.Translate(ctx, err)
}

// List yields the schedules that match a filter such as paused = false, by id, fetched page by page as they are read. A page
// size of 0 is the server's default. An error ends it.
func (s Schedules) List(ctx context.Context, filter string, pageSize int) iter.Seq2[*pb.Schedule, error] {
	return func(yield func(*pb.Schedule, error) bool) {
		parent, err := s.client.parent(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		request := &pb.ListSchedulesRequest{Parent: parent, Filter: filter, PageSize: int32(pageSize)}
		for {
			page, err := s.stub().ListSchedules(ctx, request)
			if err != nil {
				yield(nil, s.client.Translate(ctx, err))
				return
			}
			for _, each := range page.GetSchedules() {
				if !yield(each, nil) {
					return
				}
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				return
			}
		}
	}
}

// Update changes the fields that the paths name, such as cron; without paths every field that is set. It fails with
// RESOURCE_VERSION_MISMATCH if the schedule changed since it was read.
func (s Schedules) Update(ctx context.Context, schedule *pb.Schedule, paths ...string) (*pb.Schedule, error) {
	request := &pb.UpdateScheduleRequest{Schedule: schedule, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}
	response, err := s.stub().UpdateSchedule(ctx, request)
	return response.GetSchedule(), s.client.Translate(ctx, err)
}

// Pause lets a schedule create no tasks until it is resumed; repeating it is safe.
func (s Schedules) Pause(ctx context.Context, schedule, note string) (*pb.Schedule, error) {
	name, err := s.name(ctx, schedule)
	if err != nil {
		return nil, err
	}
	response, err := s.stub().PauseSchedule(ctx, &pb.PauseScheduleRequest{Name: name, Note: note})
	return response.GetSchedule(), s.client.Translate(ctx, err)
}

// Resume lets a schedule go on at its next instant; the pause is not caught up. Repeating it is safe.
func (s Schedules) Resume(ctx context.Context, schedule string) (*pb.Schedule, error) {
	name, err := s.name(ctx, schedule)
	if err != nil {
		return nil, err
	}
	response, err := s.stub().ResumeSchedule(ctx, &pb.ResumeScheduleRequest{Name: name})
	return response.GetSchedule(), s.client.Translate(ctx, err)
}

// Run creates the task of a schedule now; its overlap policy applies.
func (s Schedules) Run(ctx context.Context, schedule string) (*Created, error) {
	name, err := s.name(ctx, schedule)
	if err != nil {
		return nil, err
	}
	response, err := s.stub().RunSchedule(ctx, &pb.RunScheduleRequest{Name: name, RequestId: NewRequestID()})
	if err != nil {
		return nil, s.client.Translate(ctx, err)
	}
	return &Created{Task: Task{response.GetTask()}, Outcome: response.GetOutcome()}, nil
}

// Backfill creates the tasks of past instants from start to before end, at most 1,000, and returns their names.
func (s Schedules) Backfill(ctx context.Context, schedule string, start, end time.Time) ([]string, error) {
	name, err := s.name(ctx, schedule)
	if err != nil {
		return nil, err
	}
	request := &pb.BackfillScheduleRequest{Name: name, StartTime: timestamppb.New(start), EndTime: timestamppb.New(end)}
	response, err := s.stub().BackfillSchedule(ctx, request)
	return response.GetTasks(), s.client.Translate(ctx, err)
}

// Preview returns the next instants of a stored schedule.
func (s Schedules) Preview(ctx context.Context, schedule string, count int) ([]*pb.ScheduledInstant, error) {
	parent, err := s.client.parent(ctx)
	if err != nil {
		return nil, err
	}
	name, err := s.name(ctx, schedule)
	if err != nil {
		return nil, err
	}
	request := &pb.PreviewScheduleRequest{Parent: parent, Name: name, Count: int32(count)}
	response, err := s.stub().PreviewSchedule(ctx, request)
	return response.GetInstants(), s.client.Translate(ctx, err)
}

// Delete removes a schedule; its tasks stay.
func (s Schedules) Delete(ctx context.Context, schedule string) error {
	name, err := s.name(ctx, schedule)
	if err != nil {
		return err
	}
	_, err = s.stub().DeleteSchedule(ctx, &pb.DeleteScheduleRequest{Name: name})
	return s.client.Translate(ctx, err)
}
