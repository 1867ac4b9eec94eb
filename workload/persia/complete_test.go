package persia

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

// completionArgs returns the arguments of a job without volumes.
func completionArgs() JobArgs {
	return JobArgs{
		Job:             config.Job{Name: "criteo", RunID: "1", NNWorker: config.NNWorker{Role: config.Role{Replicas: 8}}},
		Namespace:       NamespaceName,
		SystemPlacement: kube.Placement{NodeSelector: map[string]string{"pool": "system"}},
		Placement:       func(string) kube.Placement { return kube.Placement{} },
		Claims:          func([]config.Mount) []Claim { return nil },
	}
}

// TestCompletionName checks that a change of an immutable field of a Job makes another Job, and that
// no other change does.
func TestCompletionName(t *testing.T) {
	args := func(change func(*JobArgs)) JobArgs {
		args := completionArgs()
		change(&args)
		return args
	}
	name := func(change func(*JobArgs)) string { return completion(args(change)).job().Name }
	same := name(func(*JobArgs) {})
	assert.Regexp(t, `^criteo-completion-[0-9a-f]{8}$`, same)
	for what, test := range map[string]struct {
		change  func(*JobArgs)
		another bool
	}{
		"nothing":                      {func(*JobArgs) {}, false},
		"a suspended job":              {func(a *JobArgs) { a.Job.Suspend = true }, false},
		"other dataloaders":            {func(a *JobArgs) { a.Job.Dataloader.Replicas = 7 }, true},
		"another number of nn-workers": {func(a *JobArgs) { a.Job.NNWorker.Replicas = 9 }, true},
		"another run":                  {func(a *JobArgs) { a.Job.RunID = "2" }, true},
		"another place":                {func(a *JobArgs) { a.SystemPlacement.NodeSelector = nil }, true},
		"another job of the same run":  {func(a *JobArgs) { a.Job.Name = "other" }, true},
	} {
		t.Run(what, func(t *testing.T) { assert.Equal(t, test.another, name(test.change) != same) })
	}
	assert.Len(t, name(func(a *JobArgs) { a.Job.Name = strings.Repeat("j", 63) }), 63)
}

// TestCompletionRunsGateway: a JobSet's gateway ends with its job, and so the completion runs it.
// The gateway of a job with another engine stays, as its servers do.
func TestCompletionRunsGateway(t *testing.T) {
	for name, test := range map[string]struct {
		engine  config.Engine
		metrics bool
		runs    bool
	}{
		"a JobSet":                 {config.EngineJobSet, true, true},
		"a JobSet without metrics": {config.EngineJobSet, false, false},
		"StatefulSets":             {config.EngineStatefulSet, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			args := completionArgs()
			args.Job.Engine, args.Job.EnableMetrics = test.engine, test.metrics
			pod := completion(args).job().Spec.Template
			service := metricsService(args)
			selected := labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
			assert.Equal(t, test.runs, selected, "its Service leads to the completion")
			assert.Equal(t, test.runs, pod.Labels[scrapedLabel] != "", "it is scraped")
			require.Len(t, pod.Spec.Containers, 1, "each container would be scraped")
			container := pod.Spec.Containers[0]
			ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 9091}}
			want := capacity.CompletionWithGateway
			if !test.runs {
				ports, want = nil, capacity.Completion
			}
			assert.Equal(t, ports, container.Ports)
			assert.Equal(t, kube.Requests(want), container.Resources.Requests)
			assert.Equal(t, test.runs, slices.Contains(container.Env, corev1.EnvVar{Name: "PERSIA_GATEWAY_PORT", Value: "9091"}))
			assert.Equal(t, test.runs, container.ReadinessProbe != nil)
		})
	}
}
