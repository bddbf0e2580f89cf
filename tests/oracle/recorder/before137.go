//go:build !k137

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
)

// queued is what QueueSort compares.
type queued = fwk.QueuedPodInfo

func podOf(info queued) *v1.Pod { return info.GetPodInfo().GetPod() }

func slowly(made *scheduler.Scheduler) { made.NextPod = slowed(made.NextPod) }

func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0)
}
