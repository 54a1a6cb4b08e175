package worker

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	taskyard "taskyard.dev/go"
	pb "taskyard.dev/go/taskyard/v1"
)

const (
	maxReports = 500
	maxEntries = 1000
	// Below the 4 MiB of one call, with room for one large item.
	maxBytes = 2 << 20
)

// sender sends reports and log entries in order, many at a time, until the server has them.
type sender struct {
	worker *Worker

	mutex   sync.Mutex
	reports []*pb.RunReport
	logs    []logLine
	busy    bool
	wake    chan struct{}
	idle    chan struct{}
}

type logLine struct {
	run   *run
	entry *pb.LogEntry
}

func newSender(worker *Worker) *sender {
	return &sender{worker: worker, wake: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
}

func (s *sender) report(report *pb.RunReport) {
	s.mutex.Lock()
	if !s.replaceProgress(report) {
		s.reports = append(s.reports, report)
	}
	s.mutex.Unlock()
	signal(s.wake)
}

// replaceProgress drops an older progress of the run that was not sent yet.
func (s *sender) replaceProgress(report *pb.RunReport) bool {
	if report.GetProgress() == nil {
		return false
	}
	for position, waiting := range s.reports {
		if waiting.GetProgress() != nil && waiting.GetLease() == report.GetLease() {
			s.reports[position] = report
			return true
		}
	}
	return false
}

func (s *sender) log(r *run, entry *pb.LogEntry) {
	s.mutex.Lock()
	s.logs = append(s.logs, logLine{r, entry})
	s.mutex.Unlock()
	signal(s.wake)
}

func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

func (s *sender) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		for s.sendOnce(ctx) {
		}
		signal(s.idle)
	}
}

// drain returns once everything is sent.
func (s *sender) drain(ctx context.Context) {
	for {
		s.mutex.Lock()
		done := len(s.reports) == 0 && len(s.logs) == 0 && !s.busy
		s.mutex.Unlock()
		if done || ctx.Err() != nil {
			return
		}
		signal(s.wake)
		<-s.idle
	}
}

// sendOnce sends what waits, logs before the reports that end their runs; false if nothing waited.
func (s *sender) sendOnce(ctx context.Context) bool {
	logs, reports := s.take()
	if len(logs) > 0 {
		s.send(ctx, "logs", func() error { return s.appendLogs(ctx, logs) })
	}
	if len(reports) > 0 {
		s.send(ctx, "reports", func() error { return s.sendReports(ctx, reports) })
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.busy = false
	return len(s.logs)+len(s.reports) > 0 && ctx.Err() == nil
}

func (s *sender) take() ([]logLine, []*pb.RunReport) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.busy = true
	// Reports wait until all log lines before them are on their way.
	count, size := 0, 0
	for count < len(s.logs) && count < maxEntries && size < maxBytes {
		size += len(s.logs[count].entry.GetMessage())
		count++
	}
	logs := s.logs[:count:count]
	s.logs = s.logs[count:]
	if len(s.logs) > 0 {
		return logs, nil
	}
	count, size = 0, 0
	for count < len(s.reports) && count < maxReports && size < maxBytes {
		size += proto.Size(s.reports[count])
		count++
	}
	reports := s.reports[:count:count]
	s.reports = s.reports[count:]
	return logs, reports
}

// send repeats a call until it is answered; what is refused for good is dropped.
func (s *sender) send(ctx context.Context, what string, call func() error) {
	if err := s.worker.repeated(ctx, call); err != nil && ctx.Err() == nil {
		s.worker.logger.Error("the server refuses "+what, "worker", s.worker.id, "error", err)
	}
}

func (s *sender) appendLogs(ctx context.Context, lines []logLine) error {
	var batches []*pb.LogBatch
	byRun := map[*run]*pb.LogBatch{}
	for _, line := range lines {
		batch := byRun[line.run]
		if batch == nil {
			batch = &pb.LogBatch{Lease: line.run.assignment.GetLease()}
			byRun[line.run] = batch
			batches = append(batches, batch)
		}
		batch.Entries = append(batch.Entries, line.entry)
	}
	_, err := s.worker.stub.AppendWorkLogs(ctx, &pb.AppendWorkLogsRequest{WorkerId: s.worker.id, Batches: batches})
	return err
}

func (s *sender) sendReports(ctx context.Context, reports []*pb.RunReport) error {
	for len(reports) > 0 {
		response, err := s.worker.stub.ReportWork(ctx, &pb.ReportWorkRequest{WorkerId: s.worker.id, Reports: reports})
		if err != nil {
			return err
		}
		var again []*pb.RunReport
		for position, result := range response.GetResults() {
			if result.GetError().GetCode() == 0 {
				continue
			}
			refused := taskyard.FromStatus(result.GetError())
			if refused.Retryable() {
				again = append(again, reports[position])
				continue
			}
			s.worker.logger.Warn("report refused", "task", reports[position].GetLease().GetTask(), "error", refused)
		}
		if reports = again; len(reports) > 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}
