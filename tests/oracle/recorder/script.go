package main

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// script is one run of a scheduler: a configuration, plugins with what they answer, and what happens when.
type script struct {
	ID     string          `json:"id"`
	Config json.RawMessage `json:"config"`
	// Gates are feature gates that are not at their defaults.
	Gates   map[string]bool `json:"gates"`
	Plugins []pluginScript  `json:"plugins"`
	Steps   []step          `json:"steps"`
	// Until is when the run ends, in seconds after its start.
	Until float64 `json:"until"`
}

// pluginScript is what one plugin does at each point.
type pluginScript struct {
	Name string `json:"name"`
	// Sort makes it a QueueSort plugin and nothing else: pods go by their label `rank`.
	Sort bool `json:"sort"`
	// Ranks makes it a Score plugin and nothing else, which is not recorded: the scores of nodes, by name.
	Ranks map[string]int64 `json:"ranks"`
	// Placements makes it a plugin that places pod groups and nothing else, which is not recorded.
	Placements *placementScript `json:"placements"`
	// Events are those that it registers for; null is a plugin that registers for none, which means all.
	Events []eventScript `json:"events"`
	// PlainFilter and PlainScore leave the extensions of PreFilter and Score out.
	PlainFilter bool `json:"plainFilter"`
	PlainScore  bool `json:"plainScore"`
	// Takes is how long PreBind and Bind take, so that what began together does not end together. Units: seconds.
	Takes float64 `json:"takes"`
	// Answers are by point and pod, one for each cycle of the pod in turn; after the last one it has nothing against it.
	Answers map[string]map[string][]answer `json:"answers"`
}

// placementScript is a generator of placements in the order of their names, whose scores distinguish them.
type placementScript struct {
	// Key is a label of nodes whose values are the placements; without one, they are those of the topology constraint.
	Key string `json:"key"`
	// Ranks are the scores of placements, by name; others have 0.
	Ranks map[string]int64 `json:"ranks"`
}

type eventScript struct {
	Resource string   `json:"resource"`
	Actions  []string `json:"actions"`
	// Hint is what the queueing hint says: "Queue", "Skip", "Error", or none.
	Hint string `json:"hint"`
}

// answer is what a plugin returns at a point.
type answer struct {
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
	// Nodes narrows at PreFilter.
	Nodes *[]string `json:"nodes"`
	// ByNode has the answers of Filter and Score, by node.
	ByNode map[string]answer `json:"byNode"`
	// Score is that of a node, at NormalizeScore too.
	Score int64 `json:"score"`
	// Timeout is how long a pod waits at Permit, Pause how long the plugin takes. Units: seconds.
	Timeout float64 `json:"timeout"`
	Pause   float64 `json:"pause"`
	// Nominate is the node that PostFilter nominates, "" to clear it; null leaves it as it is.
	Nominate *string `json:"nominate"`
	// AllowParallel is what PreBindPreFlight says beside its status.
	AllowParallel bool `json:"allowParallel"`
	// Do is what the plugin does to other pods before it answers.
	Do []deed `json:"do"`
}

// deed is something that a plugin, or somebody outside, does to a pod.
type deed struct {
	// Act is "allow", "reject" or "activate".
	Act string `json:"act"`
	Pod string `json:"pod"`
	// Plugin is in whose name; Message says why a pod is rejected.
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
}

// step is something that happens in the cluster.
type step struct {
	At float64 `json:"at"`
	// Set creates an object, or puts another version in its place; a pod keeps its node, and it and a pod group keep
	// their status.
	Set json.RawMessage `json:"set"`
	// Remove is the object that goes.
	Remove *reference `json:"remove"`
	Do     *deed      `json:"do"`
}

type reference struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// kindOnly peeks at an object.
type kindOnly struct {
	metav1.TypeMeta `json:",inline"`
}

// outcome is what a run was seen to do.
type outcome struct {
	ID     string      `json:"id"`
	Calls  []call      `json:"calls"`
	Events []event     `json:"events"`
	Writes []write     `json:"writes"`
	Pods   []podLine   `json:"pods"`
	Groups []groupLine `json:"groups,omitempty"`
	Claims []claimLine `json:"claims,omitempty"`
	Error  string      `json:"error,omitempty"`
}

// call is one call of a plugin.
type call struct {
	At     float64  `json:"at"`
	Point  string   `json:"point"`
	Plugin string   `json:"plugin"`
	Pod    string   `json:"pod"`
	Cycle  int      `json:"cycle,omitempty"`
	Node   string   `json:"node,omitempty"`
	Nodes  []string `json:"nodes,omitempty"`
	// Scores are those to be normalised.
	Scores map[string]int64 `json:"scores,omitempty"`
	// Statuses are those that PostFilter is shown, by node.
	Statuses map[string]string `json:"statuses,omitempty"`
	// Other is the pod that AddPod or RemovePod is about.
	Other string `json:"other,omitempty"`
	// Notes are what the plugin itself wrote into the CycleState at earlier points, in that order.
	Notes string `json:"notes,omitempty"`
	// Pods are those that count on the node, at Filter and Score.
	Pods []string `json:"pods,omitempty"`
	// Waiting says whether the pod of a deed waited, and for which plugins.
	Waiting []string `json:"waiting,omitempty"`
}

type event struct {
	At     float64 `json:"at"`
	Pod    string  `json:"pod"`
	Type   string  `json:"type"`
	Reason string  `json:"reason"`
	Action string  `json:"action"`
	Note   string  `json:"note"`
}

// write is a change of the status of a pod or of a pod group that the scheduler wrote.
type write struct {
	At    float64 `json:"at"`
	Pod   string  `json:"pod,omitempty"`
	Group string  `json:"group,omitempty"`
	// Condition is PodScheduled of a pod, PodGroupInitiallyScheduled of a group: status, reason and message, and of a
	// group the observed generation.
	Condition []string `json:"condition,omitempty"`
	// Nominated is the node that the pod is nominated to from now on.
	Nominated *string `json:"nominated,omitempty"`
	// Node is the node that it is bound to.
	Node string `json:"node,omitempty"`
}

// podLine is how a pod ends.
type podLine struct {
	Pod       string   `json:"pod"`
	Node      string   `json:"node"`
	Nominated string   `json:"nominated"`
	Condition []string `json:"condition"`
}

// groupLine is how a pod group ends.
type groupLine struct {
	Group     string   `json:"group"`
	Condition []string `json:"condition"`
}

// claimLine is how a resource claim ends: with which devices, and for which pods.
type claimLine struct {
	Claim    string   `json:"claim"`
	Devices  []string `json:"devices"`
	Reserved []string `json:"reserved"`
}

func seconds(value float64) time.Duration {
	return time.Duration(value * float64(time.Second))
}
