package main

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"

	taskyard "taskyard.dev/go"
	pb "taskyard.dev/go/taskyard/v1"
)

const (
	firstBackoff   = 500 * time.Millisecond
	maxBackoff     = 30 * time.Second
	welcomeTimeout = 15 * time.Second
	batchBytes     = 256 << 10
	tickInterval   = 200 * time.Millisecond
)

var errSilent = errors.New("no acknowledgement for three intervals")

// session is the state of one stream. The agent's mutex guards it.
type session struct {
	interval    time.Duration
	lease       time.Duration
	window      int
	windowBytes int64
	holdBulk    bool

	heartbeat   int64
	sent        map[int64]time.Time
	listed      map[int64]map[key]pb.HeldState
	dropped     map[int64]int
	beatAt      time.Time
	lastAck     time.Time
	full        bool
	sentSeq     int64
	unackedLogs int64
	goodbye     *pb.ServerGoodbye
	said        bool
}

// serve keeps a session open until the runner has left.
func (a *agent) serve(ctx context.Context, client *taskyard.Client, stub pb.RunnerLinkServiceClient) error {
	failures := 0
	for {
		pause, welcomed, err := a.connect(ctx, stub)
		if err == nil && pause < 0 {
			return nil
		}
		if welcomed {
			failures = 0
		}
		if err != nil {
			err = client.TranslateScheduler(ctx, err)
			failures++
			ceiling := min(maxBackoff, firstBackoff<<min(failures, 10))
			pause = time.Duration(rand.Float64() * float64(ceiling))
			log.Printf("the link is lost (%v); again in %v", err, pause.Round(time.Millisecond))
		}
		ends := time.Now().Add(pause)
		for time.Now().Before(ends) {
			time.Sleep(min(tickInterval, time.Until(ends)))
			a.mutex.Lock()
			a.tick()
			gone := a.done()
			a.mutex.Unlock()
			if gone {
				return nil
			}
		}
	}
}

// connect is one session. It returns how long to wait before the next one; negative after the runner's own goodbye.
func (a *agent) connect(ctx context.Context, stub pb.RunnerLinkServiceClient) (time.Duration, bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := stub.Connect(ctx, grpc.MaxCallRecvMsgSize(8<<20))
	if err != nil {
		return 0, false, err
	}
	a.mutex.Lock()
	hello, sent := a.hello(), time.Now()
	a.mutex.Unlock()
	if err := stream.Send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Hello{Hello: hello}}); err != nil {
		_, err = stream.Recv()
		return 0, false, err
	}
	late := time.AfterFunc(welcomeTimeout, cancel)
	response, err := stream.Recv()
	late.Stop()
	if err != nil {
		return 0, false, err
	}
	a.begin(response.GetWelcome(), sent)
	ended := make(chan error, 1)
	go func() { ended <- a.read(stream) }()
	pause, err := a.write(stream, ended)
	return pause, true, err
}

func (a *agent) begin(welcome *pb.Welcome, sent time.Time) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	s := &session{interval: 10 * time.Second, lease: welcome.GetLeaseDuration().AsDuration(), window: 1000, windowBytes: 16 << 20,
		sent: map[int64]time.Time{0: sent}, listed: map[int64]map[key]pb.HeldState{}, dropped: map[int64]int{}, lastAck: time.Now()}
	if welcome.GetHeartbeatInterval() != nil {
		s.interval = welcome.GetHeartbeatInterval().AsDuration()
	}
	s.beatAt = time.Now().Add(s.interval)
	s.set(welcome.GetFlow())
	a.session, a.dropped = s, nil
	for _, each := range a.logging() {
		each.logSent = 0
		if len(each.logs) > 0 {
			each.logSent = each.logs[0].GetSequence() - 1
		}
	}
	for _, each := range a.runs {
		each.expires = sent.Add(s.lease)
	}
	a.drain(welcome.GetDrain())
	a.carryOut(welcome.GetVerdicts())
}

func (s *session) set(flow *pb.FlowControl) {
	if flow.GetMaxUnackedReports() > 0 {
		s.window = int(flow.GetMaxUnackedReports())
	}
	if flow.GetMaxUnackedBytes() > 0 {
		s.windowBytes = flow.GetMaxUnackedBytes()
	}
	s.holdBulk = flow.GetHoldBulk()
}

func (a *agent) drain(request *pb.DrainRequest) {
	if request == nil {
		return
	}
	a.draining, a.exits = true, request.GetExitWhenDrained()
	if request.GetMode() == pb.DrainMode_DRAIN_MODE_RELEASE {
		for _, each := range a.runs {
			if each.state != pb.HeldState_HELD_STATE_ENDED {
				a.stopLocked(each, released(pb.ReleaseReason_RELEASE_REASON_DRAINED, "drained"), a.stopGrace(each))
			}
		}
	}
}

// read handles what arrives and never waits for a write.
func (a *agent) read(stream pb.RunnerLinkService_ConnectClient) error {
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		a.receive(response)
		a.wakeUp()
	}
}

func (a *agent) receive(response *pb.ConnectResponse) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	s := a.session
	switch message := response.GetMessage().(type) {
	case *pb.ConnectResponse_Assignments:
		for _, each := range message.Assignments.GetAssignments() {
			a.accept(each, s.sent[each.GetHeartbeatId()].Add(each.GetLeaseTtl().AsDuration()))
		}
		s.beatAt = time.Now()
	case *pb.ConnectResponse_HeartbeatAck:
		a.acknowledge(message.HeartbeatAck)
	case *pb.ConnectResponse_ReportAck:
		for _, report := range a.spool.acknowledge(message.ReportAck.GetThroughSeq()) {
			if found := a.runs[keyOf(report.GetLease())]; found != nil && isOutcome(report) {
				a.forget(found)
			}
		}
		for _, each := range message.ReportAck.GetRejections() {
			log.Printf("report %d of %s was rejected: %s", each.GetSeq(), each.GetLease().GetTask(), each.GetStatus().GetMessage())
		}
	case *pb.ConnectResponse_LogAck:
		a.acknowledgeLogs(message.LogAck)
	case *pb.ConnectResponse_Command:
		a.carryOut(message.Command.GetLeases().GetVerdicts())
		a.drain(message.Command.GetDrain())
		if message.Command.GetUndrain() != nil && !a.leaving {
			a.draining, a.exits = false, false
			s.beatAt = time.Now()
		}
	case *pb.ConnectResponse_Flow:
		s.set(message.Flow)
	case *pb.ConnectResponse_Goodbye:
		s.goodbye = message.Goodbye
	}
}

func (a *agent) acknowledge(ack *pb.HeartbeatAck) {
	s := a.session
	s.lastAck = time.Now()
	sent, known := s.sent[ack.GetHeartbeatId()]
	if known && ack.GetLeaseTtl() != nil {
		for _, each := range a.runs {
			// The lease counts from the sending, so a late acknowledgement never shortens a newer one.
			until := sent.Add(ack.GetLeaseTtl().AsDuration())
			if each.covered <= ack.GetHeartbeatId() && until.After(each.expires) {
				each.expires = until
			}
		}
	}
	for each, state := range s.listed[ack.GetHeartbeatId()] {
		if found := a.runs[each]; found != nil {
			found.listed = state
		}
	}
	if count := s.dropped[ack.GetHeartbeatId()]; count > 0 {
		a.dropped = a.dropped[min(count, len(a.dropped)):]
	}
	// An assignment names a heartbeat up to this one; older ones are not needed any more.
	for id := range s.sent {
		if id != 0 && id < ack.GetHeartbeatId()-16 {
			delete(s.sent, id)
			delete(s.listed, id)
			delete(s.dropped, id)
		}
	}
	if ack.GetHeartbeatInterval() != nil {
		s.interval = ack.GetHeartbeatInterval().AsDuration()
	}
	if ack.GetFullRequested() {
		s.full, s.beatAt = true, time.Now()
	}
	a.carryOut(ack.GetVerdicts())
}

func (a *agent) acknowledgeLogs(ack *pb.LogAck) {
	for _, each := range a.logging() {
		if keyOf(each.lease) != keyOf(ack.GetLease()) {
			continue
		}
		rejected := ack.GetStatus().GetCode() != 0
		for len(each.logs) > 0 && (rejected || each.logs[0].GetSequence() <= ack.GetThroughSequence()) {
			size := len(each.logs[0].GetMessage())
			each.logBytes -= size
			if each.logs[0].GetSequence() <= each.logSent {
				a.session.unackedLogs -= int64(size)
			}
			each.logs = each.logs[1:]
		}
	}
	a.tails = slices.DeleteFunc(a.tails, func(each *run) bool { return len(each.logs) == 0 })
}

// write sends by class: heartbeat, reports, logs, goodbye.
func (a *agent) write(stream pb.RunnerLinkService_ConnectClient, ended <-chan error) (time.Duration, error) {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		a.mutex.Lock()
		a.tick()
		request := a.next()
		silent := time.Since(a.session.lastAck) > 3*a.session.interval+tickInterval
		goodbye, said := a.session.goodbye, a.session.said
		a.mutex.Unlock()
		if silent {
			return 0, errSilent
		}
		if request != nil {
			if err := stream.Send(request); err != nil {
				// The reason of a broken stream comes to the reader.
				return 0, <-ended
			}
			continue
		}
		if goodbye != nil || said {
			stream.CloseSend()
			err := <-ended
			if !errors.Is(err, io.EOF) {
				return 0, err
			}
			if said {
				return -1, nil
			}
			return goodbye.GetReconnectAfter().AsDuration(), nil
		}
		select {
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return firstBackoff, nil
			}
			return 0, err
		case <-a.wake:
		case <-tick.C:
		}
	}
}

// next returns the message to send now, nil if there is none.
func (a *agent) next() *pb.ConnectRequest {
	s := a.session
	if s.said {
		return nil
	}
	if !time.Now().Before(s.beatAt) {
		return &pb.ConnectRequest{Message: &pb.ConnectRequest_Heartbeat{Heartbeat: a.heartbeat()}}
	}
	inFlight := len(a.spool.reports) - len(a.spool.after(s.sentSeq, len(a.spool.reports)))
	if reports := a.spool.after(s.sentSeq, min(100, s.window-inFlight)); len(reports) > 0 {
		s.sentSeq = reports[len(reports)-1].GetSeq()
		return &pb.ConnectRequest{Message: &pb.ConnectRequest_Reports{Reports: &pb.ReportBatch{Reports: reports}}}
	}
	if !s.holdBulk {
		for _, each := range a.logging() {
			if batch := a.logBatch(each); batch != nil {
				return &pb.ConnectRequest{Message: &pb.ConnectRequest_Logs{Logs: batch}}
			}
		}
	}
	if a.done() {
		s.said = true
		reason := pb.RunnerGoodbyeReason_RUNNER_GOODBYE_REASON_SHUTDOWN
		if !a.leaving {
			reason = pb.RunnerGoodbyeReason_RUNNER_GOODBYE_REASON_DRAINED
		}
		return &pb.ConnectRequest{Message: &pb.ConnectRequest_Goodbye{Goodbye: &pb.RunnerGoodbye{Reason: reason}}}
	}
	return nil
}

func (a *agent) heartbeat() *pb.Heartbeat {
	s := a.session
	s.heartbeat++
	s.beatAt = time.Now().Add(s.interval)
	beat := &pb.Heartbeat{HeartbeatId: s.heartbeat, Free: a.free(), HeldCount: int32(len(a.runs)), Full: s.full, Draining: a.leaving,
		SpoolDepth: int64(len(a.spool.reports)), Dropped: append([]*pb.LeaseRef(nil), a.dropped...)}
	listed := map[key]pb.HeldState{}
	for each, found := range a.runs {
		found.covered = min(found.covered, s.heartbeat)
		if s.full || found.listed != found.state {
			beat.Changed = append(beat.Changed, &pb.HeldTask{Lease: found.lease, State: found.state})
			listed[each] = found.state
		}
	}
	s.sent[s.heartbeat], s.listed[s.heartbeat], s.dropped[s.heartbeat], s.full = time.Now(), listed, len(beat.Dropped), false
	return beat
}

func (a *agent) logBatch(r *run) *pb.LogBatch {
	s := a.session
	batch := &pb.LogBatch{Lease: r.lease, DroppedCount: r.droppedLines}
	size := int64(0)
	for _, entry := range r.logs {
		if entry.GetSequence() <= r.logSent {
			continue
		}
		if len(batch.Entries) == 1000 || size > batchBytes || s.unackedLogs+size > s.windowBytes {
			break
		}
		batch.Entries = append(batch.Entries, entry)
		size += int64(len(entry.GetMessage()))
	}
	if len(batch.Entries) == 0 {
		return nil
	}
	s.unackedLogs += size
	r.logSent, r.droppedLines = batch.Entries[len(batch.Entries)-1].GetSequence(), 0
	return batch
}
