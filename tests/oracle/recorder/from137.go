//go:build k137

package main

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// queued is what QueueSort compares; a plugin that sorts is asked about pods alone.
type queued = fwk.QueuedEntityInfo

func podOf(info queued) *v1.Pod { return info.(*framework.QueuedPodInfo).Pod }

func slowly(made *scheduler.Scheduler) { made.NextEntity = slowed(made.NextEntity) }

// initiallyScheduled gives the condition of a pod group that the scheduler writes; nil where there is none.
func initiallyScheduled(object runtime.Object) []string {
	group, ok := object.(*scheduling.PodGroup)
	if !ok {
		return nil
	}
	found := meta.FindStatusCondition(group.Status.Conditions, "PodGroupInitiallyScheduled")
	if found == nil {
		return nil
	}
	return []string{string(found.Status), found.Reason, found.Message, strconv.FormatInt(found.ObservedGeneration, 10)}
}

// keepGroup gives another version of a pod group the status of the old one, and its generation as an API server does.
func keepGroup(object, old runtime.Object) {
	group, ok := object.(*scheduling.PodGroup)
	if !ok {
		return
	}
	before := old.(*scheduling.PodGroup)
	group.Status, group.Generation = before.Status, before.Generation
	if !reflect.DeepEqual(group.Spec, before.Spec) {
		group.Generation++
	}
}

func (a *api) groups(ctx context.Context) ([]groupLine, error) {
	list, err := a.client.SchedulingV1beta1().PodGroups(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	lines := []groupLine{}
	for i := range list.Items {
		lines = append(lines, groupLine{list.Items[i].Name, initiallyScheduled(&list.Items[i])})
	}
	slices.SortFunc(lines, func(a, b groupLine) int { return strings.Compare(a.Group, b.Group) })
	return lines, nil
}

func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0, nil)
}
