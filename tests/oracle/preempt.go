package main

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	policylisters "k8s.io/client-go/listers/policy/v1"
	clienttesting "k8s.io/client-go/testing"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// preempted is what the PostFilter plugins did for a pod that fits nowhere.
type preempted struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// Nominated is nil where the pod's nominated node stays as it is, and empty where it is cleared.
	Nominated  *string              `json:"nominated"`
	Candidates map[string]candidate `json:"candidates,omitempty"`
	// Best are the candidates of which kube-scheduler takes any: the first in a map's order.
	Best []string `json:"best,omitempty"`
	// Deleted are the victims on the nominated node that a request was made for.
	Deleted []string `json:"deleted,omitempty"`
	// Cleared are the pods that lost their nomination to that node.
	Cleared []string `json:"cleared,omitempty"`
	// Written are the requests that change claims: verb, subresource, and name.
	Written []string `json:"written,omitempty"`
}

// candidate is what making room on a node costs.
type candidate struct {
	Victims    []string `json:"victims"`
	Violations int64    `json:"violations"`
}

// search writes down what DefaultPreemption does, and takes the place of what the requests would be made through. All else
// is the plugin's own code.
type search struct {
	candidates map[string]*extenderv1.Victims
	deleted    []string
	cleared    []string
	// protected are pods that a program around the plugin lets be no victims.
	protected []string
}

// watch puts a plugin that is watched into a registry. Without asynchronous preemption it does the same, before it returns.
func (s *search) watch(registry frameworkruntime.Registry) frameworkruntime.Registry {
	registry[names.DefaultPreemption] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := defaultpreemption.New(ctx, args, handle, feature.Features{})
		if err != nil {
			return nil, err
		}
		s.take(plugin)
		plugin.Evaluator.Interface = watched{plugin, s}
		plugin.Evaluator.PdbLister = strictestFirst{plugin.Evaluator.PdbLister}
		return plugin, nil
	}
	return registry
}

func (s *search) remove(victim *v1.Pod) {
	s.deleted = append(s.deleted, nameOf(victim))
}

func (s *search) isProtected(pod *v1.Pod) bool { return slices.Contains(s.protected, nameOf(pod)) }

// BindPod is not asked for: no case is bound.
func (s *search) BindPod(*v1.Binding) (<-chan error, error) { return nil, nil }

// WaitOnFinish has nothing to wait for.
func (s *search) WaitOnFinish(context.Context, <-chan error) error { return nil }

// watched stands between an evaluator and its plugin.
type watched struct {
	preemption.Interface
	search *search
}

// strictestFirst lists disruption budgets in one of the orders that a map may have: those that allow the fewest first.
type strictestFirst struct {
	policylisters.PodDisruptionBudgetLister
}

func (l strictestFirst) List(selector labels.Selector) ([]*policy.PodDisruptionBudget, error) {
	budgets, err := l.PodDisruptionBudgetLister.List(selector)
	slices.SortFunc(budgets, func(one, other *policy.PodDisruptionBudget) int {
		allowed := cmp.Compare(one.Status.DisruptionsAllowed, other.Status.DisruptionsAllowed)
		return cmp.Or(allowed, strings.Compare(one.Name, other.Name))
	})
	return budgets, err
}

// note writes down what the plugin found for a node.
func (w watched) note(node fwk.NodeInfo, victims []*v1.Pod, violations int, status *fwk.Status) {
	if status.IsSuccess() && len(victims) > 0 {
		w.search.candidates[node.Node().Name] = &extenderv1.Victims{Pods: victims, NumPDBViolations: int64(violations)}
	}
}

// preempt runs the PostFilter plugins for a pod that fits nowhere, where the case asks for it.
// Source: pkg/scheduler/schedule_one.go, schedulingAlgorithm.
func (d *decision) preempt(ctx context.Context) error {
	if !d.preempting || d.record.Result != "Unschedulable" || !d.framework.HasPostFilterPlugins() {
		return nil
	}
	store, err := d.store(d.pod)
	if err != nil {
		return err
	}
	if err := store.Add(d.pod); err != nil {
		return err
	}
	emptyClient.ClearActions()
	*d.search = search{candidates: map[string]*extenderv1.Victims{}, protected: d.search.protected}
	result, status := d.framework.RunPostFilterPlugins(ctx, d.state, d.pod, d.diagnosis.NodeToStatus)
	found := &preempted{Code: status.Code().String(), Message: status.Message()}
	if result != nil && result.Mode() == fwk.ModeOverride {
		found.Nominated = &result.NominatedNodeName
	}
	d.search.report(found)
	found.Written = writtenClaims()
	d.record.Preemption = found
	return nil
}

func writtenClaims() []string {
	var found []string
	for _, action := range emptyClient.Actions() {
		if action.GetResource().Resource != "resourceclaims" {
			continue
		}
		name := ""
		switch written := action.(type) {
		case clienttesting.UpdateAction:
			name = written.GetObject().(*resourcev1.ResourceClaim).Name
		case clienttesting.DeleteAction:
			name = written.GetName()
		}
		verb := path.Join(action.GetVerb(), action.GetSubresource())
		found = append(found, verb+" "+name)
	}
	return found
}

func (s *search) report(found *preempted) {
	found.Best = equallyGood(s.candidates)
	found.Deleted, found.Cleared = s.deleted, s.cleared
	slices.Sort(found.Deleted)
	slices.Sort(found.Cleared)
	for node, victims := range s.candidates {
		if found.Candidates == nil {
			found.Candidates = map[string]candidate{}
		}
		made := candidate{Violations: victims.NumPDBViolations}
		for _, victim := range victims.Pods {
			made.Victims = append(made.Victims, nameOf(victim))
		}
		found.Candidates[node] = made
	}
}

// equallyGood applies the order of choice down to the point where the first candidate in a map's order is taken.
// Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption.
func equallyGood(candidates map[string]*extenderv1.Victims) []string {
	kept := make([]string, 0, len(candidates))
	for node := range candidates {
		kept = append(kept, node)
	}
	for _, cost := range costs {
		least := int64(math.MaxInt64)
		for _, node := range kept {
			least = min(least, cost(candidates[node]))
		}
		kept = slices.DeleteFunc(kept, func(node string) bool { return cost(candidates[node]) != least })
	}
	slices.Sort(kept)
	return kept
}

// costs are the criteria, the first one first; a smaller value is better.
var costs = []func(*extenderv1.Victims) int64{
	func(victims *extenderv1.Victims) int64 { return victims.NumPDBViolations },
	func(victims *extenderv1.Victims) int64 { return int64(corev1helpers.PodPriority(victims.Pods[0])) },
	func(victims *extenderv1.Victims) int64 {
		var sum int64
		for _, pod := range victims.Pods {
			sum += int64(corev1helpers.PodPriority(pod)) + math.MaxInt32 + 1
		}
		return sum
	},
	func(victims *extenderv1.Victims) int64 { return int64(len(victims.Pods)) },
	func(victims *extenderv1.Victims) int64 { return -earliestStart(victims.Pods) },
}

// earliestStart is that of the pods of the highest priority. A pod that has not started counts as starting now, which is
// after all others, and as late as any other such pod.
func earliestStart(pods []*v1.Pod) int64 {
	earliest := int64(math.MaxInt64)
	for _, pod := range pods {
		if pod.Status.StartTime != nil && corev1helpers.PodPriority(pod) == corev1helpers.PodPriority(pods[0]) {
			earliest = min(earliest, pod.Status.StartTime.UnixNano())
		}
	}
	return earliest
}

func nameOf(pod *v1.Pod) string { return klog.KObj(pod).String() }
