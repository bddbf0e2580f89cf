//go:build !k138

package main

import (
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// placementOptions are for placements of pod groups, of which this release evaluates all.
func placementOptions(*config.KubeSchedulerConfiguration) []scheduler.Option { return nil }
