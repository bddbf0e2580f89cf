// The allocator of Kubernetes as a judge: it answers cases from standard input, or tells those of its own table tests.
//
// Built as the tests' program of a package inside a copy of k8s.io/dynamic-resource-allocation, because the table
// tests are internal there. Without arguments of ours it runs the table tests and writes each call as a line of JSON
// into the file that POLICYSCHED_TABLES names; with POLICYSCHED_SERVE=1 it answers one case a line.
package judge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
	"k8s.io/dynamic-resource-allocation/structured/internal/incubating"
)

// defaultGates are the features with the default feature gates of v1.36 and v1.37.
var defaultGates = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

// filterTimeout is how long kube-scheduler lets Filter search on a node: some cases take hours.
const filterTimeout = 10 * time.Second

type question struct {
	Classes   []*resourceapi.DeviceClass   `json:"classes"`
	Slices    []*resourceapi.ResourceSlice `json:"slices"`
	Claims    []*resourceapi.ResourceClaim `json:"claims"`
	Allocated []*resourceapi.ResourceClaim `json:"allocated"`
	Nodes     []*v1.Node                   `json:"nodes"`
}

type answer struct {
	Results []resourceapi.AllocationResult `json:"results"`
	Error   string                         `json:"error,omitempty"`
	OnNode  bool                           `json:"onNode,omitempty"`
	// Timeout says that there is no answer within kube-scheduler's filterTimeout.
	Timeout bool `json:"timeout,omitempty"`
}

type told struct {
	Name             string   `json:"name"`
	Question         question `json:"question"`
	AllocationAnswer answer   `json:"answer"`
	// Own says whether the table's own gates lead to the same answer.
	Own bool `json:"own"`
}

type classLister []*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("deviceclass.resource.k8s.io %q not found", name)
}

// stateOf counts what allocated claims have taken.
func stateOf(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			}
		}
	}
	return state
}

func allocate(ctx context.Context, asked question) ([]answer, error) {
	cache := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	allocator, err := structured.NewAllocator(
		ctx, defaultGates, stateOf(asked.Allocated), classLister(asked.Classes), asked.Slices, cache)
	if err != nil {
		return nil, err
	}
	var answers []answer
	for _, node := range asked.Nodes {
		limited, cancel := context.WithTimeout(ctx, filterTimeout)
		results, err := allocator.Allocate(limited, node, asked.Claims)
		cancel()
		answers = append(answers, answerOf(results, err))
	}
	return answers, nil
}

func answerOf(results []resourceapi.AllocationResult, err error) answer {
	if err != nil {
		timeout := errors.Is(err, context.DeadlineExceeded)
		return answer{Error: err.Error(), OnNode: isOnNode(err), Timeout: timeout}
	}
	return answer{Results: results}
}

func isOnNode(err error) bool {
	for err != nil {
		if err == structured.ErrFailedAllocationOnNode {
			return true
		}
		unwrapped, ok := err.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = unwrapped.Unwrap()
	}
	return false
}

func serve() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		answers, err := allocate(context.Background(), asked)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(answers); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

func TestMain(m *testing.M) {
	if os.Getenv("POLICYSCHED_SERVE") != "" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// claimsOf turns a state into allocated claims that stand for it.
func claimsOf(state structured.AllocatedState) []*resourceapi.ResourceClaim {
	var results []resourceapi.DeviceRequestAllocationResult
	result := func(id structured.DeviceID) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{
			Driver: id.Driver.String(), Pool: id.Pool.String(), Device: id.Device.String()}
	}
	for id := range state.AllocatedDevices {
		results = append(results, result(id))
	}
	for id := range state.AllocatedSharedDeviceIDs {
		share := types.UID(id.ShareID.String())
		one := result(id.GetDeviceID())
		one.ShareID = &share
		results = append(results, one)
	}
	for id, consumed := range state.AggregatedCapacity {
		share := types.UID("aggregated")
		one := result(id)
		one.ShareID = &share
		one.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{}
		for name, amount := range consumed {
			one.ConsumedCapacity[name] = amount.DeepCopy()
		}
		results = append(results, one)
	}
	if results == nil {
		return nil
	}
	sort.Slice(results, func(i, j int) bool { return fmt.Sprint(results[i]) < fmt.Sprint(results[j]) })
	allocation := &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	return []*resourceapi.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "allocated", UID: "allocated"},
		Status:     resourceapi.ResourceClaimStatus{Allocation: allocation},
	}}
}

type copyable[T any] interface{ DeepCopy() T }

func copies[T copyable[T]](objects []T) []T {
	var copied []T
	for _, object := range objects {
		copied = append(copied, object.DeepCopy())
	}
	return copied
}

type teller struct {
	incubating.Allocator
	inner internal.Allocator
	tell  func(node *v1.Node, claims []*resourceapi.ResourceClaim, own answer)
}

func (t *teller) Allocate(
	ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim,
) ([]resourceapi.AllocationResult, error) {
	results, err := t.inner.Allocate(ctx, node, claims)
	// Writing a quantity changes it, and the tables compare all objects with what they were.
	var copied []resourceapi.AllocationResult
	for _, result := range results {
		copied = append(copied, *result.DeepCopy())
	}
	t.tell(node, copies(claims), answerOf(copied, err))
	return results, err
}

func (t *teller) Channel() internal.AllocatorChannel { return t.inner.Channel() }

func (t *teller) GetStats() internal.Stats { return t.inner.(internal.AllocatorExtended).GetStats() }

func textOf(one answer) string {
	for i := range one.Results {
		for j := range one.Results[i].Devices.Results {
			one.Results[i].Devices.Results[j].ShareID = nil
		}
	}
	text, err := json.Marshal(one)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// readBack returns a question as JSON tells it: JSON does not tell every quantity as it is.
func readBack(t *testing.T, asked question) question {
	text, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	var read question
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestTables(t *testing.T) {
	file, err := os.Create(os.Getenv("POLICYSCHED_TABLES"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := json.NewEncoder(file)
	newAllocator := func(ctx context.Context, features internal.Features, state internal.AllocatedState,
		lister internal.DeviceClassLister, slices []*resourceapi.ResourceSlice, cache *cel.Cache,
	) (internal.Allocator, error) {
		inner, err := incubating.NewAllocator(ctx, features, state, lister, slices, cache)
		if err != nil {
			return nil, err
		}
		classes, err := lister.List()
		if err != nil {
			return nil, err
		}
		tell := func(node *v1.Node, claims []*resourceapi.ResourceClaim, own answer) {
			asked := question{Classes: copies(classes), Slices: copies(slices), Claims: claims,
				Allocated: claimsOf(state), Nodes: []*v1.Node{node}}
			if ctx.Err() != nil {
				return
			}
			asked = readBack(t, asked)
			answers, err := allocate(context.Background(), asked)
			if err != nil {
				t.Fatal(err)
			}
			same := textOf(own) == textOf(answers[0])
			if err := out.Encode(told{Name: t.Name(), Question: asked, AllocationAnswer: answers[0], Own: same}); err != nil {
				t.Fatal(err)
			}
		}
		return &teller{inner: inner, tell: tell}, nil
	}
	allocatortesting.TestAllocator(t, incubating.SupportedFeatures, newAllocator)
	allocatortesting.TestLexicographicalAllocator(t, incubating.SupportedFeatures, newAllocator)
}
