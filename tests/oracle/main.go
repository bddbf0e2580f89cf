// Command oracle answers scheduling cases with kube-scheduler's own framework and plugins.
//
// It reads one JSON case per line on standard input and writes one JSON answer per line on standard
// output, until its input ends. It never talks to an API server and never looks at a clock: a case is
// all it knows. Every case gets a fresh environment, so that no answer depends on the cases before it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// answer is one line of output: the record of a single decision, the records of a sequence,
// or the reason why the case could not be evaluated at all.
type answer struct {
	ID      string   `json:"id"`
	Record  *record  `json:"record,omitempty"`
	Records []record `json:"records,omitempty"`
	Invalid string   `json:"invalid,omitempty"`
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	metrics.Register()
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriterSize(out, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := encoder.Encode(respond(line)); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// respond turns a panic of a plugin into an answer, since the other cases do not deserve to be lost.
func respond(line []byte) (result answer) {
	var question request
	defer func() {
		if trouble := recover(); trouble != nil {
			result = answer{ID: question.ID, Invalid: fmt.Sprintf("panic: %v\n%s", trouble, debug.Stack())}
		}
	}()
	if err := json.Unmarshal(line, &question); err != nil {
		return answer{ID: question.ID, Invalid: err.Error()}
	}
	records, err := question.evaluate()
	if err != nil {
		return answer{ID: question.ID, Invalid: err.Error()}
	}
	if question.Sequence != nil {
		return answer{ID: question.ID, Records: records}
	}
	return answer{ID: question.ID, Record: &records[0]}
}
