package preflight

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// googleCloud answers gcloud on loopback as Google Cloud's APIs do. The forms of the
// errors are those of recorded answers (GoogleCloudPlatform/k8s-config-connector): a
// code, a message and a status.
type googleCloud struct {
	project  string
	enabled  []string
	region   string
	failures map[string]int
}

func (g *googleCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for part, code := range g.failures {
		if strings.Contains(r.URL.Path, part) {
			refuse(w, code, "The caller does not have permission", "PERMISSION_DENIED")
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/projects/my-project/services"):
		services := []any{}
		for _, name := range g.enabled {
			services = append(services, map[string]any{
				"name": "projects/210987654321/services/" + name, "config": map[string]any{"name": name}, "state": "ENABLED",
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"services": services})
	case strings.HasSuffix(path, "/projects/my-project/regions/us-central1"):
		_, _ = w.Write([]byte(g.region))
	case strings.HasPrefix(path, "/compute/") && strings.HasSuffix(path, "/projects/my-project"):
		http.ServeFile(w, r, filepath.Join("testdata", "project-info.json"))
	case strings.HasSuffix(path, "/projects/my-project"):
		_, _ = w.Write([]byte(g.project))
	default:
		refuse(w, http.StatusNotFound, "Not found: "+path, "NOT_FOUND")
	}
}

func refuse(w http.ResponseWriter, code int, message, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": code, "message": message, "status": status}})
}

// realGcloud puts the real gcloud on the machine's PATH, logged in and pointed at a
// server. Without gcloud the test is skipped, but not in continuous integration.
func (m *machine) realGcloud(gcloud, url string) {
	m.t.Helper()
	m.write("bin/gcloud", fmt.Sprintf("#!/bin/sh\nPATH=/usr/bin:/bin exec '%s' \"$@\"\n", gcloud))
	require.NoError(m.t, os.Chmod(filepath.Join(m.bin, "gcloud"), 0o700))
	m.write("token", "ya29.a-token")
	m.t.Setenv("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", filepath.Join(filepath.Dir(m.project), "token"))
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER", url+"/")
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE", url+"/")
	m.t.Setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", url+"/compute/v1/")
	m.t.Setenv("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "true")
}

func findGcloud(t *testing.T) string {
	t.Helper()
	gcloud, err := exec.LookPath("gcloud")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("gcloud is not on the PATH, and continuous integration must not skip this")
	}
	if err != nil {
		t.Skip("gcloud is not on the PATH: preflight was not tried with it")
	}
	return gcloud
}

// TestWithRealGcloud holds the commands of preflight, and what it makes of answers and
// errors, against the real gcloud.
func TestWithRealGcloud(t *testing.T) {
	gcloud := findGcloud(t)
	region, err := os.ReadFile("testdata/region.json")
	require.NoError(t, err)
	project, err := os.ReadFile("testdata/project.json")
	require.NoError(t, err)
	const gpus = `{"limit": 1.0, "metric": "NVIDIA_L4_GPUS", "usage": 0.0}`
	for name, c := range map[string]struct {
		change func(*machine, *googleCloud)
		failed bool
		want   []string
	}{
		"all well": {func(*machine, *googleCloud) {}, false, nil},
		"an API and a GPU too few": {func(_ *machine, g *googleCloud) {
			g.enabled = without("dns.googleapis.com")
			g.region = strings.Replace(g.region, gpus, strings.Replace(gpus, "1.0", "0.0", 1), 1)
		}, true, []string{
			"missing APIs: not enabled: dns.googleapis.com; gcloud services enable dns.googleapis.com --project=my-project",
			"missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 0",
		}},
		"no right to see APIs and quotas": {func(_ *machine, g *googleCloud) {
			g.failures = map[string]int{"/services": http.StatusForbidden, "/regions/": http.StatusForbidden}
		}, false, []string{"unchecked APIs: (gcloud.services.list) ", "unchecked quota NVIDIA_L4_GPUS: (gcloud.compute.regions.describe) "}},
		"no right in the project": {func(_ *machine, g *googleCloud) {
			g.failures = map[string]int{"/projects/my-project": http.StatusForbidden}
		}, true, []string{"missing project: my-project: (gcloud.projects.describe) ", "correct persia:project"}},
		"a deleted project": {func(_ *machine, g *googleCloud) {
			g.project = strings.Replace(g.project, "ACTIVE", "DELETE_REQUESTED", 1)
		}, true, []string{"missing project: my-project is DELETE_REQUESTED"}},
		"no login": {func(m *machine, _ *googleCloud) {
			unsetenv(m.t, "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE")
		}, true, []string{"missing project: (gcloud.projects.describe) You do not currently have an active account selected.", "gcloud auth login"}},
	} {
		t.Run(name, func(t *testing.T) {
			google := &googleCloud{project: string(project), region: string(region), enabled: without()}
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
