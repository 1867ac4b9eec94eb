package stack

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/config"
	"persia/internal/testkit"
	"persia/stack/effects"
)

// storageDown is Google's provider while Cloud Storage answers 503. It keeps the program's warnings.
type storageDown struct {
	pulumi.Log
	warned []string
}

func (*storageDown) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	return args.Name, args.Inputs, nil
}

func (*storageDown) Call(pulumi.MockCallArgs) (resource.PropertyMap, error) {
	time.Sleep(2 * time.Minute)
	return nil, errors.New("googleapi: got HTTP response code 503")
}

func (s *storageDown) Warn(text string, _ *pulumi.LogArgs) error {
	s.warned = append(s.warned, text)
	return nil
}

// TestMeasureGivesUp: the rows of measured jobs are optional, so the program waits seconds for all of them.
func TestMeasureGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &storageDown{}
		ctx := testkit.Must(pulumi.NewContext(t.Context(), pulumi.RunInfo{Project: "persia", Stack: "dev", Mocks: down}))(t)
		require.NoError(t, pulumi.RunWithContext(ctx, func(ctx *pulumi.Context) error {
			down.Log, ctx.Log = ctx.Log, down
			google := testkit.Must(newGoogle(ctx, "my-project"))(t)
			d := &deployment{ctx: ctx, google: google, ran: effects.New()}
			d.ran.Add(bucket)
			for _, name := range []string{"first", "second"} {
				d.plan.Trainings = append(d.plan.Trainings, capacity.Training{Job: name})
				contract := config.Contract{Version: 1, Record: config.Folder{Claim: "c", Below: ".persia"}}
				pods := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{config.JobLabel: name, "app.kubernetes.io/name": config.KindNNWorker.Name}},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}
				d.ran.Add(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: contract.Annotation()}, Spec: appsv1.StatefulSetSpec{Template: pods}})
			}
			begin := time.Now()
			require.NoError(t, d.measure())
			assert.Equal(t, patience, time.Since(begin))
			assert.Len(t, d.plan.Trainings, 2)
			require.Len(t, down.warned, 2)
			assert.Contains(t, down.warned[0], "the plan lacks what the job first has measured: Cloud Storage has not answered for 10s")
			return nil
		}))
	})
}

// TestIdle warns of GPUs beside those that a job uses, and not of nodes that no job uses.
func TestIdle(t *testing.T) {
	for gpus, want := range map[int][]string{8: nil, 6: {"persia:nodePools: 4 of 16 GPUs of the pool training idle"}} {
		limits := testkit.Edits{"cpu": 8, "memory": "60Gi", "nvidia.com/gpu": gpus}
		cfg := testkit.Must(testkit.Load(t, testkit.Edits{"persia:jobs[0].nnWorker.resources.limits": limits}))(t)
		d := deployment{cfg: cfg, plan: cfg.Plan()}
		assert.Equal(t, want, d.idle())
	}
}
