//go:build k137

package main

import (
	"cmp"
	"context"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/topologyaware"
)

// placing is a PlacementGenerate and PlacementScore plugin: TopologyPlacementGenerator with an order, and scores.
type placing struct {
	script    pluginScript
	generator fwk.PlacementGeneratePlugin
}

func newPlacing(ctx context.Context, script pluginScript, handle fwk.Handle) (fwk.Plugin, error) {
	generator, err := topologyaware.New(ctx, nil, handle, feature.Features{})
	return &placing{script, generator}, err
}

func (p *placing) Name() string { return p.script.Name }

func (p *placing) GeneratePlacements(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	if p.script.Placements.Key != "" {
		return &fwk.GeneratePlacementsResult{Placements: p.byLabel(parent)}, nil
	}
	found, status := p.generator.GeneratePlacements(ctx, state, group, parent)
	if found != nil {
		slices.SortFunc(found.Placements, func(a, b *fwk.Placement) int { return cmp.Compare(a.Name, b.Name) })
	}
	return found, status
}

func (p *placing) byLabel(parent *fwk.Placement) []*fwk.Placement {
	var found []*fwk.Placement
	places := map[string]*fwk.Placement{}
	for _, node := range parent.Nodes {
		value, ok := node.Node().Labels[p.script.Placements.Key]
		if !ok {
			continue
		}
		if places[value] == nil {
			places[value] = &fwk.Placement{Name: value}
			found = append(found, places[value])
		}
		places[value].Nodes = append(places[value].Nodes, node)
	}
	slices.SortFunc(found, func(a, b *fwk.Placement) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

func (p *placing) ScorePlacement(_ context.Context, _ fwk.PlacementCycleState, _ fwk.PodGroupInfo, placed *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	return p.script.Placements.Ranks[placed.Name], nil
}

func (p *placing) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }
