package persia

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"

	"persia/config"
	"persia/kube"
)

// TestCompletionSpec checks which changes replace the Job of a completion.
func TestCompletionSpec(t *testing.T) {
	changed := func(change func(*JobArgs)) *batchv1.Job {
		job := config.Job{Name: "criteo", RunID: "1", NNWorker: config.NNWorker{Role: config.Role{Replicas: 8}}}
		args := JobArgs{Job: job, SystemPlacement: kube.Placement{NodeSelector: map[string]string{"pool": "system"}}}
		change(&args)
		names := namesOf(args.Job)
		return completion(args, names, rolesOf(args, names), "")
	}
	same := text(changed(func(*JobArgs) {}).Spec)
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
	} {
		t.Run(what, func(t *testing.T) { assert.Equal(t, test.another, text(changed(test.change).Spec) != same) })
	}
	assert.Len(t, changed(func(a *JobArgs) { a.Job.Name = strings.Repeat("j", 63) }).Name, 63)
}
