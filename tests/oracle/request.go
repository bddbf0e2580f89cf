package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
)

// request is a case as it is read: objects stay raw until their kind is known.
type request struct {
	ID       string            `json:"id"`
	Objects  []json.RawMessage `json:"objects"`
	Pod      json.RawMessage   `json:"pod"`
	Config   json.RawMessage   `json:"config"`
	Sequence []json.RawMessage `json:"sequence"`
	Choices  []string          `json:"choices"`
	Between  [][]change        `json:"between"`
}

// evaluate decides about the case's pod, or about the pods of its sequence one after another:
// there the changes that come between happen before each one, and every placed pod is assumed on its node.
func (r *request) evaluate() ([]record, error) {
	pods, err := r.pods()
	if err != nil {
		return nil, err
	}
	objects, err := decodeObjects(r.Objects)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	profile, err := profileFor(r.Config, pods[0])
	if err != nil {
		return nil, err
	}
	world, err := newEnvironment(ctx, profile, objects, pods)
	if err != nil {
		return nil, err
	}
	return r.decideAll(ctx, world, pods)
}

func (r *request) decideAll(ctx context.Context, world *environment, pods []*v1.Pod) ([]record, error) {
	records := make([]record, 0, len(pods))
	for i, pod := range pods {
		if err := r.happen(ctx, world, i); err != nil {
			return nil, err
		}
		decided, err := world.decide(ctx, pod)
		if err != nil {
			return nil, err
		}
		records = append(records, decided)
		if len(decided.Best) == 0 {
			continue
		}
		if err := world.assume(ctx, pod, r.choice(i, decided)); err != nil {
			return nil, err
		}
	}
	return records, nil
}

func (r *request) happen(ctx context.Context, world *environment, i int) error {
	if i >= len(r.Between) {
		return nil
	}
	for _, happened := range r.Between[i] {
		if err := world.apply(ctx, happened); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) choice(i int, decided record) string {
	if i < len(r.Choices) && r.Choices[i] != "" {
		return r.Choices[i]
	}
	return decided.Best[0]
}

func (r *request) pods() ([]*v1.Pod, error) {
	raw := r.Sequence
	if raw == nil {
		raw = []json.RawMessage{r.Pod}
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("the sequence is empty")
	}
	pods := make([]*v1.Pod, 0, len(raw))
	for _, data := range raw {
		object, err := decode(data)
		if err != nil {
			return nil, err
		}
		pod, ok := object.(*v1.Pod)
		if !ok {
			return nil, fmt.Errorf("the pod to schedule is a %T", object)
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

func decodeObjects(raw []json.RawMessage) ([]runtime.Object, error) {
	objects := make([]runtime.Object, 0, len(raw))
	for i, data := range raw {
		object, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		if _, ok := object.(metav1.Object); !ok {
			return nil, fmt.Errorf("object %d: a %T is no single object", i, object)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func decode(data json.RawMessage) (runtime.Object, error) {
	object, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	// The deserializer clears the kind of typed objects; the informers are chosen by it.
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	return object, nil
}
