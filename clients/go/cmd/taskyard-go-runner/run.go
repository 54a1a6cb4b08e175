package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "taskyard.dev/go/taskyard/v1"
)

const (
	maxLine = 64 << 10
	// maxBuffered is how much of a run's log waits for its acknowledgement; beyond it the oldest lines are dropped.
	maxBuffered = 4 << 20
)

// run is one lease and its command. The agent's mutex guards it.
type run struct {
	lease      *pb.LeaseRef
	assignment *pb.Assignment
	state      pb.HeldState
	// listed is the state that the scheduler has acknowledged.
	listed  pb.HeldState
	expires time.Time
	// covered is the first heartbeat of the session that lists the run; its acknowledgement and later ones renew the lease.
	covered int64
	process *os.Process
	// stop is the report that a stopped command ends with; nil for one that ends by itself.
	stop    *pb.RunReport
	aborted bool

	logs         []*pb.LogEntry
	logBytes     int
	logSequence  int64
	logSent      int64
	droppedLines int64
}

func (r *run) forbidsOverlap() bool {
	return r.assignment.GetSpec().GetOverlap() == pb.OverlapPolicy_OVERLAP_POLICY_FORBID
}

// execute runs the command to its end and reports it.
func (a *agent) execute(r *run) {
	// The kernel ends the command with the thread that started it, so it stays this one's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spec := r.assignment.GetSpec()
	asked := spec.GetExecution().GetCommand()
	folder, err := os.MkdirTemp(a.data, "run-")
	if err != nil {
		a.end(r, failure("START_FAILED", err.Error()))
		return
	}
	defer os.RemoveAll(folder)
	command := exec.Command(asked.GetProgram(), asked.GetArgs()...)
	command.Dir = folder
	if asked.GetWorkingDirectory() != "" {
		command.Dir = asked.GetWorkingDirectory()
	}
	command.Env = environment(r, folder)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if payload := spec.GetPayload().GetRaw(); payload != nil {
		if err := os.WriteFile(filepath.Join(folder, "payload"), payload, 0o600); err != nil {
			a.end(r, failure("START_FAILED", err.Error()))
			return
		}
	}
	output, err1 := command.StdoutPipe()
	errorOutput, err2 := command.StderrPipe()
	if err := errors.Join(err1, err2); err != nil {
		a.end(r, failure("START_FAILED", err.Error()))
		return
	}
	if err := command.Start(); err != nil {
		a.end(r, failure("START_FAILED", err.Error()))
		return
	}
	a.started(r, command.Process)
	if limit := spec.GetAttemptTimeout(); limit != nil {
		timedOut := &pb.RunReport{Report: &pb.RunReport_TimedOut{TimedOut: &pb.RunTimedOut{Code: "ATTEMPT_TIMEOUT"}}}
		defer time.AfterFunc(limit.AsDuration(), func() { a.stop(r, timedOut, a.stopGrace(r)) }).Stop()
	}
	var readers sync.WaitGroup
	readers.Go(func() { a.readLines(r, output, pb.LogSource_LOG_SOURCE_STDOUT) })
	readers.Go(func() { a.readLines(r, errorOutput, pb.LogSource_LOG_SOURCE_STDERR) })
	readers.Wait()
	command.Wait()
	// What the command left behind in its group ends with it.
	syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	a.end(r, outcome(command.ProcessState))
}

func environment(r *run, folder string) []string {
	lease := r.lease
	variables := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TASKYARD_TASK=" + lease.GetTask(),
		fmt.Sprintf("TASKYARD_ATTEMPT=%d", r.assignment.GetAttempt()), fmt.Sprintf("TASKYARD_GENERATION=%d", lease.GetGeneration()),
		fmt.Sprintf("TASKYARD_FENCE=%d.%d", lease.GetGeneration(), lease.GetLeaseId()),
		"TASKYARD_TASK_ID=" + lease.GetTask()[strings.LastIndex(lease.GetTask(), "/")+1:],
		"TASKYARD_PAYLOAD_FILE=" + filepath.Join(folder, "payload")}
	for _, each := range r.assignment.GetSpec().GetEnv() {
		variables = append(variables, each.GetName()+"="+each.GetValue())
	}
	return variables
}

func outcome(state *os.ProcessState) *pb.RunReport {
	code := int32(state.ExitCode())
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int32(status.Signal())
	}
	if code == 0 {
		return &pb.RunReport{Report: &pb.RunReport_Succeeded{Succeeded: &pb.RunSucceeded{ExitCode: &code}}}
	}
	report := failure("EXIT_NONZERO", fmt.Sprintf("exit code %d", code))
	report.GetFailed().ExitCode = &code
	return report
}

func failure(code, message string) *pb.RunReport {
	return &pb.RunReport{Report: &pb.RunReport_Failed{Failed: &pb.RunFailed{Error: &pb.TaskError{
		ErrorClass: pb.ErrorClass_ERROR_CLASS_TRANSIENT, Code: code, Message: message}}}}
}

func released(reason pb.ReleaseReason, message string) *pb.RunReport {
	return &pb.RunReport{Report: &pb.RunReport_Released{Released: &pb.RunReleased{Reason: reason, Message: message}}}
}

func (a *agent) readLines(r *run, source io.Reader, from pb.LogSource) {
	lines := bufio.NewReaderSize(source, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			a.addLine(r, string(trimNewline(line)), from)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func trimNewline(line []byte) []byte {
	if line[len(line)-1] == '\n' {
		return line[:len(line)-1]
	}
	return line
}

func (a *agent) addLine(r *run, text string, from pb.LogSource) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	r.logSequence++
	r.logs = append(r.logs, &pb.LogEntry{Sequence: r.logSequence, Time: timestamppb.Now(), Level: pb.LogLevel_LOG_LEVEL_INFO,
		Message: toValid(text), Source: from})
	for r.logBytes += len(text); r.logBytes > maxBuffered; r.droppedLines++ {
		r.logBytes -= len(r.logs[0].GetMessage())
		r.logs = r.logs[1:]
	}
	a.wakeUp()
}

// end writes the outcome of a run into the spool.
func (a *agent) end(r *run, report *pb.RunReport) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if r.aborted {
		return
	}
	if r.stop != nil {
		report = r.stop
	}
	written := r.logSequence
	report.LogSequence = &written
	a.report(r, report)
	r.state, r.process = pb.HeldState_HELD_STATE_ENDED, nil
	a.wakeUp()
}

func (a *agent) started(r *run, process *os.Process) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	r.process = process
	if r.aborted || r.stop != nil {
		syscall.Kill(-process.Pid, syscall.SIGKILL)
		return
	}
	a.report(r, &pb.RunReport{Report: &pb.RunReport_Started{Started: &pb.RunStarted{Handle: fmt.Sprintf("pid %d", process.Pid)}}})
	r.state = pb.HeldState_HELD_STATE_RUNNING
	a.wakeUp()
}

// report writes into the spool; the caller holds the mutex. A runner that cannot keep its reports must not go on.
func (a *agent) report(r *run, report *pb.RunReport) {
	report.Lease, report.Time = r.lease, timestamppb.Now()
	if err := a.spool.add(report); err != nil {
		log.Fatalf("the spool cannot be written (%v); free the disk of --data-dir", err)
	}
}

// stop ends a command politely, after the grace by force; its run ends with `report`.
func (a *agent) stop(r *run, report *pb.RunReport, grace time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.stopLocked(r, report, grace)
}

func (a *agent) stopLocked(r *run, report *pb.RunReport, grace time.Duration) {
	if r.stop != nil || r.state == pb.HeldState_HELD_STATE_ENDED {
		return
	}
	r.stop, r.state = report, pb.HeldState_HELD_STATE_STOPPING
	a.wakeUp()
	if r.process == nil {
		return
	}
	process := r.process
	syscall.Kill(-process.Pid, syscall.SIGTERM)
	time.AfterFunc(grace, func() {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		if r.process == process {
			syscall.Kill(-process.Pid, syscall.SIGKILL)
		}
	})
}

// abort ends a command at once and reports nothing; the caller holds the mutex.
func (a *agent) abort(r *run) {
	r.aborted = true
	if r.process != nil {
		syscall.Kill(-r.process.Pid, syscall.SIGKILL)
	}
	a.forget(r)
}

func (a *agent) stopGrace(r *run) time.Duration {
	if grace := r.assignment.GetSpec().GetStopGracePeriod(); grace != nil {
		return grace.AsDuration()
	}
	return 30 * time.Second
}
