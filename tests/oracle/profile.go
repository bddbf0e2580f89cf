package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// ownSchedulerName names the default profile for pods that ask for no scheduler.
const ownSchedulerName = "policysched"

// configurations remembers decoded configurations, since most cases share a few texts.
var configurations = map[string]*config.KubeSchedulerConfiguration{}

// profileFor gives the profile that decides about the pod: the one it names, or the only one.
// Without a configuration that is the default profile under the pod's own scheduler name.
func profileFor(raw json.RawMessage, pod *v1.Pod) (*config.KubeSchedulerProfile, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return defaultProfile(pod.Spec.SchedulerName)
	}
	configuration, err := loadConfiguration(raw)
	if err != nil {
		return nil, err
	}
	for i := range configuration.Profiles {
		if configuration.Profiles[i].SchedulerName == pod.Spec.SchedulerName {
			return &configuration.Profiles[i], nil
		}
	}
	if len(configuration.Profiles) == 1 {
		return &configuration.Profiles[0], nil
	}
	return nil, fmt.Errorf("profile not found for scheduler name %q", pod.Spec.SchedulerName)
}

func defaultProfile(schedulerName string) (*config.KubeSchedulerProfile, error) {
	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &configuration.Profiles[0]
	profile.SchedulerName = schedulerName
	if schedulerName == "" {
		profile.SchedulerName = ownSchedulerName
	}
	return profile, nil
}

func loadConfiguration(raw json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if known, ok := configurations[string(raw)]; ok {
		return known, nil
	}
	object, gvk, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	configuration, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("configuration: a %s is not a KubeSchedulerConfiguration", gvk)
	}
	configuration.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(configuration); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(configuration.Extenders) > 0 {
		return nil, fmt.Errorf("configuration: extenders are programs outside the case")
	}
	configurations[string(raw)] = configuration
	return configuration, nil
}
