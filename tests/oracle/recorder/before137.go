//go:build !k137

package main

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
)

// queued is what QueueSort compares.
type queued = fwk.QueuedPodInfo

func podOf(info queued) *v1.Pod { return info.GetPodInfo().GetPod() }

func slowly(made *scheduler.Scheduler) { made.NextPod = slowed(made.NextPod) }

// initiallyScheduled is of pod groups, which this release has not.
func initiallyScheduled(runtime.Object) []string { return nil }

func keepGroup(_, _ runtime.Object) {}

func (a *api) groups(context.Context) ([]groupLine, error) { return nil, nil }

func newPlacing(context.Context, pluginScript, fwk.Handle) (fwk.Plugin, error) {
	return nil, errors.New("this release places no pod groups")
}

func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0)
}
