package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// record gathers what a run does.
type record struct {
	mutex sync.Mutex
	// asking is held while a call is noted: some points are asked for several nodes, or of several plugins, at a time.
	asking sync.Mutex
	// start is when the scheduler was started.
	start  time.Time
	result outcome
	cycles map[string]int
	asked  map[string]int
}

func newRecord(id string) *record {
	return &record{
		result: outcome{ID: id, Calls: []call{}, Events: []event{}, Writes: []write{}, Pods: []podLine{}},
		cycles: map[string]int{},
		asked:  map[string]int{},
	}
}

func (r *record) now() float64 {
	return math.Round(time.Since(r.start).Seconds()*1e6) / 1e6
}

func (r *record) called(one call) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	one.At = r.now()
	r.result.Calls = append(r.result.Calls, one)
}

// nextCycle counts the cycles of a pod.
func (r *record) nextCycle(pod string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.cycles[pod]++
	return r.cycles[pod]
}

// nextAsked counts how often a plugin was asked where there are no cycles.
func (r *record) nextAsked(key string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.asked[key]++
	return r.asked[key]
}

// written notes what a patch of the scheduler changes in a pod's status.
func (r *record) written(old, pod *v1.Pod) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	line := write{At: r.now(), Pod: pod.Name}
	if was, is := scheduled(old), scheduled(pod); !slices.Equal(was, is) {
		line.Condition = is
	}
	if old.Status.NominatedNodeName != pod.Status.NominatedNodeName {
		line.Nominated = &pod.Status.NominatedNodeName
	}
	if line.Condition != nil || line.Nominated != nil {
		r.result.Writes = append(r.result.Writes, line)
	}
}

// groupWritten notes what a patch of the scheduler changes in a pod group's condition.
func (r *record) groupWritten(name string, was, is []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !slices.Equal(was, is) {
		r.result.Writes = append(r.result.Writes, write{At: r.now(), Group: name, Condition: is})
	}
}

func (r *record) bound(pod *v1.Pod) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.result.Writes = append(r.result.Writes, write{At: r.now(), Pod: pod.Name, Node: pod.Spec.NodeName})
}

func (r *record) end(pods []v1.Pod, groups []groupLine, claims []claimLine) outcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for i := range pods {
		pod := &pods[i]
		r.result.Pods = append(r.result.Pods,
			podLine{pod.Name, pod.Spec.NodeName, pod.Status.NominatedNodeName, scheduled(pod)})
	}
	slices.SortFunc(r.result.Pods, func(a, b podLine) int { return strings.Compare(a.Pod, b.Pod) })
	r.result.Groups, r.result.Claims = groups, claims
	return r.result
}

func scheduled(pod *v1.Pod) []string {
	for _, one := range pod.Status.Conditions {
		if one.Type == v1.PodScheduled {
			return []string{string(one.Status), one.Reason, one.Message}
		}
	}
	return nil
}

// recorder takes the events that the scheduler emits, before anything aggregates them.
type recorder struct {
	record *record
}

var _ events.EventRecorderLogger = &recorder{}

func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	r.record.mutex.Lock()
	defer r.record.mutex.Unlock()
	text := note
	if len(args) > 0 {
		text = fmt.Sprintf(note, args...)
	}
	r.record.result.Events = append(r.record.result.Events,
		event{r.record.now(), regarding.(*v1.Pod).Name, kind, reason, action, text})
}

func (r *recorder) WithLogger(klog.Logger) events.EventRecorderLogger {
	return r
}
