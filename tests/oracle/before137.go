//go:build !k137

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/client-go/informers"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// ownUpdates is the resource of events about updates of the waiting pod; here, the events are about all pods.
const ownUpdates = fwk.Pod

func trackerOptions(factory informers.SharedInformerFactory) (tracker.Options, handlers) {
	return tracker.Options{SliceInformer: sliceInformer(factory)}, nil
}

// extraOptions are those that only some releases have.
func (w *environment) extraOptions() []frameworkruntime.Option { return nil }

func newCache(ctx context.Context) cache.Cache { return cache.New(ctx, nil, false) }

func sliceInformer(factory informers.SharedInformerFactory) resourceinformers.ResourceSliceInformer {
	return factory.Resource().V1().ResourceSlices()
}

func completeResources(*v1.Pod) {}

func addPoints(map[string]config.PluginSet, *config.Plugins) {}

func podEvents(pod, old *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(pod, old)
}

// take puts the search in place of the plugin's requests, and protects pods.
func (s *search) take(plugin *defaultpreemption.DefaultPreemption) {
	plugin.Executor.PreemptPod = func(_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *v1.Pod, _ string) error {
		s.remove(victim)
		return nil
	}
	plugin.IsEligiblePod = func(_ fwk.NodeInfo, victim fwk.PodInfo, _ *v1.Pod) bool { return !s.isProtected(victim.GetPod()) }
}

// PatchPodStatus clears nominations of other pods.
func (s *search) PatchPodStatus(pod *v1.Pod, _ *v1.PodCondition, _ *fwk.NominatingInfo) (<-chan error, error) {
	s.cleared = append(s.cleared, nameOf(pod))
	return nil, nil
}

// SelectVictimsOnNode is called once for each node on which preemption may help.
func (w watched) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, pdbs []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	victims, violations, status := w.Interface.SelectVictimsOnNode(ctx, state, pod, node, pdbs)
	w.note(node, victims, violations, status)
	return victims, violations, status
}
