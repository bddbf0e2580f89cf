package dynamicresources

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/test/utils/ktesting"
)

var dumping sync.Mutex

// tell appends a line to the file that the environment names.
func tell(tCtx ktesting.TContext, line map[string]any) {
	dumping.Lock()
	defer dumping.Unlock()
	line["name"] = tCtx.Name()
	file, err := os.OpenFile(os.Getenv("POLICYSCHED_TABLES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	tCtx.ExpectNoError(err)
	defer file.Close()
	tCtx.ExpectNoError(json.NewEncoder(file).Encode(line))
}

// dumpCase tells with what a case begins.
func (tc *testContext) dumpCase(tCtx ktesting.TContext, args *config.DynamicResourcesArgs, features feature.Features, failPatch bool, reactors int, nodes []*v1.Node, objs []apiruntime.Object) {
	slices, err := tc.client.ResourceV1().ResourceSlices().List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	classes, err := tc.client.ResourceV1().DeviceClasses().List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	pods, err := tc.client.CoreV1().Pods("").List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	tell(tCtx, map[string]any{
		"step":      "begin",
		"now":       time.Now().UTC().Format(time.RFC3339Nano),
		"features":  features,
		"failPatch": failPatch,
		"reactors":  reactors,
		"args":      args,
		"nodes":     nodes,
		"claims":    tc.listAll(tCtx),
		"slices":    slices.Items,
		"classes":   classes.Items,
		"pods":      pods.Items,
	})
}

// dump tells what a step has answered, and what there is after it.
func (tc *testContext) dump(tCtx ktesting.TContext, pod *v1.Pod, result any, status *fwk.Status) {
	assumed, _ := tc.listAssumedClaims()
	pods, err := tc.client.CoreV1().Pods("").List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	tell(tCtx, map[string]any{
		"step":     "end",
		"code":     status.Code().String(),
		"message":  status.Message(),
		"result":   result,
		"pod":      pod,
		"claims":   tc.listAll(tCtx),
		"assumed":  assumed,
		"inFlight": tc.listInFlightClaims(),
		"pods":     pods.Items,
	})
}

// dumpPrepared tells of an object that somebody else changes before a step.
func dumpPrepared(tCtx ktesting.TContext, object metav1.Object) {
	tell(tCtx, map[string]any{"step": "prepared", "object": object})
}
