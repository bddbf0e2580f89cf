// Command karpenter reports whether Karpenter would put a pod with a node affinity on nodes.
//
// It reads one case per line as JSON, and writes one line per case: a list with a truth value for each node. Karpenter
// tries the terms of an affinity one after another.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

type given struct {
	Affinity *corev1.NodeAffinity `json:"affinity"`
	Nodes    []map[string]string  `json:"nodes"`
}

func podsByTerm(affinity *corev1.NodeAffinity) []*corev1.Pod {
	if affinity == nil || affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return []*corev1.Pod{{}}
	}
	var pods []*corev1.Pod
	for _, term := range affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		selector := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
		only := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}
		pods = append(pods, &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: only}}})
	}
	return pods
}

func admits(pods []*corev1.Pod, labels map[string]string) bool {
	node := scheduling.NewLabelRequirements(labels)
	for _, pod := range pods {
		if node.Compatible(scheduling.NewStrictPodRequirements(pod)) == nil {
			return true
		}
	}
	return false
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	decoder, encoder := json.NewDecoder(lines), json.NewEncoder(os.Stdout)
	for decoder.More() {
		var read given
		if err := decoder.Decode(&read); err != nil {
			panic(err)
		}
		pods, answers := podsByTerm(read.Affinity), []bool{}
		for _, labels := range read.Nodes {
			answers = append(answers, admits(pods, labels))
		}
		if err := encoder.Encode(answers); err != nil {
			panic(err)
		}
	}
}
