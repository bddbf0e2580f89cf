package main

import (
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// admission fills in what the API server fills in: the defaults and a UID of every object, and for pods
// the namespace and the priority that a PriorityClass stands for.
type admission struct {
	priorities map[string]int32
}

func (a admission) admitAll(objects []runtime.Object, pods []*v1.Pod) {
	for _, object := range objects {
		a.admit(object)
	}
	for _, pod := range pods {
		a.admit(pod)
	}
}

func (a admission) admit(object runtime.Object) {
	legacyscheme.Scheme.Default(object)
	identify(object.(metav1.Object))
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	if pod.Spec.Priority == nil {
		value := a.priorities[pod.Spec.PriorityClassName]
		pod.Spec.Priority = &value
	}
	completeResources(pod)
}

// identify gives an object the UID that the scheduler's caches know it by, and a pod its namespace.
func identify(object metav1.Object) {
	if _, ok := object.(*v1.Pod); ok && object.GetNamespace() == "" {
		object.SetNamespace(v1.NamespaceDefault)
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID(object.GetNamespace() + "/" + object.GetName()))
	}
}

// priorities maps the names of priority classes to their values; the empty name has the global default.
func priorities(objects []runtime.Object) map[string]int32 {
	values := map[string]int32{}
	for _, class := range scheduling.SystemPriorityClasses() {
		values[class.Name] = class.Value
	}
	for _, object := range objects {
		class, ok := object.(*schedulingv1.PriorityClass)
		if !ok {
			continue
		}
		values[class.Name] = class.Value
		if class.GlobalDefault {
			values[""] = class.Value
		}
	}
	return values
}
