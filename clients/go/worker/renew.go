package worker

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "taskyard.dev/go/taskyard/v1"
)

// maxLeases is how many leases one call renews.
const maxLeases = 5000

// renewLoop renews every lease each third of its duration and carries out the verdicts. A run whose lease cannot be renewed in
// time is lost: another one may begin.
func (w *Worker) renewLoop(ctx context.Context) {
	interval := w.lease / 3
	tick := time.NewTicker(min(interval, time.Second))
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.loseExpired()
		if time.Since(last) < interval {
			continue
		}
		if held := w.held(); len(held) == 0 || w.renew(ctx, held) {
			last = time.Now()
		}
	}
}

func (w *Worker) loseExpired() {
	now := time.Now()
	for _, each := range w.held() {
		if now.After(*each.expires.Load()) {
			each.lose()
		}
	}
}

func (w *Worker) renew(ctx context.Context, held []*run) bool {
	for first := 0; first < len(held); first += maxLeases {
		part := held[first:min(first+maxLeases, len(held))]
		if !w.renewPart(ctx, part) {
			return false
		}
	}
	return true
}

func (w *Worker) renewPart(ctx context.Context, held []*run) bool {
	request := &pb.RenewWorkRequest{WorkerId: w.id, LeaseDuration: durationpb.New(w.lease)}
	byTask := map[string]*run{}
	for _, each := range held {
		request.Leases = append(request.Leases, each.assignment.GetLease())
		byTask[each.assignment.GetLease().GetTask()] = each
	}
	// A call that hangs must not keep the other runs from noticing the end of their leases.
	ctx, cancel := context.WithTimeout(ctx, min(w.lease/3, 5*time.Second))
	defer cancel()
	sent := time.Now()
	response, err := w.stub.RenewWork(ctx, request)
	if err != nil {
		w.logger.Warn("renewal failed", "worker", w.id, "error", w.client.TranslateScheduler(context.Background(), err))
		return false
	}
	aborted := map[*run]bool{}
	for _, verdict := range response.GetVerdicts() {
		found := byTask[verdict.GetLease().GetTask()]
		if found == nil || found.assignment.GetLease().GetGeneration() != verdict.GetLease().GetGeneration() {
			continue
		}
		switch verdict.GetAction() {
		case pb.LeaseAction_LEASE_ACTION_CANCEL:
			found.cancel(&CancelledError{Reason: verdict.GetReason()})
		case pb.LeaseAction_LEASE_ACTION_PAUSE:
			found.cancel(ErrPaused)
		case pb.LeaseAction_LEASE_ACTION_ABORT:
			aborted[found] = true
			found.lose()
		}
	}
	for _, each := range held {
		if !aborted[each] {
			each.extend(sent, response.GetLeaseTtl())
		}
	}
	return true
}
