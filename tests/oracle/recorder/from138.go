//go:build k138

package main

import (
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

func placementOptions(configuration *config.KubeSchedulerConfiguration) []scheduler.Option {
	return []scheduler.Option{scheduler.WithPercentageOfPlacementsToScore(configuration.PercentageOfPlacementsToScore)}
}
