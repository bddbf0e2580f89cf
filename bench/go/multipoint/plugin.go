package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "multipoint-communicating-plugin"

const neverBound = "my-test-pod"

// MultipointCommunicating has Reserve and PreBind talk to each other.
type MultipointCommunicating struct{}

var (
	_ fwk.ReservePlugin = &MultipointCommunicating{}
	_ fwk.PreBindPlugin = &MultipointCommunicating{}
)

// note is what is kept for a pod.
type note struct{ text string }

// Clone copies it, for what-ifs.
func (n *note) Clone() fwk.StateData { return &note{n.text} }

// New makes the plugin.
func New(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return &MultipointCommunicating{}, nil
}

// Name returns the plugin's name.
func (*MultipointCommunicating) Name() string { return Name }

// Reserve notes that a pod must not be bound.
func (*MultipointCommunicating) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	if pod == nil {
		return fwk.NewStatus(fwk.Error, "pod cannot be nil")
	}
	if pod.Name == neverBound {
		state.Write(fwk.StateKey(pod.Name), &note{"never bind"})
	}
	return nil
}

// Unreserve takes the note back.
func (*MultipointCommunicating) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	state.Delete(fwk.StateKey(pod.Name))
}

// PreBindPreFlight says that there may be something to do.
func (*MultipointCommunicating) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

// PreBind turns a pod away of which Reserve said so.
func (*MultipointCommunicating) PreBind(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	kept, err := state.Read(fwk.StateKey(pod.Name))
	if err != nil {
		return nil
	}
	if found, ok := kept.(*note); ok && found.text == "never bind" {
		return fwk.NewStatus(fwk.Unschedulable, "pod is not permitted")
	}
	return nil
}
