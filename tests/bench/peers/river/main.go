// Command peer measures River as the other programs of this folder measure theirs: `peer MODE COUNT`
// prints "ready", waits for a line, works, and prints one line of JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	batch     = 1000
	inFlight  = 2
	callers   = 50
	perSecond = 100
	warmUp    = 100
)

// NoOp carries the time of its creation, if it is to be measured.
type NoOp struct {
	Created float64 `json:"created,omitempty"`
}

func (NoOp) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[NoOp]
	seen chan float64
}

func (w *worker) Work(_ context.Context, job *river.Job[NoOp]) error {
	w.seen <- now() - job.Args.Created
	return nil
}

func now() float64 { return float64(time.Now().UnixNano()) / 1e9 }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func announce(stdin *bufio.Reader) {
	fmt.Println("ready")
	_, err := stdin.ReadString('\n')
	check(err)
}

func main() {
	ctx := context.Background()
	mode := os.Args[1]
	// The address is in the environment, as libpq has it.
	config, err := pgxpool.ParseConfig("")
	check(err)
	config.MaxConns = callers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	check(err)
	driver := riverpgxv5.New(pool)
	if mode == "setup" {
		migrator, err := rivermigrate.New(driver, nil)
		check(err)
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		check(err)
		return
	}
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	work := &worker{seen: make(chan float64, count+warmUp)}
	workers := river.NewWorkers()
	river.AddWorker(workers, work)
	client, err := river.NewClient(driver, &river.Config{
		// As short as they may usefully be: the defaults are 100 ms and 1 s.
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:           workers,
	})
	check(err)
	stdin := bufio.NewReader(os.Stdin)
	var result any
	switch mode {
	case "batch":
		insert := func() {
			params := make([]river.InsertManyParams, batch)
			for i := range params {
				params[i].Args = NoOp{}
			}
			_, err := client.InsertManyFast(ctx, params)
			check(err)
		}
		insert()
		announce(stdin)
		result = repeat(count/batch, inFlight, insert)
	case "single":
		insert := func() {
			_, err := client.Insert(ctx, NoOp{}, nil)
			check(err)
		}
		repeat(warmUp, callers, insert)
		announce(stdin)
		result = repeat(count, callers, insert)
	case "drain":
		announce(stdin)
		check(client.Start(ctx))
		<-work.seen
		first := now()
		for range count - 1 {
			<-work.seen
		}
		result = map[string]float64{"first": first, "last": now()}
	case "latency":
		check(client.Start(ctx))
		paced(ctx, client, work, warmUp)
		announce(stdin)
		result = map[string][]float64{"latencies": paced(ctx, client, work, count)}
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
	// Until the caller has read what this process used.
	_, _ = stdin.ReadString('\n')
}

// repeat makes calls from many goroutines and returns how long all of them took.
func repeat(calls, callers int, call func()) map[string]float64 {
	var left atomic.Int64
	left.Store(int64(calls))
	var group sync.WaitGroup
	start := time.Now()
	for range callers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				call()
			}
		})
	}
	group.Wait()
	return map[string]float64{"seconds": time.Since(start).Seconds()}
}

// paced creates jobs at a steady rate and returns after how many seconds each was started.
func paced(ctx context.Context, client *river.Client[pgx.Tx], work *worker, count int) []float64 {
	start := time.Now()
	for n := range count {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / perSecond)))
		go func() {
			_, err := client.Insert(ctx, NoOp{Created: now()}, nil)
			check(err)
		}()
	}
	found := make([]float64, count)
	for n := range found {
		found[n] = <-work.seen
	}
	return found
}
