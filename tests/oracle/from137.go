//go:build k137

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// ownUpdates is the resource of events about updates of the waiting pod.
const ownUpdates = fwk.TargetPod

func newCache(ctx context.Context) cache.Cache { return cache.New(ctx, nil, false, false) }

// completeResources sets a pod's own resources as the API server's strategy does when it creates the pod.
func completeResources(pod *v1.Pod) {
	internal, completed := &core.Pod{}, &v1.Pod{}
	if err := legacyscheme.Scheme.Convert(pod, internal, nil); err != nil {
		panic(err)
	}
	podutil.DefaultPodLevelResources(internal)
	if err := legacyscheme.Scheme.Convert(internal, completed, nil); err != nil {
		panic(err)
	}
	pod.Spec.Resources = completed.Spec.Resources
}

func podEvents(pod, old *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(pod, old, true)
}

// PatchPodStatus clears nominations of other pods.
func (s *search) PatchPodStatus(pod *v1.Pod, _ []*v1.PodCondition, _ *fwk.NominatingInfo) (<-chan error, error) {
	s.cleared = append(s.cleared, nameOf(pod))
	return nil, nil
}

// SelectVictimsOnNode is called once for each node on which preemption may help.
func (w watched) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, possible []*preemption.DomainVictim, pdbs []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	victims, violations, status := w.Interface.SelectVictimsOnNode(ctx, state, pod, node, possible, pdbs)
	w.note(node, victims, violations, status)
	return victims, violations, status
}
