package main

import (
	"crypto/rand"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	pb "taskyard.dev/go/taskyard/v1"
)

// key names a run.
type key struct {
	task       string
	generation int64
}

func keyOf(lease *pb.LeaseRef) key { return key{lease.GetTask(), lease.GetGeneration()} }

// agent is the runner's state over all its sessions.
type agent struct {
	id, instance, data string
	capacity           int

	mutex sync.Mutex
	spool *spool
	runs  map[key]*run
	// tails are ended runs whose log is not acknowledged in full.
	tails    []*run
	dropped  []*pb.LeaseRef
	draining bool
	// exits is set by a drain after which the process ends.
	exits bool
	// leaving is set by SIGTERM; stopAt is when tasks are given back.
	leaving bool
	stopAt  time.Time
	session *session
	wake    chan struct{}
}

func newAgent(id, data string, capacity int, spool *spool) *agent {
	a := &agent{id: id, instance: newUUID(), data: data, capacity: capacity, spool: spool, runs: map[key]*run{},
		wake: make(chan struct{}, 1)}
	// What the former process ended and nobody acknowledged.
	for _, report := range spool.reports {
		if isOutcome(report) {
			a.runs[keyOf(report.GetLease())] = &run{lease: report.GetLease(), state: pb.HeldState_HELD_STATE_ENDED}
		}
	}
	return a
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func toValid(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func (a *agent) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// leave begins the end: tasks may finish within the grace, then they are given back.
func (a *agent) leave(grace time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.leaving, a.draining, a.stopAt = true, true, time.Now().Add(grace)
	a.wakeUp()
}

func (a *agent) registration() *pb.RunnerRegistration {
	host, _ := os.Hostname()
	return &pb.RunnerRegistration{TaskTypes: []string{"*"}, Capacity: int32(a.capacity), Version: "go", Host: host,
		ExecutionKinds: []pb.ExecutionKind{pb.ExecutionKind_EXECUTION_KIND_COMMAND}}
}

// free is the capacity for more tasks; ended ones use none.
func (a *agent) free() *pb.Capacity {
	live := 0
	for _, each := range a.runs {
		if each.state != pb.HeldState_HELD_STATE_ENDED {
			live++
		}
	}
	if a.draining {
		return &pb.Capacity{}
	}
	return &pb.Capacity{Tasks: int32(max(0, a.capacity-live))}
}

func (a *agent) hello() *pb.Hello {
	hello := &pb.Hello{RunnerId: a.id, InstanceId: a.instance, ProtocolVersion: 1, Registration: a.registration(), Free: a.free(),
		Draining: a.leaving}
	for _, each := range a.runs {
		hello.Held = append(hello.Held, &pb.HeldTask{Lease: each.lease, State: each.state})
		each.listed, each.covered = each.state, 0
	}
	return hello
}

// accept starts an assignment, or releases it; the caller holds the mutex.
func (a *agent) accept(assignment *pb.Assignment, expires time.Time) {
	lease := assignment.GetLease()
	if found := a.runs[keyOf(lease)]; found != nil {
		// The same assignment again.
		return
	}
	made := &run{lease: lease, assignment: assignment, state: pb.HeldState_HELD_STATE_ACCEPTED, expires: expires,
		covered: math.MaxInt64}
	a.runs[keyOf(lease)] = made
	a.wakeUp()
	switch {
	case assignment.GetSpec().GetExecution().GetCommand() == nil:
		a.refuse(made, pb.ReleaseReason_RELEASE_REASON_UNSUPPORTED, "this runner executes commands only")
	case time.Now().After(expires):
		a.refuse(made, pb.ReleaseReason_RELEASE_REASON_NO_CAPACITY, "its lease had run out when it arrived")
	case a.leaving:
		a.refuse(made, pb.ReleaseReason_RELEASE_REASON_DRAINED, "this runner ends")
	default:
		go a.execute(made)
	}
}

func (a *agent) refuse(r *run, reason pb.ReleaseReason, message string) {
	a.report(r, released(reason, message))
	r.state = pb.HeldState_HELD_STATE_ENDED
}

// forget drops a run whose outcome is acknowledged or that was aborted.
func (a *agent) forget(r *run) {
	delete(a.runs, keyOf(r.lease))
	if len(r.logs) > 0 && !r.aborted {
		a.tails = append(a.tails, r)
	}
	a.dropped = append(a.dropped, r.lease)
	a.wakeUp()
}

// logging lists the runs that may have log entries to send.
func (a *agent) logging() []*run {
	found := slices.Clone(a.tails)
	for _, each := range a.runs {
		found = append(found, each)
	}
	return found
}

func (a *agent) carryOut(verdicts []*pb.LeaseVerdict) {
	for _, verdict := range verdicts {
		found := a.runs[keyOf(verdict.GetLease())]
		if found == nil {
			continue
		}
		grace := a.stopGrace(found)
		if verdict.GetGracePeriod() != nil {
			grace = verdict.GetGracePeriod().AsDuration()
		}
		switch verdict.GetAction() {
		case pb.LeaseAction_LEASE_ACTION_CANCEL:
			a.stopLocked(found, &pb.RunReport{Report: &pb.RunReport_Cancelled{Cancelled: &pb.RunCancelled{}}}, grace)
		case pb.LeaseAction_LEASE_ACTION_PAUSE:
			a.stopLocked(found, released(pb.ReleaseReason_RELEASE_REASON_PAUSED, "paused"), grace)
		case pb.LeaseAction_LEASE_ACTION_ABORT:
			a.abort(found)
		}
	}
}

// tick ends what must not go on: work without a lease, and at the end of a drain everything.
func (a *agent) tick() {
	now := time.Now()
	for _, each := range a.runs {
		if each.state == pb.HeldState_HELD_STATE_ENDED {
			continue
		}
		limit := each.expires
		if !each.forbidsOverlap() {
			limit = limit.Add(each.assignment.GetSpec().GetOrphanTimeout().AsDuration())
		}
		if now.After(limit) {
			a.stopLocked(each, released(pb.ReleaseReason_RELEASE_REASON_LOST, "its lease expired"), 0)
		}
		if a.leaving && now.After(a.stopAt) {
			a.stopLocked(each, released(pb.ReleaseReason_RELEASE_REASON_DRAINED, "this runner ends"), a.stopGrace(each))
		}
	}
}

// done reports whether a leaving or drained runner has nothing left.
func (a *agent) done() bool {
	return (a.leaving || a.draining && a.exits) && len(a.runs) == 0 && len(a.spool.reports) == 0 &&
		len(a.tails) == 0
}
