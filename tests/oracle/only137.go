//go:build k137 && !k138

package main

import (
	"context"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func sliceInformer(factory informers.SharedInformerFactory) resourceinformers.TypedResourceSliceInformer {
	return factory.Resource().V1().ResourceSlices()
}

// trackerOptions has the slice tracker apply taint rules, if the release does. Its informers are never run.
func trackerOptions(factory informers.SharedInformerFactory) (tracker.Options, handlers) {
	slices, rules := sliceInformer(factory), factory.Resource().V1().DeviceTaintRules()
	following := handlers{}
	return tracker.Options{
		EnableDeviceTaintRules: utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		SliceInformer: followedSlices{slices, cache.NewTypedSharedIndexInformer[*resourcev1.ResourceSlice](
			handed{slices.Informer(), following, reflect.TypeFor[*resourcev1.ResourceSlice]()})},
		TaintInformer: followedRules{rules, cache.NewTypedSharedIndexInformer[*resourcev1.DeviceTaintRule](
			handed{rules.Informer(), following, reflect.TypeFor[*resourcev1.DeviceTaintRule]()})},
	}, following
}

type followedSlices struct {
	resourceinformers.TypedResourceSliceInformer
	typed resourceinformers.ResourceSliceIndexInformer
}

func (f followedSlices) TypedInformer() resourceinformers.ResourceSliceIndexInformer { return f.typed }

func addPoints(sets map[string]config.PluginSet, plugins *config.Plugins) {
	sets["podGroupPostFilter"] = plugins.PodGroupPostFilter
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
