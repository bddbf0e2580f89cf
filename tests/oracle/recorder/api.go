package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

const namespace = "default"

var podResource = v1.SchemeGroupVersion.WithResource("pods")

// api is an API server in memory with the little behaviour that the scheduler relies on: versions that grow, and what
// binding a pod writes. It notes what the scheduler writes to pods.
type api struct {
	clienttesting.ObjectTracker
	client *fake.Clientset
	record *record

	mutex   sync.Mutex
	version int
}

func newAPI(record *record) *api {
	made := &api{
		ObjectTracker: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
		client:        &fake.Clientset{},
		record:        record,
	}
	made.client.AddReactor("create", "pods", made.bind)
	made.client.AddReactor("*", "*", clienttesting.ObjectReaction(made))
	made.client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		found, err := made.Watch(action.GetResource(), action.GetNamespace())
		return err == nil, found, err
	})
	return made
}

func (a *api) Create(gvr schema.GroupVersionResource, object runtime.Object, ns string, options ...metav1.CreateOptions) error {
	if err := a.stamp(object); err != nil {
		return err
	}
	return a.ObjectTracker.Create(gvr, object, ns, options...)
}

// Update refuses another version than that of the object that is there, and leaves an equal object as it is, as
// kube-apiserver does.
func (a *api) Update(gvr schema.GroupVersionResource, object runtime.Object, ns string, options ...metav1.UpdateOptions) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if version := accessor.GetResourceVersion(); version != "" {
		old, err := a.Get(gvr, ns, accessor.GetName())
		if err != nil {
			return err
		}
		if known, err := meta.Accessor(old); err == nil && known.GetResourceVersion() != version {
			return apierrors.NewConflict(gvr.GroupResource(), accessor.GetName(), errors.New("the object has been modified"))
		}
		if equality.Semantic.DeepEqual(old, object) {
			return nil
		}
	}
	if err := a.stamp(object); err != nil {
		return err
	}
	return a.ObjectTracker.Update(gvr, object, ns, options...)
}

func (a *api) Patch(gvr schema.GroupVersionResource, object runtime.Object, ns string, options ...metav1.PatchOptions) error {
	if err := a.stamp(object); err != nil {
		return err
	}
	if pod, ok := object.(*v1.Pod); ok {
		if old, err := a.pod(pod.Name); err == nil {
			a.record.written(old, pod)
		}
	} else if is := initiallyScheduled(object); is != nil {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		if old, err := a.Get(gvr, ns, accessor.GetName()); err == nil {
			a.record.groupWritten(accessor.GetName(), initiallyScheduled(old), is)
		}
	}
	return a.ObjectTracker.Patch(gvr, object, ns, options...)
}

func (a *api) stamp(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.version++
	accessor.SetResourceVersion(strconv.Itoa(a.version))
	return nil
}

func (a *api) pod(name string) (*v1.Pod, error) {
	object, err := a.Get(podResource, namespace, name)
	if err != nil {
		return nil, err
	}
	return object.(*v1.Pod), nil
}

// bind writes what kube-apiserver's binding of a pod writes.
func (a *api) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
	pod, err := a.pod(binding.Name)
	if err != nil {
		return true, nil, err
	}
	if pod.UID != binding.UID || pod.Spec.NodeName != "" {
		return true, nil, fmt.Errorf("pod %s is another one, or bound already", binding.Name)
	}
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.NominatedNodeName = ""
	setCondition(pod, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	a.record.bound(pod)
	return true, binding, a.Update(podResource, pod, namespace)
}

func setCondition(pod *v1.Pod, condition v1.PodCondition) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == condition.Type {
			pod.Status.Conditions[i] = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

// set creates an object or puts another version in its place.
func (a *api) set(raw json.RawMessage) error {
	var peek kindOnly
	if err := json.Unmarshal(raw, &peek); err != nil {
		return err
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(object.GetObjectKind().GroupVersionKind())
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	old, err := a.Get(gvr, accessor.GetNamespace(), accessor.GetName())
	if err != nil {
		if accessor.GetUID() == "" {
			accessor.SetUID(types.UID(accessor.GetName()))
		}
		accessor.SetGeneration(1)
		return a.Create(gvr, object, accessor.GetNamespace())
	}
	oldMeta, err := meta.Accessor(old)
	if err != nil {
		return err
	}
	accessor.SetUID(oldMeta.GetUID())
	if pod, ok := object.(*v1.Pod); ok {
		pod.Spec.NodeName, pod.Status = old.(*v1.Pod).Spec.NodeName, old.(*v1.Pod).Status
	}
	keepGroup(object, old)
	return a.Update(gvr, object, accessor.GetNamespace())
}

func (a *api) remove(what reference) error {
	gvr, _ := meta.UnsafeGuessKindToResource(v1.SchemeGroupVersion.WithKind(what.Kind))
	where := namespace
	switch what.Kind {
	case "Node":
		where = ""
	case "PodGroup":
		gvr = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
	}
	return a.Delete(gvr, where, what.Name)
}

func (a *api) claims(ctx context.Context) ([]claimLine, error) {
	list, err := a.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	lines := []claimLine{}
	for _, claim := range list.Items {
		line := claimLine{claim.Name, []string{}, []string{}}
		if claim.Status.Allocation != nil {
			for _, found := range claim.Status.Allocation.Devices.Results {
				line.Devices = append(line.Devices, found.Pool+"/"+found.Device)
			}
		}
		for _, pod := range claim.Status.ReservedFor {
			line.Reserved = append(line.Reserved, pod.Name)
		}
		slices.Sort(line.Devices)
		slices.Sort(line.Reserved)
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b claimLine) int { return strings.Compare(a.Claim, b.Claim) })
	return lines, nil
}

func (a *api) pods(ctx context.Context) ([]v1.Pod, error) {
	list, err := a.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
