package main

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Name is the plugin's name in configurations.
const Name = "sample-plugin"

// Args is what pluginConfig may say.
type Args struct {
	NodeLabel    string `json:"node_label"`
	WorkloadName string `json:"workload_name"`
}

// Sample keeps a workload's pods off nodes without a label.
type Sample struct{ key, value, workload string }

var (
	_ fwk.PreFilterPlugin = &Sample{}
	_ fwk.FilterPlugin    = &Sample{}
	_ fwk.PreBindPlugin   = &Sample{}
)

// New makes the plugin of its arguments.
func New(_ context.Context, given runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	args := Args{}
	if err := frameworkruntime.DecodeInto(given, &args); err != nil {
		return nil, err
	}
	at := strings.LastIndex(args.NodeLabel, "/")
	if at < 0 || args.WorkloadName == "" {
		return nil, fmt.Errorf("node_label is written as key/value, and workload_name is needed: %+v", args)
	}
	return &Sample{args.NodeLabel[:at], args.NodeLabel[at+1:], args.WorkloadName}, nil
}

// Name returns the plugin's name.
func (*Sample) Name() string { return Name }

// PreFilter says which pod it is.
func (*Sample) PreFilter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	klog.Infof("prefilter pod: %s", pod.Name)
	return nil, nil
}

// PreFilterExtensions says that there are none.
func (*Sample) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the workload's pods off nodes without the label.
func (p *Sample) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if !strings.Contains(pod.Name, p.workload) || node.Node().Labels[p.key] == p.value {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no match label")
}

// PreBindPreFlight says that there is something to do.
func (*Sample) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

// PreBind says where the pod goes.
func (*Sample) PreBind(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node string) *fwk.Status {
	klog.Infof("prebind get node : %s", node)
	return nil
}
