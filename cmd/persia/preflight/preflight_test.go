package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/gcp"
	"persia/internal/testkit"
)

// stackOf returns the smallest stack with a cluster.
func stackOf(cluster string) string {
	return `config:
  persia:project: my-project
  persia:cluster: ` + cluster + `
  persia:nodePools:
    - {name: gpu, machineType: g2-standard-32, nodes: 1, gpu: {type: nvidia-l4, count: 1}}
  persia:machineTypes: {}
  persia:nvidiaDriver: {installer: managed}
  persia:storage: []
  persia:nats: {size: 1, resources: {limits: {cpu: "1", memory: 2Gi}}}
  persia:jobs: []
`
}

const zone = "{name: c, region: us-central1, zones: [us-central1-a]"

var (
	created  = stackOf(zone + ", authorizedNetworks: [{name: office, cidr: 8.8.8.0/24}]}")
	existing = strings.Replace(stackOf(`{name: c, existing: {context: there, systemPool: gpu}}`), "  persia:project: my-project\n", "", 1)
)

// training is a job with upstream's images.
const training = `persia:jobs:
    - name: clicks
      nodePool: gpu
      persiaEnv: {PERSIA_GLOBAL_CONFIG: /a, PERSIA_EMBEDDING_CONFIG: /b, PERSIA_NN_WORKER_ENTRY: /c, PERSIA_DATALOADER_ENTRY: /d}
      nnWorker: {resources: {limits: {cpu: 1, memory: 1Gi}}}
      dataloader: {resources: {limits: {cpu: 1, memory: 1Gi}}}
      embeddingWorker: {resources: {limits: {cpu: 1, memory: 1Gi}}}
      embeddingParameterServer: {resources: {limits: {cpu: 1, memory: 1Gi}}}`

// places is a stack with GPUs that are attached to machines, and with buckets and a cache that it does not create.
var places = strings.NewReplacer(
	"gpu: {type: nvidia-l4, count: 1}}\n", "gpu: {type: nvidia-l4, count: 1}}\n    - {name: old, machineType: n1-standard-8, nodes: 1, gpu: {type: nvidia-tesla-t4, count: 1}}\n",
	"persia:storage: []", "persia:storage: [{name: kept, size: 1Ti, gcsFuse: {bucket: kept}}, {name: absent, size: 1Ti, gcsFuse: {bucket: absent}}, {name: made, size: 1Ti, gcsFuse: {bucket: made, create: {}}}]\n"+
		"  persia:images: {caches: [{registry: docker.io, repository: us-central1-docker.pkg.dev/my-project/hub}]}",
	"persia:jobs: []", strings.ReplaceAll(training, "resources:", "image: example.com/persia:1, resources:"),
).Replace(created)

// folder writes the files of a project with the stack dev, goes there, and puts the plugin on the PATH.
func folder(t *testing.T, stack string) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", gcp.AuthPlugin), []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.dev.yaml"), []byte(stack), 0o600))
	return dir
}

// answers are what gcloud prints by the beginning of its arguments, or says after "ERROR: ".
type answers map[string]string

func (a answers) ask(_ context.Context, args ...string) ([]byte, error) {
	command, longest := strings.Join(args, " "), ""
	for beginning := range a {
		if strings.HasPrefix(command, beginning) && len(beginning) > len(longest) {
			longest = beginning
		}
	}
	if text, failed := strings.CutPrefix(a[longest], "ERROR: "); failed {
		return nil, errors.New(text)
	}
	return []byte(a[longest]), nil
}

// offline is a gcloud that asks nothing.
func offline(context.Context, ...string) ([]byte, error) { return nil, errors.New("offline") }

// allThere are the answers where nothing is missing.
func allThere(t *testing.T) answers {
	t.Helper()
	return answers{
		"auth application-default":           "ya29.token\n",
		"projects describe my-project":       active,
		"services list --enabled":            enabled(without()),
		"compute regions describe":           withQuotas(t, regionQuotas),
		"compute project-info describe":      withQuotas(t, projectQuotas),
		"compute machine-types describe":     "{}",
		"compute accelerator-types describe": "{}",
		"storage buckets describe":           `{"location": "US-CENTRAL1"}`,
		"artifacts repositories describe":    `{"format": "DOCKER", "mode": "REMOTE_REPOSITORY"}`,
	}
}

func enabled(apis []string) string {
	var entries []string
	for _, name := range apis {
		entries = append(entries, fmt.Sprintf(`{"config": {"name": %q}, "state": "ENABLED"}`, name))
	}
	return "[" + strings.Join(entries, ",") + "]"
}

// without returns all APIs but some.
func without(excluded ...string) []string {
	var left []string
	for name := range services(&config.Stack{}) {
		if !slices.Contains(excluded, name) {
			left = append(left, name)
		}
	}
	return left
}

// problems returns the checks that are not ok, a line each.
func problems(checks []Check) string {
	var lines strings.Builder
	for _, c := range checks {
		if c.Status != OK {
			fmt.Fprintf(&lines, "%s %s: %s; %s\n", c.Status, c.Name, c.Detail, c.Remedy)
		}
	}
	return lines.String()
}

// TestOtherCredentials checks the warning of credentials that only Google's provider reads.
func TestOtherCredentials(t *testing.T) {
	for _, name := range otherCredentials {
		t.Setenv(name, "")
	}
	t.Setenv("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "deployer@my-project.iam.gserviceaccount.com")
	folder(t, created)
	checks := testkit.Must(Run(t.Context(), "dev", allThere(t).ask))(t)
	assert.Contains(t, problems(checks), "warning credentials: GOOGLE_IMPERSONATE_SERVICE_ACCOUNT is set, which gke-gcloud-auth-plugin does not read")
}

func TestRun(t *testing.T) {
	const (
		far     = " EUROPE-WEST4 is far from the cluster in us-central1, so checkpoints are slow and their traffic is billed; use a bucket in us-central1\n"
		noCache = "missing image cache us-central1-docker.pkg.dev/my-project/hub: it "
		create  = "gcloud artifacts repositories create %s --repository-format=docker --mode=remote-repository --remote-docker-repo=https://docker.io --location=us-central1 --project=my-project\n"
		request = "request %d of NVIDIA_L4_GPUS in us-central1 at https://console.cloud.google.com/iam-admin/quotas?project=my-project, which can take days\n"
		gpus    = " quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit "
	)
	gpuQuota := func(limit, usage float64) answers {
		return answers{"compute regions describe": regionWith(t, amount{limit, usage})}
	}
	for name, c := range map[string]struct {
		stack   string
		answers answers
		want    string
	}{
		"all well in all places":     {places, nil, ""},
		"an existing cluster":        {existing, answers{"projects describe": "ERROR: nothing is asked"}, ""},
		"nobody reaches the cluster": {stackOf(zone + "}"), nil, "warning control plane: persia:cluster.authorizedNetworks: is empty, so that only machines in the network"},
		"a private control plane":    {stackOf(zone + ", privateEndpoint: true}"), nil, "warning control plane: persia:cluster.privateEndpoint: Pulumi must run inside the network"},
		"no credentials": {created, answers{"auth application-default": "ERROR: (gcloud.auth.application-default.print-access-token) Your default credentials were not found."},
			"missing credentials: (gcloud.auth.application-default.print-access-token) Your default credentials were not found.; gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS to the path of a credentials file\n"},
		"no gcloud":                  {created, answers{"auth application-default": `ERROR: exec: "gcloud": executable file not found in $PATH`}, "missing credentials: exec: \"gcloud\": executable file not found in $PATH; install it as docs/start/google-cloud.md#1-programs says\n"},
		"a project of others":        {created, answers{"projects describe": "ERROR: does not have permission", "services list": "ERROR: not asked"}, "missing project: does not have permission; correct persia:project"},
		"an answer of another kind":  {created, answers{"services list": "- config:"}, "unchecked APIs: gcloud printed unexpected output"},
		"an API too few":             {created, answers{"services list": enabled(without("dns.googleapis.com"))}, "missing APIs: not enabled: dns.googleapis.com; gcloud services enable dns.googleapis.com --project=my-project\n"},
		"a quota that is just right": {created, gpuQuota(3, 2), ""},
		"a quota of 0":               {created, gpuQuota(0, 0), "missing" + gpus + "0, 0 of it used; " + fmt.Sprintf(request, 1)},
		"a quota in use":             {created, gpuQuota(2, 2), "warning" + gpus + "2, 2 of it used, maybe by this stack; if others use it: " + fmt.Sprintf(request, 3)},
		"a quota that is not listed": {strings.ReplaceAll(created, "machineType: g2-standard-32, nodes: 1, gpu: {type: nvidia-l4, count: 1}", "machineType: c4-standard-8, nodes: 1"), nil,
			"unchecked quota CPUS_PER_VM_FAMILY (vm_family C4): gcloud does not list this quota; needed: 16, us-central1; see https://console.cloud.google.com/iam-admin/quotas?project=my-project; \n"},
		"spot": {strings.ReplaceAll(created, "nodes: 1, gpu", "nodes: 1, spot: true, gpu"), nil,
			"warning quota PREEMPTIBLE_CPUS: 32 needed, us-central1: limit 0, 0 of it used; with a limit of 0, spot machines use the ordinary quota"},
		"no machine of a type": {places, answers{"compute machine-types describe n1-standard-8": "ERROR: (gcloud.compute.machine-types.describe) Could not fetch resource: The resource x was not found"},
			"missing machine n1-standard-8: us-central1-a has none; write other zones or another machine type; this lists the zones that have it: gcloud compute machine-types list --filter=name=n1-standard-8 --project=my-project\n"},
		"no GPU of a type": {places, answers{"compute accelerator-types describe": "ERROR: The resource x was not found"},
			"missing machine nvidia-tesla-t4: us-central1-a has none; write other zones or another machine type; this lists the zones that have it: gcloud compute accelerator-types list --filter=name=nvidia-tesla-t4 --project=my-project\n"},
		"a network that fails": {places, answers{"compute accelerator-types describe": "ERROR: Max retries exceeded, and the resource was not found"},
			"unchecked machine nvidia-tesla-t4: Max retries exceeded, and the resource was not found; needed: in us-central1-a; \n"},
		"a bucket far away": {places, answers{"storage buckets describe gs://kept": `{"location": "EUROPE-WEST4"}`}, "warning bucket kept:" + far},
		"a multi-region":    {places, answers{"storage buckets describe": `{"location": "US"}`}, ""},
		"no bucket": {places, answers{"storage buckets describe gs://absent": "ERROR: (gcloud.storage.buckets.describe) gs://absent not found: 404."},
			"missing bucket absent: it does not exist, so no pod that mounts it starts; correct the name, write create: {} next to it, or run gcloud storage buckets create gs://absent --location=us-central1 --project=my-project\n"},
		"no right to see a bucket": {places, answers{"storage buckets describe gs://kept": "ERROR: no permission"}, "unchecked bucket kept: no permission; \n"},
		"no cache": {places, answers{"artifacts repositories describe": "ERROR: NOT_FOUND: Requested entity"},
			noCache + "does not exist, so no node can pull an image of docker.io; " + fmt.Sprintf(create, "hub")},
	} {
		t.Run(name, func(t *testing.T) {
			gcloud := allThere(t)
			maps.Copy(gcloud, c.answers)
			for beginning := range c.answers { // a shorter beginning replaces the longer one
				maps.DeleteFunc(gcloud, func(other, _ string) bool { return other != beginning && strings.HasPrefix(other, beginning) })
			}
			folder(t, c.stack)
			checks := testkit.Must(Run(t.Context(), "dev", gcloud.ask))(t)
			found := problems(slices.DeleteFunc(checks, func(c Check) bool { return strings.Contains(c.Detail, "the project did not answer") }))
			assert.True(t, found == c.want || c.want != "" && strings.HasPrefix(found, c.want), "%s\nwant %s", found, c.want)
			assert.Equal(t, strings.HasPrefix(c.want, "missing "), Failed(checks))
		})
	}
	t.Run("offline, without the plugin", func(t *testing.T) {
		require.NoError(t, os.RemoveAll(filepath.Join(folder(t, places), "bin")))
		checks := testkit.Must(Run(t.Context(), "dev", offline))(t)
		for _, want := range []string{"missing gke-gcloud-auth-plugin: it is not on the PATH", "unchecked project: offline", "; needed: binaryauthorization.googleapis.com, cloudresourcemanager", "unchecked quota CPUS: the project did not answer; needed: 52, us-central1",
			"unchecked machine g2-standard-32: the project did not answer; needed: in us-central1-a", "unchecked bucket absent: ", "unchecked image cache us-central1-docker.pkg.dev/my-project/hub: "} {
			assert.Contains(t, problems(checks), want)
		}
		assert.NotContains(t, problems(checks), "bucket made", "the stack creates it")
	})
}

func TestServices(t *testing.T) {
	const key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
	volume := func(source string) string {
		return strings.Replace(created, "persia:storage: []", "persia:storage: [{name: v, size: 1Ti, "+source+"}]", 1)
	}
	standard := func(more ...string) []string {
		return append(without("artifactregistry.googleapis.com", "file.googleapis.com", "storage.googleapis.com", "cloudkms.googleapis.com"), more...)
	}
	for name, c := range map[string]struct {
		stack string
		want  []string
	}{
		"defaults": {created, standard()},
		"no image streaming": {stackOf(zone + ", imageStreaming: false}"),
			slices.DeleteFunc(standard(), func(name string) bool { return name == "containerfilesystem.googleapis.com" })},
		"Filestore":         {volume("filestore: {instance: i, create: {}}"), standard("file.googleapis.com")},
		"a bucket":          {volume("gcsFuse: {bucket: my-bucket}"), standard("storage.googleapis.com")},
		"a key":             {stackOf(zone + ", encryption: {secrets: " + key + "}}"), standard("cloudkms.googleapis.com")},
		"a key of a volume": {volume("persistentDisk: {disk: d, create: {kmsKey: " + key + "}}"), standard("cloudkms.googleapis.com")},
		"a cache": {strings.Replace(created, "persia:storage: []", "persia:storage: []\n  persia:images: {caches: [{registry: docker.io}]}", 1),
			standard("artifactregistry.googleapis.com")},
	} {
		t.Run(name, func(t *testing.T) {
			folder(t, c.stack)
			stack := testkit.Must(Load("dev"))(t)
			var needed []string
			for service, needs := range services(stack) {
				if needs {
					needed = append(needed, service)
				}
			}
			assert.ElementsMatch(t, c.want, needed)
		})
	}
	t.Chdir("../../..")
	_, enabled, _ := strings.Cut(testkit.Read(t, "docs/start/google-cloud.md"), "\n## 3. APIs\n")
	enabled, _, _ = strings.Cut(enabled, "\n## ")
	dev := testkit.Must(Load("dev"))(t)
	for service, needs := range services(dev) {
		assert.Equal(t, needs, strings.Contains(enabled, service), "the page enables for dev %s", service)
	}
}

func TestStackFilesThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ stack, text, want string }{
		"no YAML":          {"dev", "config: {", "Pulumi.dev.yaml: "},
		"a mistake":        {"dev", strings.Replace(created, "nodes: 1", "nodes: -1", 1), "Pulumi.dev.yaml: stack configuration: 1 problem\npersia:nodePools[0].nodes: "},
		"a field as a key": {"dev", created + "  persia:cluster.region: europe-west4\n", "persia:cluster.region: unknown key"},
		"an environment":   {"dev", "environment: [shared]\nconfig: {persia:project: my-project}", "environment may set more"},
		"no file":          {"prod", created, "there is no stack \"prod\""},
	} {
		t.Run(name, func(t *testing.T) {
			folder(t, c.text)
			_, err := Run(t.Context(), c.stack, offline)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestPrint(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, Print(&text, []Check{
		{"APIs", Missing, "not enabled: dns.googleapis.com", "gcloud services enable dns.googleapis.com"},
		{"images", OK, "all roles name a tag", ""},
		{"project", Unchecked, "offline", ""},
		{"control plane", Warning, "is closed", ""},
	}))
	assert.Equal(t, `ok         images         all roles name a tag
unchecked  project        offline
warning    control plane  is closed
missing    APIs           not enabled: dns.googleapis.com

What to do:

  missing: APIs
      gcloud services enable dns.googleapis.com

missing: 1, warning: 1, unchecked: 1, ok: 1
`, text.String())
}
