package taskyard

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = time.Second
)

// retryTimer waits longer with each failure in a row, for at most `limit` since the last success.
type retryTimer struct {
	limit, delay time.Duration
	deadline     time.Time
}

func newRetryTimer(limit time.Duration) *retryTimer {
	timer := &retryTimer{limit: limit}
	timer.refresh()
	return timer
}

func (t *retryTimer) refresh() {
	t.delay, t.deadline = firstDelay, time.Now().Add(t.limit)
}

// wait returns nil when the call should be repeated, and the error if it is permanent or time is up.
func (t *retryTimer) wait(ctx context.Context, err error) error {
	delay := time.Duration(float64(t.delay) * (0.5 + rand.Float64()/2))
	var sent *Error
	if errors.As(err, &sent) {
		delay = max(delay, sent.RetryAfter)
	}
	if !transient(err) || time.Now().Add(delay).After(t.deadline) {
		return err
	}
	t.delay = min(maxDelay, 2*t.delay)
	return sleep(ctx, delay)
}

func sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
