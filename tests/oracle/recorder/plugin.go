package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const cycleKey = "recorder/cycle"

// cycleNumber is which cycle of a pod a state belongs to.
type cycleNumber int

func (n cycleNumber) Clone() fwk.StateData { return n }

// notes are what one plugin wrote into a state: the points that it was asked at.
type notes []string

func (n notes) Clone() fwk.StateData { return slices.Clone(n) }

// plugin does at every point what its script says, and records that it was asked.
type plugin struct {
	script pluginScript
	record *record
	handle fwk.Handle
}

// hinter is a plugin that names the events that it waits for.
type hinter struct{ *plugin }

func (p *plugin) factory() frameworkruntime.PluginFactory {
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		p.handle = handle
		switch {
		case p.script.Ranks != nil:
			return &ranking{p.script}, nil
		case p.script.Placements != nil:
			return newPlacing(ctx, p.script, handle)
		case p.script.Sort:
			return &justSorting{p}, nil
		case p.script.Events != nil:
			return &hinter{p}, nil
		}
		return p, nil
	}
}

func (p *plugin) Name() string { return p.script.Name }

// justSorting is a QueueSort plugin and nothing else.
type justSorting struct{ plugin *plugin }

func (s *justSorting) Name() string { return s.plugin.Name() }

func (s *justSorting) Less(a, b queued) bool {
	return podOf(a).Labels["rank"] < podOf(b).Labels["rank"]
}

// ranking is a Score plugin and nothing else: it distinguishes nodes that are equal for all other plugins.
type ranking struct{ script pluginScript }

func (r *ranking) Name() string { return r.script.Name }

func (r *ranking) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return r.script.Ranks[node.Node().Name], nil
}

func (r *ranking) ScoreExtensions() fwk.ScoreExtensions { return nil }

func (h *hinter) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	found := []fwk.ClusterEventWithHint{}
	for _, one := range h.script.Events {
		registered := fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: fwk.EventResource(one.Resource)}}
		for _, action := range one.Actions {
			registered.Event.ActionType |= actions[action]
		}
		if one.Hint != "" {
			registered.QueueingHintFn = hint(one)
		}
		found = append(found, registered)
	}
	return found, nil
}

var actions = map[string]fwk.ActionType{
	"Add": fwk.Add, "Delete": fwk.Delete, "Update": fwk.Update, "UpdateNodeLabel": fwk.UpdateNodeLabel,
	"UpdateNodeTaint": fwk.UpdateNodeTaint, "UpdateNodeAllocatable": fwk.UpdateNodeAllocatable,
	"UpdatePodLabel": fwk.UpdatePodLabel, "All": fwk.All,
}

func hint(script eventScript) fwk.QueueingHintFn {
	return func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) {
		switch script.Hint {
		case "Queue":
			return fwk.Queue, nil
		case "Error":
			return fwk.QueueSkip, errors.New("the hint failed")
		}
		return fwk.QueueSkip, nil
	}
}

// cycle gives the number of the cycle that a state belongs to; the first to ask makes it.
func (p *plugin) cycle(state fwk.CycleState, pod *v1.Pod) int {
	if found, err := state.Read(cycleKey); err == nil {
		return int(found.(cycleNumber))
	}
	number := cycleNumber(p.record.nextCycle(pod.Name))
	state.Write(cycleKey, number)
	return int(number)
}

// note writes that a point was asked, and returns which others were before.
func (p *plugin) note(state fwk.CycleState, point string) string {
	key := fwk.StateKey("recorder/notes/" + p.Name())
	var before notes
	if found, err := state.Read(key); err == nil {
		before = found.(notes)
	}
	if !slices.Contains(before, point) {
		state.Write(key, append(slices.Clone(before), point))
	}
	others := slices.DeleteFunc(slices.Clone(before), func(one string) bool { return one == point })
	return strings.Join(others, " ")
}

// ask records a call and returns what the script answers to it in this cycle of the pod.
func (p *plugin) ask(point string, state fwk.CycleState, pod *v1.Pod, more call) answer {
	p.record.asking.Lock()
	more.Point, more.Plugin, more.Pod, more.Cycle = point, p.Name(), pod.Name, p.cycle(state, pod)
	more.Notes = p.note(state, point)
	p.record.called(more)
	p.record.asking.Unlock()
	return p.act(p.answer(point, pod.Name, more.Cycle))
}

func (p *plugin) answer(point, pod string, number int) answer {
	found := p.script.Answers[point][pod]
	if number > len(found) {
		return answer{}
	}
	return found[number-1]
}

func (p *plugin) act(found answer) answer {
	for _, one := range found.Do {
		p.do(one)
	}
	return found
}

func (p *plugin) do(one deed) {
	var waiting []string
	if one.Act == "activate" {
		pod, err := p.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(namespace).Get(one.Pod)
		if err == nil {
			p.handle.Activate(klog.Background(), map[string]*v1.Pod{namespace + "/" + one.Pod: pod})
		}
	} else {
		p.handle.IterateOverWaitingPods(func(found fwk.WaitingPod) {
			if found.GetPod().Name == one.Pod {
				waiting = found.GetPendingPlugins()
				slices.Sort(waiting)
			}
		})
		p.release(one)
	}
	p.record.called(call{Point: one.Act, Plugin: one.Plugin, Pod: one.Pod, Waiting: waiting})
}

func (p *plugin) release(one deed) {
	p.handle.IterateOverWaitingPods(func(found fwk.WaitingPod) {
		switch {
		case found.GetPod().Name != one.Pod:
		case one.Act == "allow":
			found.Allow(one.Plugin)
		default:
			found.Reject(one.Plugin, one.Message)
		}
	})
}

var codes = map[string]fwk.Code{
	"Error": fwk.Error, "Unschedulable": fwk.Unschedulable, "Wait": fwk.Wait, "Skip": fwk.Skip,
	"UnschedulableAndUnresolvable": fwk.UnschedulableAndUnresolvable, "Pending": fwk.Pending,
}

func (a answer) status() *fwk.Status {
	switch a.Code {
	case "", "Success":
		return nil
	case "Error":
		return fwk.AsStatus(errors.New(strings.Join(a.Reasons, ", ")))
	}
	code, known := codes[a.Code]
	if !known {
		panic(fmt.Sprintf("no code %q", a.Code))
	}
	return fwk.NewStatus(code, a.Reasons...)
}

func (p *plugin) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	p.record.called(call{Point: "preEnqueue", Plugin: p.Name(), Pod: pod.Name})
	number := p.record.nextAsked("preEnqueue/" + p.Name() + "/" + pod.Name)
	return p.act(p.answer("preEnqueue", pod.Name, number)).status()
}

func (p *plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	found := p.ask("preFilter", state, pod, call{Nodes: nodeNames(nodes)})
	if found.Nodes == nil {
		return nil, found.status()
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(*found.Nodes...)}, found.status()
}

func (p *plugin) PreFilterExtensions() fwk.PreFilterExtensions {
	if p.script.PlainFilter {
		return nil
	}
	return p
}

func (p *plugin) AddPod(_ context.Context, state fwk.CycleState, pod *v1.Pod, other fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	found := p.ask("addPod", state, pod, call{Node: node.Node().Name, Other: other.GetPod().Name})
	return found.ByNode[node.Node().Name].status()
}

func (p *plugin) RemovePod(_ context.Context, state fwk.CycleState, pod *v1.Pod, other fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	found := p.ask("removePod", state, pod, call{Node: node.Node().Name, Other: other.GetPod().Name})
	return found.ByNode[node.Node().Name].status()
}

func (p *plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	found := p.ask("filter", state, pod, call{Node: node.Node().Name, Pods: podNames(node)})
	return found.ByNode[node.Node().Name].status()
}

func (p *plugin) PostFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	shown := map[string]string{}
	for _, node := range nodes {
		status := statuses.Get(node.Node().Name)
		shown[node.Node().Name] = strings.Join(slices.Concat([]string{status.Code().String(), status.Plugin()}, slices.Sorted(slices.Values(status.Reasons()))), "|")
	}
	found := p.ask("postFilter", state, pod, call{Statuses: shown})
	if found.Nominate == nil {
		return nil, found.status()
	}
	chosen := &fwk.NominatingInfo{NominatedNodeName: *found.Nominate, NominatingMode: fwk.ModeOverride}
	return &fwk.PostFilterResult{NominatingInfo: chosen}, found.status()
}

func (p *plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	return p.ask("preScore", state, pod, call{Nodes: nodeNames(nodes)}).status()
}

func (p *plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	found := p.ask("score", state, pod, call{Node: node.Node().Name, Pods: podNames(node)})
	mine := found.ByNode[node.Node().Name]
	return mine.Score, mine.status()
}

func (p *plugin) ScoreExtensions() fwk.ScoreExtensions {
	if p.script.PlainScore {
		return nil
	}
	return p
}

func (p *plugin) NormalizeScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	given := map[string]int64{}
	for _, one := range scores {
		given[one.Name] = one.Score
	}
	found := p.ask("normalizeScore", state, pod, call{Scores: given})
	for i := range scores {
		if mine, ok := found.ByNode[scores[i].Name]; ok {
			scores[i].Score = mine.Score
		}
	}
	return found.status()
}

func (p *plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	return p.ask("reserve", state, pod, call{Node: node}).status()
}

func (p *plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	p.ask("unreserve", state, pod, call{Node: node})
}

func (p *plugin) Permit(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) (*fwk.Status, time.Duration) {
	found := p.ask("permit", state, pod, call{Node: node})
	return found.status(), seconds(found.Timeout)
}

func (p *plugin) PreBindPreFlight(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	found := p.ask("preBindPreFlight", state, pod, call{Node: node})
	return &fwk.PreBindPreFlightResult{AllowParallel: found.AllowParallel}, found.status()
}

func (p *plugin) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	found := p.ask("preBind", state, pod, call{Node: node})
	select {
	case <-ctx.Done():
		return fwk.AsStatus(ctx.Err())
	case <-time.After(seconds(found.Pause + p.script.Takes)):
		return found.status()
	}
}

func (p *plugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	found := p.ask("bind", state, pod, call{Node: node})
	time.Sleep(seconds(found.Pause + p.script.Takes))
	switch found.Code {
	case "": // what a script does not say is left to the next plugin
		return fwk.NewStatus(fwk.Skip)
	case "Success":
		return fwk.AsStatus(p.bind(ctx, pod, node))
	}
	return found.status()
}

func (p *plugin) bind(ctx context.Context, pod *v1.Pod, node string) error {
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	return p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

func (p *plugin) PostBind(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	p.ask("postBind", state, pod, call{Node: node})
}

func nodeNames(nodes []fwk.NodeInfo) []string {
	names := map[string]bool{}
	for _, node := range nodes {
		names[node.Node().Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func podNames(node fwk.NodeInfo) []string {
	names := []string{}
	for _, pod := range node.GetPods() {
		names = append(names, pod.GetPod().Name)
	}
	slices.Sort(names)
	return names
}
