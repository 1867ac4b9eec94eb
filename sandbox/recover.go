package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/internal/recovery"
	"persia/sandbox/kubeprovider"
)

// recover clears the rest of a killed command: its update, and the operations with an unknown end.
// The caller holds the sandbox's lock, so the command that began the update is dead.
//
// It does the steps of docs/guides/stacks.md for an operator: it waits for objects whose
// deletion has begun, and then does what `persia recover` does.
func (e *engine) recover(ctx context.Context) error {
	if err := e.cloud.Resume(ctx); err != nil {
		return err
	}
	state := e.sandbox.State()
	underWay := len(state.Locks()) > 0
	// A recovery may have been killed after it had ended the update.
	_, pending, err := state.Resources()
	if err != nil {
		return err
	}
	deletesFailed, err := state.deletesFailed()
	if err != nil || !underWay && pending == 0 && !deletesFailed {
		return err
	}
	fmt.Fprintf(e.sandbox.options.Out, "an earlier command was interrupted: reading what exists before going on\n")
	if err := e.endUpdate(ctx); err != nil {
		return err
	}
	deployment, err := e.export(ctx)
	if err != nil {
		return err
	}
	if err := e.awaitDeletes(ctx, deployment); err != nil {
		return err
	}
	return recovery.Run(ctx, e.pulumi, e.sandbox.options.Out)
}

// pulumi runs a command of the CLI as an operator would.
func (e *engine) pulumi(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	workspace := e.stack.Workspace()
	env := []string{"PULUMI_HOME=" + workspace.PulumiHome()}
	for name, value := range workspace.GetEnvVars() {
		env = append(env, name+"="+value)
	}
	_, said, _, err := e.cli.Run(ctx, workspace.WorkDir(), stdin, []io.Writer{stdout}, nil, env,
		append(args, "--stack", e.sandbox.options.Stack)...)
	switch {
	case err != nil && said == "":
		return fmt.Errorf("%w; its output is above", err)
	case err != nil:
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// endUpdate ends the update of a killed command, if there is one.
func (e *engine) endUpdate(ctx context.Context) error {
	state := e.sandbox.State()
	if len(state.Locks()) == 0 {
		return nil
	}
	if err := errors.Join(state.endCLI(ctx, e.sandbox.options.Tools.Path("pulumi")), e.stack.Cancel(ctx)); err != nil {
		return fmt.Errorf("end the update of a killed command: %w", err)
	}
	return nil
}

// awaitDeletes waits for the objects that Kubernetes still deletes. A refresh would find them, and
// the next up would treat them as objects that stay.
func (e *engine) awaitDeletes(ctx context.Context, deployment *apitype.DeploymentV3) error {
	var objects []*unstructured.Unstructured
	for _, r := range deployment.Resources {
		if r.ID != "" && r.URN.Type().Package() == "kubernetes" {
			objects = append(objects, &unstructured.Unstructured{Object: r.Inputs})
		}
	}
	if len(objects) == 0 {
		return nil
	}
	config, err := e.sandbox.cluster.RESTConfig()
	if err != nil {
		return err
	}
	return kubeprovider.AwaitDeletions(ctx, config, objects, e.sandbox.options.Out)
}

// export returns the state.
func (e *engine) export(ctx context.Context) (*apitype.DeploymentV3, error) {
	deployment := &apitype.DeploymentV3{}
	exported, err := e.stack.Export(ctx)
	if err == nil {
		err = json.Unmarshal(exported.Deployment, deployment)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of stack %s: %w", e.sandbox.options.Stack, err)
	}
	return deployment, nil
}
