//go:build k138

package main

import (
	"context"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	draapi "k8s.io/dynamic-resource-allocation/api"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// NominatedPodsForNode returns the pods that are nominated to a node.
func (n *nominator) NominatedPodsForNode(_ klog.Logger, node string) []fwk.PodInfo {
	return n.byNode[node]
}

func sliceInformer(factory informers.SharedInformerFactory) draapi.ResourceSliceIndexInformer {
	return draapi.NewInformerForResourceSlice(factory)
}

func sliceIndexer(factory informers.SharedInformerFactory) cache.Indexer {
	sliceInformer(factory)
	return factory.InformerFor(&draapi.ResourceSlice{}, nil).GetIndexer()
}

// stored returns an object as the store of its kind keeps it.
func stored(object runtime.Object) runtime.Object {
	slice, ok := object.(*resourcev1.ResourceSlice)
	if !ok {
		return object
	}
	converted := &draapi.ResourceSlice{}
	if err := draapi.Convert_v1_ResourceSlice_To_api_ResourceSlice(slice, converted, nil); err != nil {
		panic(err)
	}
	return converted
}

// trackerOptions has the slice tracker apply taint rules. Its informers are never run.
func trackerOptions(factory informers.SharedInformerFactory) (tracker.Options, handlers) {
	slices, rules := sliceInformer(factory), factory.Resource().V1().DeviceTaintRules()
	following := handlers{}
	return tracker.Options{
		EnableDeviceTaintRules: true,
		SliceLister:            draapi.NewResourceSliceLister(slices.GetIndexer()),
		SliceInformer: cache.NewTypedSharedIndexInformer[*draapi.ResourceSlice](
			handed{slices, following, reflect.TypeFor[*draapi.ResourceSlice]()}),
		TaintInformer: followedRules{rules, cache.NewTypedSharedIndexInformer[*resourcev1.DeviceTaintRule](
			handed{rules.Informer(), following, reflect.TypeFor[*resourcev1.DeviceTaintRule]()})},
	}, following
}

func addPoints(sets map[string]config.PluginSet, plugins *config.Plugins) {
	sets["placementFeasible"] = plugins.PlacementFeasible
	sets["podGroupPostFilter"] = plugins.PodGroupPostFilter
}

// extraOptions are those that only some releases have.
func (w *environment) extraOptions() []frameworkruntime.Option {
	manager := func(handle fwk.Handle) fwk.PreemptionManager {
		return preemption.NewPreemptionManager(handle, feature.Features{})
	}
	return []frameworkruntime.Option{
		frameworkruntime.WithPreemptionManager(manager),
		frameworkruntime.WithMutableSnapshotLister(w.snapshot),
	}
}

// take puts the search in place of the plugin's requests, and protects pods.
func (s *search) take(plugin *defaultpreemption.DefaultPreemption) {
	plugin.Executor.(*preemption.Executor).PreemptPod = func(_ context.Context, _ fwk.PreemptionCandidate, _ preemption.ExecutorPreemptor, victim *v1.Pod, _ string) (bool, error) {
		s.remove(victim)
		return false, nil
	}
	plugin.IsEligiblePod = func(_ fwk.NodeInfo, victim preemption.Victim, _ *v1.Pod) bool {
		return !slices.ContainsFunc(victim.Pods(), func(pod fwk.PodInfo) bool { return s.isProtected(pod.GetPod()) })
	}
}
