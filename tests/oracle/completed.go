package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// refusal is one reason why kube-scheduler would not start with a configuration: where it stops ("decode", "validate"
// or "build"), the field where it names one by itself, and its words.
type refusal struct {
	Stage   string `json:"stage"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// completeConfiguration gives the configuration with its defaults, as kube-scheduler writes it, or why it is refused.
// Profiles are made too, so that what kube-scheduler refuses only then is found.
func (r *request) completeConfiguration() (json.RawMessage, []refusal) {
	object, gvk, err := scheme.Codecs.UniversalDecoder().Decode(r.Config, nil, nil)
	if err != nil {
		return nil, decodingRefusals(err)
	}
	configuration, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, []refusal{{Stage: "decode", Message: fmt.Sprintf("a %s is not a KubeSchedulerConfiguration", gvk)}}
	}
	configuration.APIVersion = gvk.GroupVersion().String()
	if faults := validation.ValidateKubeSchedulerConfiguration(configuration); faults != nil {
		return nil, validationRefusals(faults.Errors())
	}
	written, err := encodeConfiguration(configuration)
	if err == nil {
		err = makeProfiles(configuration)
	}
	if err != nil {
		return nil, []refusal{{Stage: "build", Message: err.Error()}}
	}
	return written, nil
}

func decodingRefusals(err error) []refusal {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return []refusal{{Stage: "decode", Message: err.Error()}}
	}
	found := make([]refusal, 0, len(strict.Errors()))
	for _, one := range strict.Errors() {
		found = append(found, refusal{Stage: "decode", Field: "strict", Message: one.Error()})
	}
	return found
}

func validationRefusals(faults []error) []refusal {
	found := make([]refusal, 0, len(faults))
	for _, fault := range faults {
		one := refusal{Stage: "validate", Message: fault.Error()}
		var named *field.Error
		if errors.As(fault, &named) {
			one.Field = named.Field
		}
		found = append(found, one)
	}
	return found
}

func encodeConfiguration(configuration *config.KubeSchedulerConfiguration) (json.RawMessage, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, errors.New("no serializer for JSON")
	}
	return runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion), configuration)
}
