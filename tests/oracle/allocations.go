package main

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// someShare takes the place of the random IDs of shares.
const someShare = types.UID("00000000-0000-0000-0000-000000000000")

// allocation is what a claim would get on a node.
type allocation struct {
	Claim string `json:"claim"`
	// Requests are those of the claim that stands for extended resources, which is another one on each node.
	Requests []resourcev1.DeviceRequest  `json:"requests,omitempty"`
	Result   resourcev1.AllocationResult `json:"result"`
}

// allocate writes down what the pod's claims would get on each feasible node, as Reserve puts it in flight.
func (d *decision) allocate(ctx context.Context, nodes []fwk.NodeInfo) {
	for _, node := range nodes {
		name := node.Node().Name
		// Where the profile lacks parts of the plugin there is nothing to reserve, which is an error.
		claims, err := d.devices.reserve(ctx, d.framework.ProfileName(), d.state, d.pod, name, true)
		if err != nil || len(claims) == 0 {
			continue
		}
		if d.record.Allocations == nil {
			d.record.Allocations = map[string][]allocation{}
		}
		for _, claim := range claims {
			d.record.Allocations[name] = append(d.record.Allocations[name], allocationOf(claim))
		}
	}
}

func allocationOf(claim *resourcev1.ResourceClaim) allocation {
	made := allocation{Claim: claim.Name, Result: *claim.Status.Allocation.DeepCopy()}
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
		made.Requests = claim.Spec.Devices.Requests
	}
	for i := range made.Result.Devices.Results {
		if result := &made.Result.Devices.Results[i]; result.ShareID != nil {
			share := someShare
			result.ShareID = &share
		}
	}
	return made
}
