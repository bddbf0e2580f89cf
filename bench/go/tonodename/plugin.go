package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "tonodename-scoring-plugin"

// ToNodeName prefers one node.
type ToNodeName struct{}

var _ fwk.ScorePlugin = &ToNodeName{}

// New makes the plugin.
func New(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return &ToNodeName{}, nil
}

// Name returns the plugin's name.
func (*ToNodeName) Name() string { return Name }

// Score gives a node its points.
func (*ToNodeName) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	if node.Node().Name == "piworknode001" {
		return 80, nil
	}
	return 20, nil
}

// ScoreExtensions says that there is NormalizeScore.
func (p *ToNodeName) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore brings the points to 0..100, from 0 and not from the lowest.
func (*ToNodeName) NormalizeScore(_ context.Context, _ fwk.CycleState, pod *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	var highest int64
	for _, one := range scores {
		highest = max(highest, one.Score)
	}
	for i := range scores {
		scores[i].Score = fwk.MaxNodeScore * scores[i].Score / highest
		klog.InfoS("score", "pod", klog.KObj(pod), "node", scores[i].Name, "score", scores[i].Score)
	}
	return nil
}
