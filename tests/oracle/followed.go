//go:build k137

package main

import (
	"reflect"

	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"
)

type followedRules struct {
	resourceinformers.TypedDeviceTaintRuleInformer
	typed resourceinformers.DeviceTaintRuleIndexInformer
}

func (f followedRules) TypedInformer() resourceinformers.DeviceTaintRuleIndexInformer { return f.typed }

// handed is an informer whose handler is called by hand.
type handed struct {
	cache.SharedIndexInformer
	following handlers
	kind      reflect.Type
}

func (h handed) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	h.following[h.kind] = handler
	return synced{}, nil
}

// synced is the registration of a handler that has heard of everything.
type synced struct{}

func (synced) HasSynced() bool                       { return true }
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }
func (synced) Name() string                          { return "handed over" }
func (synced) Done() <-chan struct{}                 { return closed }

var closed = func() chan struct{} { made := make(chan struct{}); close(made); return made }()
