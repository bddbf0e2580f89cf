//go:build !k138

package main

import (
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// NominatedPodsForNode returns the pods that are nominated to a node.
func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo { return n.byNode[node] }

func sliceIndexer(factory informers.SharedInformerFactory) cache.Indexer {
	return sliceInformer(factory).Informer().GetIndexer()
}

// stored returns an object as the store of its kind keeps it.
func stored(object runtime.Object) runtime.Object { return object }
