package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "taskyard.dev/go/taskyard/v1"
)

// spool holds the reports that are not acknowledged, each a file that is synced before its report is sent.
type spool struct {
	folder  string
	next    int64
	reports []*pb.RunReport
}

func openSpool(data string) (*spool, error) {
	s := &spool{folder: filepath.Join(data, "spool"), next: 1}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, err
	}
	// The last seq of the former process: seqs are not used twice.
	if text, err := os.ReadFile(filepath.Join(data, "spool", "last")); err == nil {
		last, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		s.next = last + 1
	}
	files, err := filepath.Glob(filepath.Join(s.folder, "*.report"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		report := &pb.RunReport{}
		if err := proto.Unmarshal(content, report); err != nil {
			return nil, fmt.Errorf("%s is damaged (%w); remove it to give its report up", file, err)
		}
		s.reports = append(s.reports, report)
		s.next = max(s.next, report.GetSeq()+1)
	}
	return s, nil
}

func (s *spool) file(seq int64) string {
	return filepath.Join(s.folder, fmt.Sprintf("%019d.report", seq))
}

// add stores a report durably under the next seq.
func (s *spool) add(report *pb.RunReport) error {
	report.Seq = s.next
	content, err := proto.Marshal(report)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(s.folder, "last"), []byte(strconv.FormatInt(report.Seq, 10))); err != nil {
		return err
	}
	if err := writeSynced(s.file(report.Seq), content); err != nil {
		return err
	}
	s.next++
	s.reports = append(s.reports, report)
	return nil
}

func writeSynced(name string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// acknowledge deletes the reports up to a seq and returns them.
func (s *spool) acknowledge(through int64) []*pb.RunReport {
	count := 0
	for count < len(s.reports) && s.reports[count].GetSeq() <= through {
		os.Remove(s.file(s.reports[count].GetSeq()))
		count++
	}
	acknowledged := s.reports[:count]
	s.reports = s.reports[count:]
	return acknowledged
}

// after returns up to `limit` reports behind a seq.
func (s *spool) after(seq int64, limit int) []*pb.RunReport {
	first := sort.Search(len(s.reports), func(i int) bool { return s.reports[i].GetSeq() > seq })
	return s.reports[first:min(len(s.reports), first+max(0, limit))]
}

func isOutcome(report *pb.RunReport) bool {
	return report.GetStarted() == nil && report.GetProgress() == nil
}
