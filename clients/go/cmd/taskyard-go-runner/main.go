// taskyard-go-runner is a small runner for commands: the link's contract in a few hundred lines of Go.
//
// It keeps the rules of runner_link_service.proto; SIGTERM drains it. It has no sandbox and no limits: commands run as its own
// user. The runner of this repository's services/runner has both.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	taskyard "taskyard.dev/go"
	pb "taskyard.dev/go/taskyard/v1"
)

func main() {
	scheduler := flag.String("scheduler", os.Getenv("TASKYARD_SCHEDULER"), "host:port of the scheduler")
	host, _ := os.Hostname()
	id := flag.String("id", host, "stable id of this runner")
	data := flag.String("data-dir", "taskyard-go-runner", "directory for the spool and running tasks")
	capacity := flag.Int("capacity", 1, "most tasks at a time")
	grace := flag.Duration("drain-timeout", 30*time.Second, "after SIGTERM, how long tasks may take to finish")
	flag.Parse()
	if *scheduler == "" {
		log.Fatal("no scheduler is configured; use --scheduler or set TASKYARD_SCHEDULER")
	}
	client, err := taskyard.New(taskyard.WithAddress(*scheduler), taskyard.WithScheduler(*scheduler), taskyard.WithKey(os.Getenv("TASKYARD_KEY")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	connection, err := client.SchedulerConn()
	if err != nil {
		log.Fatal(err)
	}
	spool, err := openSpool(*data)
	if err != nil {
		log.Fatal(err)
	}
	agent := newAgent(*id, *data, *capacity, spool)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		agent.leave(*grace)
		<-signals
		agent.leave(0)
	}()
	if err := agent.serve(context.Background(), client, pb.NewRunnerLinkServiceClient(connection)); err != nil {
		log.Fatal(err)
	}
}
