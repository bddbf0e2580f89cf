package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// hinted is a change of a claim or of a pod, which a pod may have waited for; without an old state the object is new.
type hinted struct {
	Old json.RawMessage `json:"old"`
	New json.RawMessage `json:"new"`
}

// hinting is what DynamicResources says of a pod that it keeps waiting: why it may not be queued, and of each change
// whether it helps.
type hinting struct {
	Gate  string   `json:"gate"`
	Hints []string `json:"hints"`
}

// hints asks the plugin about changes; the case's objects are those after them.
func (r *request) hints(ctx context.Context, world *environment, pod *v1.Pod) (*hinting, error) {
	plugin, ok := world.devices.plugins[world.framework.ProfileName()]
	if !ok {
		return nil, fmt.Errorf("the profile has no %s", names.DynamicResources)
	}
	events, err := plugin.EventsToRegister(ctx)
	if err != nil {
		return nil, err
	}
	answer := &hinting{Gate: plugin.PreEnqueue(ctx, pod).Message(), Hints: []string{}}
	for _, happened := range r.Hints {
		said, err := happened.ask(ctx, world.admission, events, pod)
		if err != nil {
			return nil, err
		}
		answer.Hints = append(answer.Hints, said)
	}
	return answer, nil
}

func (h hinted) ask(ctx context.Context, admission admission, events []fwk.ClusterEventWithHint, pod *v1.Pod) (string, error) {
	old, err := admission.read(h.Old)
	if err != nil {
		return "", err
	}
	changed, err := admission.read(h.New)
	if err != nil {
		return "", err
	}
	if other, ok := changed.(*v1.Pod); ok && ownUpdates != fwk.Pod && other.UID != pod.UID {
		return fwk.QueueSkip.String(), nil // the scheduler calls the hint for updates of the waiting pod only
	}
	resource := ownUpdates
	if _, ok := changed.(*resourcev1.ResourceClaim); ok {
		resource = fwk.ResourceClaim
	}
	for _, event := range events {
		if event.Event.Resource == resource {
			said, err := event.QueueingHintFn(klog.FromContext(ctx), pod, old, changed)
			return said.String(), err
		}
	}
	return "", fmt.Errorf("%T: no hint is about it", changed)
}

// read decodes an object; what is absent stays so.
func (a admission) read(raw json.RawMessage) (any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	object, err := decode(raw)
	if err != nil {
		return nil, err
	}
	a.admit(object)
	return runtime.Object(object), nil
}
