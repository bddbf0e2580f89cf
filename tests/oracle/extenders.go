package main

import (
	"io"
	"net/http"
	"net/http/httptest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// extending asks what kube-scheduler makes of the answer of an extender that was asked about some nodes.
type extending struct {
	Verb   string   `json:"verb"`
	ByName bool     `json:"byName"`
	Nodes  []string `json:"nodes"`
	Answer string   `json:"answer"`
}

// extended is that: the nodes that are left, why others are not, the scores in their order, or that the answer is an error.
type extended struct {
	Error        string                    `json:"error"`
	Left         []string                  `json:"left"`
	Failed       extenderv1.FailedNodesMap `json:"failed"`
	Unresolvable extenderv1.FailedNodesMap `json:"unresolvable"`
	Scores       []hostScore               `json:"scores"`
}

// hostScore is an extenderv1.HostPriority with both its fields, empty or not.
type hostScore struct {
	Host  string `json:"host"`
	Score int64  `json:"score"`
}

func (e *extending) ask() (*extended, error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, e.Answer)
	}))
	defer server.Close()
	asked, err := scheduler.NewHTTPExtender(&config.Extender{
		URLPrefix: server.URL, FilterVerb: "filter", PrioritizeVerb: "prioritize", BindVerb: "bind",
		Weight: 1, NodeCacheCapable: e.ByName,
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
	found := &extended{}
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
	default:
		err = asked.Bind(&v1.Binding{ObjectMeta: pod.ObjectMeta, Target: v1.ObjectReference{Name: "n1"}})
	}
	if err != nil {
		found.Error = err.Error()
	}
	return found, nil
}
