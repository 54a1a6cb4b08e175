package main

import (
	"context"

	pb "taskyard.dev/go/taskyard/v1"
)

func (d *driver) scheduleCreate(ctx context.Context, r *request) (object, error) {
	execution, options := newTask(r)
	schedule := &pb.Schedule{Cron: r.Cron, Paused: r.Paused, PauseNote: r.Note}
	return showSchedule(d.client.Schedules().Create(ctx, r.Schedule, schedule, execution, options...))
}

func (d *driver) scheduleGet(ctx context.Context, r *request) (object, error) {
	return showSchedule(d.client.Schedules().Get(ctx, r.Schedule))
}

func (d *driver) scheduleList(ctx context.Context, r *request) (object, error) {
	names := []string{}
	for schedule, err := range d.client.Schedules().List(ctx, r.Filter, r.PageSize) {
		if err != nil {
			return nil, err
		}
		names = append(names, schedule.GetName())
	}
	return object{"names": names}, nil
}

func (d *driver) schedulePause(ctx context.Context, r *request) (object, error) {
	return showSchedule(d.client.Schedules().Pause(ctx, r.Schedule, r.Note))
}

func (d *driver) scheduleResume(ctx context.Context, r *request) (object, error) {
	return showSchedule(d.client.Schedules().Resume(ctx, r.Schedule))
}

func (d *driver) scheduleRun(ctx context.Context, r *request) (object, error) {
	created, err := d.client.Schedules().Run(ctx, r.Schedule)
	if err != nil {
		return nil, err
	}
	return showTask(&created.Task, nil)
}

func (d *driver) scheduleDelete(ctx context.Context, r *request) (object, error) {
	return object{}, d.client.Schedules().Delete(ctx, r.Schedule)
}

func showSchedule(schedule *pb.Schedule, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	return object{"name": schedule.GetName(), "cron": schedule.GetCron(), "paused": schedule.GetPaused(),
		"note": schedule.GetPauseNote()}, nil
}
