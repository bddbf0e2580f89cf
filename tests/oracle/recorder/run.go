package main

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// run plays a script and returns what happened.
func run(asked script) outcome {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	defer cancel()
	notes := newRecord(asked.ID)
	server := newAPI(notes)
	restore, err := setGates(asked.Gates)
	if err != nil {
		return outcome{ID: asked.ID, Error: err.Error()}
	}
	defer restore()
	plugins, err := play(ctx, asked, notes, server)
	if err != nil {
		return outcome{ID: asked.ID, Error: err.Error()}
	}
	for _, one := range asked.Steps {
		time.Sleep(time.Until(notes.start.Add(seconds(one.At))))
		if err := happen(one, server, plugins); err != nil {
			return outcome{ID: asked.ID, Error: err.Error()}
		}
	}
	time.Sleep(time.Until(notes.start.Add(seconds(asked.Until))))
	synctest.Wait()
	pods, err := server.pods(ctx)
	if err != nil {
		return outcome{ID: asked.ID, Error: err.Error()}
	}
	groups, err := server.groups(ctx)
	if err != nil {
		return outcome{ID: asked.ID, Error: err.Error()}
	}
	claims, err := server.claims(ctx)
	if err != nil {
		return outcome{ID: asked.ID, Error: err.Error()}
	}
	return notes.end(pods, groups, claims)
}

// setGates sets feature gates, and returns what sets them back.
func setGates(gates map[string]bool) (func(), error) {
	before := map[string]bool{}
	for name := range gates {
		if _, known := feature.DefaultMutableFeatureGate.GetAll()[featuregate.Feature(name)]; !known {
			return nil, fmt.Errorf("there is no feature gate %s", name)
		}
		before[name] = feature.DefaultFeatureGate.Enabled(featuregate.Feature(name))
	}
	restore := func() {
		if err := feature.DefaultMutableFeatureGate.SetFromMap(before); err != nil {
			panic(err)
		}
	}
	return restore, feature.DefaultMutableFeatureGate.SetFromMap(gates)
}

// play starts a scheduler.
func play(ctx context.Context, asked script, notes *record, server *api) ([]*plugin, error) {
	configuration, err := read(asked)
	if err != nil {
		return nil, err
	}
	registry := frameworkruntime.Registry{}
	var plugins []*plugin
	for _, one := range asked.Plugins {
		made := &plugin{script: one, record: notes}
		plugins = append(plugins, made)
		if err := registry.Register(one.Name, made.factory()); err != nil {
			return nil, err
		}
	}
	factory := newInformerFactory(server.client)
	options := append(placementOptions(configuration),
		scheduler.WithComponentConfigVersion(configuration.APIVersion),
		scheduler.WithProfiles(configuration.Profiles...),
		scheduler.WithPercentageOfNodesToScore(configuration.PercentageOfNodesToScore),
		scheduler.WithPodInitialBackoffSeconds(configuration.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(configuration.PodMaxBackoffSeconds),
		scheduler.WithParallelism(configuration.Parallelism),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
	)
	made, err := scheduler.New(ctx, server.client, factory, nil,
		func(string) events.EventRecorderLogger { return &recorder{notes} }, options...)
	if err != nil {
		return nil, err
	}
	slowly(made)
	err = start(ctx, made, factory)
	notes.start = time.Now()
	return plugins, err
}

// cycleSeconds is what passes between a pod's turn and its cycle: in it everything settles that came of the cycle before.
const cycleSeconds = 0.001

func slowed[T any](pop func(klog.Logger) (T, error)) func(klog.Logger) (T, error) {
	return func(logger klog.Logger) (T, error) {
		found, err := pop(logger)
		time.Sleep(seconds(cycleSeconds))
		return found, err
	}
}

// start starts it at a whole second of the clock, since its queue works in whole seconds.
func start(ctx context.Context, made *scheduler.Scheduler, factory informers.SharedInformerFactory) error {
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := made.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	go made.Run(ctx)
	return nil
}

func read(asked script) (*config.KubeSchedulerConfiguration, error) {
	object, gvk, err := scheme.Codecs.UniversalDecoder().Decode(asked.Config, nil, nil)
	if err != nil {
		return nil, err
	}
	configuration, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("a %s is not a KubeSchedulerConfiguration", gvk)
	}
	configuration.APIVersion = gvk.GroupVersion().String()
	return configuration, validation.ValidateKubeSchedulerConfiguration(configuration)
}

func happen(one step, server *api, plugins []*plugin) error {
	switch {
	case one.Set != nil:
		return server.set(one.Set)
	case one.Remove != nil:
		return server.remove(*one.Remove)
	}
	for _, found := range plugins {
		if found.handle != nil && !found.script.Sort {
			found.do(*one.Do)
			return nil
		}
	}
	return errors.New("no plugin is there to do anything")
}
