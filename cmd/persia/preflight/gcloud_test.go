package preflight

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// googleCloud answers gcloud on loopback with what Google Cloud's APIs were recorded to
// answer.
type googleCloud struct {
	t       *testing.T
	project map[string]any
	enabled []string
	gpus    amount
	// forbidden are parts of the paths that the caller has no right to.
	forbidden []string
	// lacking are machine types and GPUs that a zone does not have, as ZONE/NAME.
	lacking []string
	// buckets are the locations of buckets, and repositories the modes of repositories.
	buckets, repositories map[string]string
}

func (g *googleCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for _, part := range g.forbidden {
		if strings.Contains(r.URL.Path, part) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(encoded(g.t, recorded(g.t, "forbidden", nil))))
			return
		}
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/projects/my-project/services"):
		services := []any{}
		for _, name := range g.enabled {
			service := recorded(g.t, "services.enabled", map[string]string{"service": name})
			service["config"] = map[string]any{"name": name}
			services = append(services, service)
		}
		_, _ = w.Write([]byte(encoded(g.t, map[string]any{"services": services})))
	case strings.Contains(path, "/zones/"):
		g.zone(w, path[strings.Index(path, "projects/"):])
	case strings.Contains(path, "/b/"):
		bucket := path[strings.LastIndex(path, "/")+1:]
		g.answer(w, g.buckets[bucket] != "", "buckets", map[string]string{"bucket": bucket, "location": g.buckets[bucket]})
	case strings.Contains(path, "/repositories/"):
		repository := path[strings.LastIndex(path, "/")+1:]
		g.answer(w, g.repositories[repository] != "", "repositories", map[string]string{"location": "us-central1", "repository": repository, "mode": g.repositories[repository]})
	case strings.HasSuffix(path, "/projects/my-project/regions/us-central1"):
		_, _ = w.Write([]byte(regionWith(g.t, g.gpus)))
	case strings.HasPrefix(path, "/compute/") && strings.HasSuffix(path, "/projects/my-project"):
		_, _ = w.Write([]byte(withQuotas(g.t, "projectInfo.get", projectQuotas)))
	case strings.HasSuffix(path, "/projects/my-project"):
		_, _ = w.Write([]byte(encoded(g.t, g.project)))
	default:
		g.t.Errorf("gcloud asks for %s, of which nothing is recorded", path)
		http.NotFound(w, r)
	}
}

// zone answers for a machine type or a GPU: projects/P/zones/Z/machineTypes/T.
func (g *googleCloud) zone(w http.ResponseWriter, resource string) {
	parts := strings.Split(resource, "/")
	zone, kind, name := parts[3], parts[4], parts[5]
	if slices.Contains(g.lacking, zone+"/"+name) {
		kind = "compute"
	}
	g.answer(w, kind != "compute", kind, map[string]string{"zone": zone, "name": name, "resource": resource})
}

// answer writes the recorded answer of a thing that is there, or of one that is not.
func (g *googleCloud) answer(w http.ResponseWriter, there bool, kind string, values map[string]string) {
	name := kind + ".get"
	if !there {
		w.WriteHeader(http.StatusNotFound)
		name = kind + ".notFound"
	}
	_, _ = w.Write([]byte(encoded(g.t, recorded(g.t, name, values))))
}

// realGcloud puts the real gcloud on the machine's PATH, logged in and pointed at a
// server.
func (m *machine) realGcloud(gcloud, url string) {
	m.t.Helper()
	m.write("bin/gcloud", fmt.Sprintf("#!/bin/sh\nPATH=/usr/bin:/bin exec '%s' \"$@\"\n", gcloud))
	require.NoError(m.t, os.Chmod(filepath.Join(m.bin, "gcloud"), 0o700))
	m.write("token", "ya29.a-token")
	m.t.Setenv("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", filepath.Join(filepath.Dir(m.project), "token"))
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER", url+"/")
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE", url+"/")
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", url+"/compute/v1/")
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", url+"/storage/v1/")
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_ARTIFACTREGISTRY", url+"/")
	m.t.Setenv("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "true")
}

func findGcloud(t *testing.T) string {
	t.Helper()
	testkit.Processes(t)
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		testkit.Skip(t, "gcloud is not on the PATH: preflight was not tried with it")
	}
	return gcloud
}

// TestWithRealGcloud compares preflight's commands, and its reading of answers and errors, with the
// real gcloud.
func TestWithRealGcloud(t *testing.T) {
	gcloud := findGcloud(t)
	for name, c := range map[string]struct {
		change func(*machine, *googleCloud)
		failed bool
		want   []string
	}{
		"all well": {func(*machine, *googleCloud) {}, false, nil},
		"an API and a GPU too few": {func(_ *machine, g *googleCloud) {
			g.enabled = without("dns.googleapis.com")
			g.gpus = amount{}
		}, true, []string{
			"missing APIs: not enabled: dns.googleapis.com; gcloud services enable dns.googleapis.com --project=my-project",
			"missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 0",
		}},
		"machines, buckets and caches that are elsewhere": {func(m *machine, g *googleCloud) {
			m.stack(withPlaces(m.t))
			g.lacking = []string{"us-central1-a/g2-standard-32", "us-central1-a/nvidia-tesla-t4"}
			g.buckets = map[string]string{"kept": "EUROPE-WEST4"}
		}, true, []string{
			"missing machine g2-standard-32: us-central1-a has none; write other zones or another machine type; this lists the zones that have it: gcloud compute machine-types list --filter=name=g2-standard-32 --project=my-project",
			"missing machine nvidia-tesla-t4: us-central1-a has none; ",
			"warning bucket kept: EUROPE-WEST4 is far from the cluster in us-central1, so checkpoints are slow and their traffic is billed; use a bucket in us-central1",
			"missing bucket inline: it does not exist, so no pod that mounts it starts; correct the name, write create: {} next to it, or run gcloud storage buckets create gs://inline --location=us-central1 --project=my-project",
			"missing image cache us-central1-docker.pkg.dev/my-project/hub: it does not exist, so no node can pull an image of docker.io; gcloud artifacts repositories create hub --repository-format=docker --mode=remote-repository --remote-docker-repo=https://docker.io --location=us-central1 --project=my-project",
		}},
		"no right to see machines, buckets and caches": {func(m *machine, g *googleCloud) {
			m.stack(withPlaces(m.t))
			g.forbidden = []string{"/zones/", "/b/", "/repositories/"}
		}, true, []string{"unchecked machine e2-standard-4: (gcloud.compute.machine-types.describe) ", "The caller does not have permission; needed in us-central1-a", "unchecked bucket kept: (gcloud.storage.buckets.describe) ", "unchecked image cache us-central1-docker.pkg.dev/my-project/hub: (gcloud.artifacts.repositories.describe) "}},
		"no right to see APIs and quotas": {func(_ *machine, g *googleCloud) {
			g.forbidden = []string{"/services", "/regions/"}
		}, false, []string{"unchecked APIs: (gcloud.services.list) ", "unchecked quota NVIDIA_L4_GPUS: (gcloud.compute.regions.describe) "}},
		"no right in the project": {func(_ *machine, g *googleCloud) {
			g.forbidden = []string{"/projects/my-project"}
		}, true, []string{"missing project: my-project: (gcloud.projects.describe) ", "correct persia:project"}},
		"a deleted project": {func(_ *machine, g *googleCloud) {
			g.project["lifecycleState"] = "DELETE_REQUESTED"
		}, true, []string{"missing project: my-project is DELETE_REQUESTED"}},
		"no login": {func(m *machine, _ *googleCloud) {
			unsetenv(m.t, "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE")
		}, true, []string{"missing project: (gcloud.projects.describe) You do not currently have an active account selected.", "gcloud auth login"}},
	} {
		t.Run(name, func(t *testing.T) {
			google := &googleCloud{t: t, project: recorded(t, "projects.get", nil), gpus: regionQuotas["NVIDIA_L4_GPUS"], enabled: without()}
			server := httptest.NewServer(google)
			t.Cleanup(server.Close)
			m := newMachine(t)
			m.realGcloud(gcloud, server.URL)
			c.change(m, google)
			options := m.options()
			options.Timeout *= 6
			checks := m.run(options)
			found := problems(checks)
			if c.want == nil {
				assert.Empty(t, found)
			}
			for _, want := range c.want {
				assert.Contains(t, found, want)
			}
			assert.Equal(t, c.failed, Failed(checks), found)
		})
	}
}
