//go:build k137 && !k138

package main

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func sliceInformer(factory informers.SharedInformerFactory) resourceinformers.TypedResourceSliceInformer {
	return factory.Resource().V1().ResourceSlices()
}

// extraOptions are those that only some releases have.
func (w *environment) extraOptions() []frameworkruntime.Option {
	return []frameworkruntime.Option{frameworkruntime.WithMutableSnapshotLister(w.snapshot)}
}

// take puts the search in place of the plugin's requests, and protects pods.
func (s *search) take(plugin *defaultpreemption.DefaultPreemption) {
	plugin.Executor.PreemptPod = func(_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *v1.Pod, _ string) (bool, error) {
		s.remove(victim)
		return false, nil
	}
	plugin.IsEligiblePod = func(_ fwk.NodeInfo, victim preemption.Victim, _ *v1.Pod) bool {
		return !slices.ContainsFunc(victim.Pods(), func(pod fwk.PodInfo) bool { return s.isProtected(pod.GetPod()) })
	}
}
