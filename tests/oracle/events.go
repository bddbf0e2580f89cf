package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// updated holds two versions of a pod or of a node.
type updated struct {
	Old json.RawMessage `json:"old"`
	New json.RawMessage `json:"new"`
}

// actionNames are the parts of an update that kube-scheduler distinguishes.
var actionNames = map[fwk.ActionType]string{
	fwk.UpdateNodeAllocatable:              "UPDATE_NODE_ALLOCATABLE",
	fwk.UpdateNodeLabel:                    "UPDATE_NODE_LABEL",
	fwk.UpdateNodeTaint:                    "UPDATE_NODE_TAINT",
	fwk.UpdateNodeCondition:                "UPDATE_NODE_CONDITION",
	fwk.UpdateNodeAnnotation:               "UPDATE_NODE_ANNOTATION",
	fwk.UpdateNodeDeclaredFeature:          "UPDATE_NODE_DECLARED_FEATURE",
	fwk.UpdatePodLabel:                     "UPDATE_POD_LABEL",
	fwk.UpdatePodScaleDown:                 "UPDATE_POD_SCALE_DOWN",
	fwk.UpdatePodToleration:                "UPDATE_POD_TOLERATION",
	fwk.UpdatePodSchedulingGatesEliminated: "UPDATE_POD_SCHEDULING_GATES_ELIMINATED",
	fwk.UpdatePodGeneratedResourceClaim:    "UPDATE_POD_GENERATED_RESOURCE_CLAIM",
	fwk.Update:                             "UPDATE",
}

// actions returns the events that kube-scheduler derives from an update.
// Source: pkg/scheduler/framework/events.go.
func (u *updated) actions() ([]string, error) {
	before, err := decode(u.Old)
	if err != nil {
		return nil, err
	}
	after, err := decode(u.New)
	if err != nil {
		return nil, err
	}
	var events []fwk.ClusterEvent
	switch old := before.(type) {
	case *v1.Pod:
		events = podEvents(after.(*v1.Pod), old)
	case *v1.Node:
		events = framework.NodeSchedulingPropertiesChange(after.(*v1.Node), old)
	default:
		return nil, fmt.Errorf("no events are derived from an update of %T", before)
	}
	names := []string{}
	for _, event := range events {
		names = append(names, actionNames[event.ActionType])
	}
	return names, nil
}
