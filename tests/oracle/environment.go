package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// emptyClient is handed to plugins that want a client; the informers never list from it. It keeps what is written of
// claims, and nothing else.
var emptyClient = newClient()

func newClient() *fake.Clientset {
	made := fake.NewClientset()
	made.PrependReactor("*", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if written, ok := action.(clienttesting.UpdateAction); ok {
			return true, written.GetObject(), nil
		}
		return true, &resourcev1.ResourceClaim{}, nil
	})
	return made
}

// environment is one cluster and its profiles, as kube-scheduler holds them: its cache with the snapshot
// taken from it, the stores of its informers, and the frameworks built on them, one of which decides.
type environment struct {
	frameworks profile.Map
	framework  framework.Framework
	cache      cache.Cache
	snapshot   *cache.Snapshot
	nominated  *nominator
	search     *search
	preempting bool
	informers  informers.SharedInformerFactory
	devices    *devices
	admission  admission
	// state is that of the last decision.
	state fwk.CycleState
}

func newEnvironment(ctx context.Context, chosen profiles, objects []runtime.Object, pods []*v1.Pod) (*environment, error) {
	world := &environment{
		admission: admission{priorities(objects)},
		informers: informers.NewSharedInformerFactory(emptyClient, 0),
		cache:     newCache(ctx),
		snapshot:  cache.NewEmptySnapshot(),
		nominated: &nominator{byNode: map[string][]fwk.PodInfo{}},
		search:    &search{},
	}
	world.admission.admitAll(objects, pods)
	if err := world.build(ctx, chosen); err != nil {
		return nil, err
	}
	for _, object := range without(objects, pods) {
		if err := world.add(ctx, object); err != nil {
			return nil, err
		}
	}
	return world, nil
}

// build makes the frameworks of all profiles, as kube-scheduler does when it starts, so that a profile that it would
// refuse makes the case invalid whichever one decides.
func (w *environment) build(ctx context.Context, chosen profiles) error {
	var err error
	if w.devices, err = newDevices(ctx, w.informers); err != nil {
		return err
	}
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(100) }
	options := append(w.extraOptions(),
		frameworkruntime.WithClientSet(emptyClient),
		frameworkruntime.WithInformerFactory(w.informers),
		frameworkruntime.WithSharedDRAManager(w.devices),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(w.informers.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(w.snapshot),
		frameworkruntime.WithPodNominator(w.nominated),
		frameworkruntime.WithPodGroupManager(w.cache),
		frameworkruntime.WithParallelism(1),
	)
	registry := w.search.watch(w.devices.watch(plugins.NewInTreeRegistry()))
	w.frameworks, err = profile.NewMap(ctx, chosen.all, registry, recorder, options...)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	w.framework = w.frameworks[chosen.name]
	w.framework.SetAPICacher(w.search)
	return nil
}

// add puts an object where kube-scheduler's event handlers would: into the store of its informer,
// and beyond that into the cache, the nominator, or the trackers of dynamic resource allocation.
func (w *environment) add(ctx context.Context, object runtime.Object) error {
	logger := klog.FromContext(ctx)
	if pod, ok := object.(*v1.Pod); ok && finished(pod) {
		return nil
	}
	store, err := w.store(object)
	if err != nil {
		return err
	}
	if err := store.Add(stored(object)); err != nil {
		return err
	}
	w.devices.publish(nil, stored(object))
	switch typed := object.(type) {
	case *v1.Node:
		w.cache.AddNode(logger, typed)
	case *v1.Pod:
		return w.addPod(logger, typed)
	case *resourcev1.ResourceClaim, *resourcev1.DeviceClass:
		w.devices.set(nil, typed)
	}
	return nil
}

func (w *environment) addPod(logger klog.Logger, pod *v1.Pod) error {
	if pod.Spec.NodeName != "" {
		return w.cache.AddPod(logger, pod)
	}
	if pod.Status.NominatedNodeName == "" {
		return nil
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	w.nominated.AddNominatedPod(logger, info, nil)
	return nil
}

// assume places a pod, and what it claims, as the scheduler does between its decision and the binding's confirmation.
func (w *environment) assume(ctx context.Context, pod *v1.Pod, node string) error {
	w.devices.assume(ctx, w.framework.ProfileName(), w.state, pod, node)
	placed := pod.DeepCopy()
	placed.Spec.NodeName = node
	return w.cache.AssumePod(klog.FromContext(ctx), placed)
}

// refresh takes a new snapshot, as every scheduling cycle does at its beginning.
func (w *environment) refresh(ctx context.Context) error {
	return w.cache.UpdateSnapshot(klog.FromContext(ctx), w.snapshot)
}

func finished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// without leaves out the objects that are earlier versions of the pods to schedule.
func without(objects []runtime.Object, pods []*v1.Pod) []runtime.Object {
	names := map[string]bool{}
	for _, pod := range pods {
		names[pod.Namespace+"/"+pod.Name] = true
	}
	kept := make([]runtime.Object, 0, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*v1.Pod); !ok || !names[pod.Namespace+"/"+pod.Name] {
			kept = append(kept, object)
		}
	}
	return kept
}
