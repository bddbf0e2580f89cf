// Command recorder runs kube-scheduler itself through scripts, with plugins that record every call.
//
// It reads one JSON script per line on standard input and writes one JSON outcome per line on standard output, until
// its input ends. The scheduler is the whole one, over an API server in memory; all of it lives in a bubble of
// testing/synctest, whose clock moves on as soon as everybody waits: a minute of a script takes milliseconds.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	klog.SetLogger(klog.Logger{})
	utilruntime.ErrorHandlers = nil // one of them sleeps by a clock from outside the bubble
	metrics.Register()
	// The goroutine that listens to signals must be there before the bubble: the scheduler's debugger asks for one.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "scripts", F: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if err := serve(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, "recorder:", err)
				os.Exit(1)
			}
			os.Exit(0) // the bubble need not wait for goroutines that never end
		})
	}}}, nil, nil)
}

func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		var asked script
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		if err := encoder.Encode(run(asked)); err != nil {
			return err
		}
	}
	return lines.Err()
}
