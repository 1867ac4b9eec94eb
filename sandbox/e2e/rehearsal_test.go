package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
	"persia/sandbox"
	"persia/sandbox/rehearsal"
	"persia/stack/effects"
)

// rehearsed has jobs as StatefulSets and as a JobSet, PEDL, NATS servers that an update replaces one by one, and room for edits.
const rehearsed = `
nodePools:
  - {name: rest, nodes: 3}
  - {name: gpu, machineType: g2-standard-8, nodes: 2, gpu: {type: nvidia-l4, count: 1}}
  - {name: servers, machineType: n2-standard-8, nodes: 2}
  - {name: agents, machineType: g2-standard-8, nodes: 1, gpu: {type: nvidia-l4, count: 1}}
nats: {size: 3}
pedl:
  resources: &small {limits: {cpu: 500m, memory: 1Gi}}
  agent: {nodePools: [agents]}
  registry: {password: {secure: registry}}
  postgresql: {postgresqlPassword: {secure: database}, resources: *small}
queue: {teams: [{name: ads}]}
storage: [{name: bucket, size: 1Ti, gcsFuse: {bucket: madeup-checkpoints, create: {}, sidecar: {ephemeralStorage: 1Gi}}}]
jobs:
  - name: train
    mounts: [{volume: bucket, mountPath: /bucket}]
    nnWorker: {nodePool: gpu, replicas: 2, resources: {limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1"}}}
    embeddingParameterServer: {nodePool: servers, replicas: 4, resources: {limits: {cpu: "3", memory: 8Gi}}}
  - {name: set, engine: jobset, queue: ads}
`

// TestRehearsal: what the preview of an edit announces happens, and a rehearsal finds an effect that is left out.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, edit string
		// says are parts of the summary.
		says []string
	}{
		{"an image", `jobs: [{name: train, dataloader: {image: "persia/training:2"}}]`, []string{"train-dataloader: 1 of 1 ended"}},
		{"NATS's size", `nats: {size: 1}`, nil},
		{"a pool renamed", `
nodePools: [{name: gpu, rename: gpus}]
jobs: [{name: train, nnWorker: {nodePool: gpus}}]`, []string{"train-nn-worker: 2 of 2 ended", "pool gpu: 2 of 2 ended"}},
		{"a second job", `jobs: [{name: second}]`, nil},
		{"an image by digest", `jobs: [{name: train, dataloader: {image: "persia/training@sha256:` + strings.Repeat("a", 64) + `"}}]`, nil},
		{"a mount option", `storage: [{name: bucket, mountOptions: [only-dir=second]}]`, []string{"kept by destroy", "madeup-checkpoints"}},
		{"a JobSet's role", `jobs: [{name: set, dataloader: {resources: {limits: {cpu: 200m}}}}]`, []string{"set-nn-worker: 1 of 1 ended"}},
		{"more memory for NATS", `nats: {resources: {limits: {cpu: 200m}}}`, nil},
		{"another machine", `nodePools: [{name: servers, machineType: n2-standard-16}]`, nil},
		{"fewer servers", servers("servers", 2, "6", "16Gi"), nil},
		{"a job suspended", `jobs: [{name: train, suspend: true}]`, nil},
		{"another name of NATS", `nats: {name: broker}`, nil},
		{"PEDL's database", `pedl: {postgresql: {postgresqlExtendedConfig: {maxConnections: 50}}}`, []string{"pedl-postgresql: 1 of 1 ended"}},
		{"PEDL's agents", `pedl: {agent: {env: [{name: HTTPS_PROXY, value: "http://proxy"}]}}`, []string{"pedl-agent: 1 of 1 ended"}},
	}[:forms(3, 14)] {
		t.Run(c.name, func(t *testing.T) {
			s, base := newStack(t, rehearsed), t.TempDir()
			require.NoError(t, os.CopyFS(base, os.DirFS(s.project)))
			s.edit(c.edit)
			lied := false
			rehearse := func(lie func(*effects.Effect)) rehearsal.Summary {
				summary, err := rehearsal.Run(t.Context(), rehearsal.Options{
					Options: sandbox.Options{
						Project: s.project, Stack: s.name, Dir: s.dir + "/rehearsal", Tools: tools, Executable: executable, Out: io.Discard,
						Announce: func(all []effects.Effect) {
							for i := range all {
								lie(&all[i])
							}
						},
					},
					Base: "the base", BaseStacks: base, Destroy: c.name == "a mount option", Progress: t.Output(), Build: func(*sandbox.Sandbox) error { return nil },
				})
				require.NoError(t, err)
				t.Logf("%s", summary)
				assert.LessOrEqual(t, strings.Count(summary.String(), "\n"), 25)
				return summary
			}
			summary := rehearse(func(e *effects.Effect) { lied = lied || len(e.Ends) > 0 })
			assert.True(t, summary.OK(), "%s", summary.String())
			for _, part := range c.says {
				assert.Contains(t, summary.String(), part)
			}
			if lied && !strings.Contains(c.edit, "set,") { // what is in a queue may end at any time
				summary = rehearse(func(e *effects.Effect) { e.Ends, e.Risks = nil, nil })
				assert.Contains(t, summary.String(), "which the preview did not announce")
			}
		})
	}
}

// TestRehearseWorkflow runs the steps of the workflow for a fork's pull request, which has no secret: it edits dev alone.
func TestRehearseWorkflow(t *testing.T) {
	nightly(t)
	t.Parallel()
	text := testkit.Must(os.ReadFile(filepath.Join(repository, ".github", "workflows", "rehearse.yaml")))(t)
	var workflow struct {
		Jobs map[string]struct {
			Permissions map[string]string
			Steps       []struct {
				Run, If string
				Env     map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	assert.NotRegexp(t, `secrets\.|vars\.|id-token`, string(text))
	clone, runner := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	run := func(environment []string, script string) string {
		command := exec.Command("bash", "-e", "-c", script)
		command.Env = append(environment, "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"))
		command.Dir = clone
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return strings.TrimSpace(string(output))
	}
	output, err := exec.Command("git", "clone", "--quiet", repository, clone).CombinedOutput()
	require.NoError(t, err, "%s", output)
	base := run(nil, "git rev-parse HEAD")
	bin := testkit.Must(filepath.Abs(binDir()))(t)
	// What the workflow's cache brings.
	run(nil, "mkdir -p .sandbox/bin && cp -al "+bin+"/. .sandbox/bin/ && rm -f .sandbox/bin/.sandbox.made .sandbox/bin/sandbox")
	run(nil, "sed -i 's/cpu: 500m/cpu: 400m/' Pulumi.dev.yaml && git -c user.name=a -c user.email=a@example.com commit --quiet --all --message edit")
	values := strings.NewReplacer("${{ github.event.pull_request.base.sha }}", base, "${{ matrix.stack }}", "dev")
	for _, name := range []string{"stacks", "rehearse"} {
		assert.NotContains(t, workflow.Jobs[name].Permissions, "id-token")
		for _, step := range workflow.Jobs[name].Steps {
			if step.Run == "" || strings.Contains(step.If, "head.repo.full_name == github.repository") {
				continue
			}
			environment := []string{"RUNNER_TEMP=" + runner, "GITHUB_OUTPUT=" + runner + "/output", "GITHUB_STEP_SUMMARY=" + runner + "/summary"}
			for key, value := range step.Env {
				if key != "TOOLCHAIN" {
					environment = append(environment, key+"="+values.Replace(value))
				}
			}
			t.Log(run(environment, values.Replace(step.Run)))
		}
	}
	for file, want := range map[string]string{"output": `stacks=["dev"]`, "summary": "as announced: the stack dev, from " + base[:4]} {
		assert.Contains(t, testkit.Read(t, filepath.Join(runner, file)), want)
	}
}
