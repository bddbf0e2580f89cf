// Package conformancesuite makes a program of the specs of SIG Scheduling and of those of dynamic resource allocation: with
// all others, as in Kubernetes' own e2e.test, it takes many times as long to build.
package conformancesuite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/e2e/dra"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	_ "k8s.io/kubernetes/test/e2e/scheduling"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	ginkgo.BeforeEach(waitForEarlierSpecs)
	ginkgo.ReportAfterEach(tell)
	os.Exit(m.Run())
}

func TestSpecs(t *testing.T) {
	e2e.RunE2ETests(t)
}

// waitForEarlierSpecs waits until their pods are gone, since all share the nodes. It is declared after the flags have been
// read: the framework looks at all specs then, and what was declared before beside them is lost.
func waitForEarlierSpecs(ctx context.Context) {
	client, err := framework.LoadClientset()
	framework.ExpectNoError(err)
	gone := func(ctx context.Context) (bool, error) {
		left, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: "e2e-run"})
		return err == nil && len(left.Items) == 0, nil
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, gone)
	framework.ExpectNoError(err, "waiting for the namespaces of earlier specs to go")
}

// tell writes one line a spec for whoever runs this program.
func tell(report ginkgo.SpecReport) {
	if report.State.String() != "skipped" {
		fmt.Printf("\nspec\t%s\t%.1f\t%s\n", report.State, report.RunTime.Seconds(), report.FullText())
	}
}
