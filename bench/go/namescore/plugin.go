package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "namescore"

var scores = map[string]int64{"k8s-node01": 10, "k8s-node02": 90, "k8s-node03": 50}

// NameScore scores a node by its name.
type NameScore struct{}

var _ fwk.ScorePlugin = &NameScore{}

// New makes the plugin.
func New(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return &NameScore{}, nil
}

// Name returns the plugin's name.
func (*NameScore) Name() string { return Name }

// Score gives a node the score of its name.
func (*NameScore) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return scores[node.Node().Name], nil
}

// ScoreExtensions says that scores need no normalising.
func (*NameScore) ScoreExtensions() fwk.ScoreExtensions { return nil }
