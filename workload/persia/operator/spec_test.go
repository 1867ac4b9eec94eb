package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config/job"
	"persia/workload/persia"
)

// TestTrainersFindTheDriver: what a stack file says about the path of libraries wins.
func TestTrainersFindTheDriver(t *testing.T) {
	const driver = "/usr/local/nvidia/lib64"
	own := []corev1.EnvVar{{Name: "LD_LIBRARY_PATH", Value: "/own"}}
	cases := map[string]struct {
		gpus            string
		jobEnv, roleEnv []corev1.EnvVar
		wants           string
	}{
		"no GPUs":                   {gpus: "0"},
		"GPUs":                      {gpus: "8", wants: driver},
		"GPUs and the job's path":   {gpus: "8", jobEnv: own, wants: "/own"},
		"GPUs and the role's path":  {gpus: "8", roleEnv: own, wants: "/own"},
		"GPUs and another variable": {gpus: "8", roleEnv: []corev1.EnvVar{{Name: "A", Value: "b"}}, wants: driver},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			training := job.Job{Name: "a", Env: test.jobEnv, EnableMetrics: true}
			training.NNWorker.Env = test.roleEnv
			training.NNWorker.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(test.gpus)}
			spec := jobSpec(JobArgs{Job: training, Claims: func([]job.Mount) []persia.Claim { return nil }})

			var path string
			for _, variable := range append(spec.Env, spec.NNWorker.Env...) {
				if variable.Name == "LD_LIBRARY_PATH" {
					path = variable.Value
				}
			}
			if test.wants == "" {
				assert.Empty(t, path)
			} else {
				assert.Contains(t, path, test.wants)
			}
			for _, variable := range spec.Dataloader.Env {
				assert.NotEqual(t, "LD_LIBRARY_PATH", variable.Name, "data loaders have no GPUs")
			}
		})
	}
}
