package before_test

import (
	"cmp"
	"errors"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/infra/before"
	"persia/internal/testkit"
)

// engine fails as often as errs has errors, and then answers from a state.
type engine struct {
	errs  []string
	calls int
	// outputs are the stack's. Where kept is "", the state has no ID.
	outputs, resources map[string]any
	kept               string
	preview            bool
}

func (e *engine) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	id, input := "", args.Inputs["input"].StringValue()
	if e.kept != "" || !e.preview {
		id = "d2c7"
	}
	return id, resource.NewPropertyMapFromMap(map[string]any{"input": input, "output": cmp.Or(e.kept, input)}), nil
}

func (e *engine) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	e.calls++
	if e.calls <= len(e.errs) {
		return nil, errors.New(e.errs[e.calls-1])
	}
	if args.Token == "pulumi:pulumi:readStackOutputs" {
		return resource.NewPropertyMapFromMap(map[string]any{"outputs": e.outputs}), nil
	}
	if e.resources == nil {
		return nil, errors.New("the engine crashes: there is no state")
	}
	return resource.NewPropertyMapFromMap(map[string]any{"outputs": e.resources}), nil
}

// TestIdentity: a stack has the ID with which it was first brought up, whatever its name, backend and cluster are now.
func TestIdentity(t *testing.T) {
	const first, now = "acme/persia/first@p/us-central1/a", "organization/persia/dev@p/us-central1/b"
	policy := func(id string) map[string]any {
		return map[string]any{"urn:pulumi:dev::persia::kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy::persia-pods": map[string]any{
			"outputs": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"persia.com/stack": id}}}}}
	}
	outputs, cluster := map[string]any{"clusterName": "a"}, map[string]any{"urn:pulumi:dev::persia::gcp:container/cluster:Cluster::a": map[string]any{}}
	for name, c := range map[string]struct {
		engine
		id        string
		resources int
		skips     string
	}{
		"the preview of a new stack":                {engine{preview: true}, now, 0, ""},
		"the update of a new stack":                 {engine{resources: map[string]any{}}, now, 0, ""},
		"an update that does not write the state":   {engine{}, now, 0, "true"},
		"a preview after it":                        {engine{preview: true, kept: first, resources: cluster}, first, 1, "true"},
		"after a first update that failed":          {engine{preview: true, kept: first, resources: cluster}, first, 1, ""},
		"after an update":                           {engine{preview: true, kept: first, outputs: outputs, resources: policy(first)}, first, 1, ""},
		"without its policy":                        {engine{preview: true, kept: first, outputs: outputs, resources: cluster}, first, 1, ""},
		"of an earlier release":                     {engine{preview: true, outputs: outputs, resources: policy("organization/persia/dev")}, "organization/persia/dev", 1, ""},
		"of an earlier release, and moved":          {engine{preview: true, outputs: outputs, resources: policy("acme/persia/first")}, "acme/persia/first", 1, ""},
		"of an earlier release, without its policy": {engine{preview: true, outputs: outputs, resources: cluster}, "organization/persia/dev", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PULUMI_SKIP_CHECKPOINTS", c.skips)
			ctx, err := pulumi.NewContext(t.Context(), pulumi.RunInfo{Project: "persia", Stack: "dev", DryRun: c.preview, Mocks: &c.engine})
			require.NoError(t, err)
			require.NoError(t, pulumi.RunWithContext(ctx, func(ctx *pulumi.Context) error {
				state, err := before.Read(ctx, "p/us-central1/b")
				assert.Equal(t, c.id, state.ID.String())
				assert.Len(t, state.Resources, c.resources)
				return err
			}))
		})
	}
}

// TestReadDuringAWrite checks that a read that meets a write of the state succeeds, and that other errors end it.
func TestReadDuringAWrite(t *testing.T) {
	const torn = "readStackOutputs returned an error: failed to load checkpoint: EOF"
	for name, c := range map[string]struct {
		errs  []string
		calls int
		err   string
	}{
		"no write":      {nil, 2, ""},
		"two writes":    {[]string{torn, torn}, 4, ""},
		"another error": {[]string{"no such stack"}, 1, "no such stack"},
		"without end":   {[]string{torn, torn, torn, torn, torn, torn, torn, torn, torn, torn, torn}, 10, torn},
	} {
		t.Run(name, func(t *testing.T) {
			mock := &engine{errs: c.errs, resources: map[string]any{}}
			err := pulumi.RunErr(func(ctx *pulumi.Context) error {
				_, err := before.Read(ctx, "p/us-central1/b")
				return err
			}, pulumi.WithMocks("persia", "dev", mock))
			assert.Equal(t, c.calls, mock.calls)
			testkit.Fails(t, err, c.err)
		})
	}
}
