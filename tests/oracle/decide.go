package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// decision is the work on one pod: the framework's state for it and the record that it leads to.
type decision struct {
	*environment
	pod       *v1.Pod
	state     fwk.CycleState
	nodes     []fwk.NodeInfo
	diagnosis framework.Diagnosis
	record    record
}

// decide runs a pod through PreFilter, Filter, PreScore and Score in the order of kube-scheduler's
// scheduling cycle, but over all nodes and one node at a time.
// Source: pkg/scheduler/schedule_one.go, schedulePod and findNodesThatFitPod.
func (w *environment) decide(ctx context.Context, pod *v1.Pod) (record, error) {
	nodes, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return record{}, err
	}
	d := &decision{
		environment: w,
		pod:         pod,
		state:       framework.NewCycleState(),
		nodes:       nodes,
		diagnosis:   framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()},
		record:      record{Pod: pod.Namespace + "/" + pod.Name, SchedulerName: w.framework.ProfileName()},
	}
	if len(nodes) == 0 {
		d.record.Result = "Unschedulable"
		d.record.FitError = scheduler.ErrNoNodesAvailable.Error()
		return d.record, nil
	}
	d.run(ctx)
	return d.record, nil
}

func (d *decision) run(ctx context.Context) {
	result, status, narrowedBy := d.framework.RunPreFilterPlugins(ctx, d.state, d.pod)
	if !status.IsSuccess() {
		d.rejectOutright(status)
		return
	}
	feasible, err := d.feasible(ctx, result, narrowedBy)
	switch {
	case err != nil:
		d.fail(err)
	case len(feasible) == 0:
		d.unschedulable()
	default:
		d.score(ctx, feasible)
	}
}

func (d *decision) rejectOutright(status *fwk.Status) {
	if !status.IsRejected() {
		d.fail(status.AsError())
		return
	}
	d.diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
	d.diagnosis.PreFilterMsg = status.Message()
	rejection := verdictOf(status, status.Plugin())
	d.record.PreFilter = &rejection
	d.unschedulable()
}

// feasible tries the nominated node first; if the pod fits there, no other node is looked at.
func (d *decision) feasible(ctx context.Context, result *fwk.PreFilterResult, narrowedBy sets.Set[string]) ([]fwk.NodeInfo, error) {
	if name := d.pod.Status.NominatedNodeName; name != "" {
		if node, err := d.snapshot.Get(name); err == nil {
			// An error on the nominated node is only logged there, and then all nodes are tried.
			if fitting, err := d.filter(ctx, []fwk.NodeInfo{node}); err == nil && len(fitting) > 0 {
				return fitting, nil
			}
		}
	}
	if result.AllNodes() {
		return d.filter(ctx, d.nodes)
	}
	return d.filter(ctx, d.narrow(result, narrowedBy))
}

func (d *decision) narrow(result *fwk.PreFilterResult, narrowedBy sets.Set[string]) []fwk.NodeInfo {
	absent := fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowedBy)))
	d.diagnosis.NodeToStatus.SetAbsentNodesStatus(absent)
	var kept []fwk.NodeInfo
	for _, node := range d.nodes {
		name := node.Node().Name
		if result.NodeNames.Has(name) {
			kept = append(kept, node)
		} else if _, tried := d.record.Rejected[name]; !tried {
			d.record.reject(name, verdictOf(absent, narrowing))
		}
	}
	return kept
}

func (d *decision) filter(ctx context.Context, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, error) {
	var fitting []fwk.NodeInfo
	for _, node := range nodes {
		status := d.framework.RunFilterPluginsWithNominatedPods(ctx, d.state, d.pod, node)
		switch {
		case status.Code() == fwk.Error:
			return nil, status.AsError()
		case status.IsSuccess():
			fitting = append(fitting, node)
		default:
			d.diagnosis.NodeToStatus.Set(node.Node().Name, status)
			d.record.reject(node.Node().Name, verdictOf(status, status.Plugin()))
		}
	}
	return fitting, nil
}

// score ranks the feasible nodes. kube-scheduler does not score a single one, so a scoring error
// there does not keep the pod from its node.
func (d *decision) score(ctx context.Context, nodes []fwk.NodeInfo) {
	d.record.Result = "Scheduled"
	scores, err := d.scores(ctx, nodes)
	switch {
	case err == nil:
		d.record.rank(scores)
	case len(nodes) == 1:
		d.record.Best = []string{nodes[0].Node().Name}
	default:
		d.fail(err)
	}
}

func (d *decision) scores(ctx context.Context, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, error) {
	if !d.framework.HasScorePlugins() {
		equal := make([]fwk.NodePluginScores, len(nodes))
		for i, node := range nodes {
			equal[i] = fwk.NodePluginScores{Name: node.Node().Name, TotalScore: 1}
		}
		return equal, nil
	}
	if status := d.framework.RunPreScorePlugins(ctx, d.state, d.pod, nodes); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores, status := d.framework.RunScorePlugins(ctx, d.state, d.pod, nodes)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	return scores, nil
}

func (d *decision) unschedulable() {
	d.record.Result = "Unschedulable"
	d.record.FitError = (&framework.FitError{Pod: d.pod, NumAllNodes: len(d.nodes), Diagnosis: d.diagnosis}).Error()
}

func (d *decision) fail(err error) {
	d.record = record{Pod: d.record.Pod, SchedulerName: d.record.SchedulerName, Result: "Error", Error: err.Error()}
}
