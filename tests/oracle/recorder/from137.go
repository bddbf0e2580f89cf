//go:build k137

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// queued is what QueueSort compares: groups are compared only with a gate that is off.
type queued = fwk.QueuedEntityInfo

func podOf(info queued) *v1.Pod { return info.(*framework.QueuedPodInfo).Pod }

func slowly(made *scheduler.Scheduler) { made.NextEntity = slowed(made.NextEntity) }

func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0, nil)
}
