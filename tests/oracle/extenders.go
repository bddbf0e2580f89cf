package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// extending asks what kube-scheduler makes of the answer of an extender that was asked about some nodes.
type extending struct {
	Verb   string   `json:"verb"`
	ByName bool     `json:"byName"`
	Nodes  []string `json:"nodes"`
	Answer string   `json:"answer"`
	// Candidates are the victims of preemption by node: names of pods, which are their UIDs, too.
	Candidates map[string][]string `json:"candidates"`
}

// extended is that: the nodes that are left, why others are not, the scores in their order, or that the answer is an error.
type extended struct {
	Error        string                    `json:"error"`
	Left         []string                  `json:"left"`
	Failed       extenderv1.FailedNodesMap `json:"failed"`
	Unresolvable extenderv1.FailedNodesMap `json:"unresolvable"`
	Scores       []hostScore               `json:"scores"`
	Victims      map[string]victims        `json:"victims"`
	Sent         json.RawMessage           `json:"sent"`
}

// victims are what an extender leaves of a candidate, or makes of it.
type victims struct {
	Pods       []string `json:"pods"`
	Violations int64    `json:"violations"`
}

// hostScore is an extenderv1.HostPriority with both its fields, empty or not.
type hostScore struct {
	Host  string `json:"host"`
	Score int64  `json:"score"`
}

func (e *extending) ask() (*extended, error) {
	found := &extended{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found.Sent, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, e.Answer)
	}))
	defer server.Close()
	asked, err := scheduler.NewHTTPExtender(&config.Extender{
		URLPrefix: server.URL, FilterVerb: "filter", PrioritizeVerb: "prioritize", BindVerb: "bind",
		PreemptVerb: "preempt", Weight: 1, NodeCacheCapable: e.ByName,
	})
	if err != nil {
		return nil, err
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	nodes := make([]fwk.NodeInfo, len(e.Nodes))
	for i, name := range e.Nodes {
		nodes[i] = framework.NewNodeInfo()
		nodes[i].SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	switch e.Verb {
	case "filter":
		var left []fwk.NodeInfo
		left, found.Failed, found.Unresolvable, err = asked.Filter(pod, nodes)
		for _, one := range left {
			found.Left = append(found.Left, one.Node().Name)
		}
	case "prioritize":
		var scores *extenderv1.HostPriorityList
		if scores, _, err = asked.Prioritize(pod, nodes); scores != nil {
			for _, one := range *scores {
				found.Scores = append(found.Scores, hostScore{one.Host, one.Score})
			}
		}
	case "preempt":
		found.Victims, err = e.preempt(asked, pod)
	default:
		err = asked.Bind(&v1.Binding{ObjectMeta: pod.ObjectMeta, Target: v1.ObjectReference{Name: "n1"}})
	}
	if err != nil {
		found.Error = err.Error()
	}
	return found, nil
}

// preempt asks which candidates are left. Each node has the pods that are its victims, and no other ones.
func (e *extending) preempt(asked fwk.Extender, pod *v1.Pod) (map[string]victims, error) {
	var pods []*v1.Pod
	var nodes []*v1.Node
	given := map[string]*extenderv1.Victims{}
	for node, names := range e.Candidates {
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		given[node] = &extenderv1.Victims{NumPDBViolations: int64(len(names))}
		for _, name := range names {
			one := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{NodeName: node}}
			pods = append(pods, one)
			given[node].Pods = append(given[node].Pods, one)
		}
	}
	left, err := asked.ProcessPreemption(pod, given, cache.NewSnapshot(pods, nodes).NodeInfos())
	found := map[string]victims{}
	for node, one := range left {
		named := victims{Violations: one.NumPDBViolations}
		for _, victim := range one.Pods {
			named.Pods = append(named.Pods, victim.Name)
		}
		found[node] = named
	}
	return found, err
}
