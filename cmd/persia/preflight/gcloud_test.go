package preflight

import (
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

// TestWithRealGcloud compares preflight's commands, and its reading of answers and errors, with the
// real gcloud.
func TestWithRealGcloud(t *testing.T) {
	testkit.Processes(t)
	path, err := exec.LookPath("gcloud")
	if err != nil {
		testkit.Skip(t, "gcloud is not on the PATH: preflight was not tried with it")
	}
	for name, c := range map[string]struct {
		change func(*googleCloud)
		login  bool
		want   []string
	}{
		"what a stack needs is elsewhere": {func(g *googleCloud) {
			g.enabled = without("dns.googleapis.com")
			g.gpus = amount{}
			g.lacking = []string{"us-central1-a/g2-standard-32", "us-central1-a/nvidia-tesla-t4"}
			g.buckets = map[string]string{"kept": "EUROPE-WEST4"}
		}, true, []string{
			"missing credentials: (gcloud.auth.application-default.print-access-token) File /nowhere was not found.",
			"missing APIs: not enabled: dns.googleapis.com; ",
			"missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 0",
			"missing machine g2-standard-32: us-central1-a has none; ",
			"missing machine nvidia-tesla-t4: us-central1-a has none; ",
			"warning bucket kept: EUROPE-WEST4 is far from",
			"missing bucket inline: it does not exist",
			"missing image cache us-central1-docker.pkg.dev/my-project/hub: it does not exist",
		}},
		"no right to see anything": {func(g *googleCloud) {
			g.forbidden = []string{"/zones/", "/b/", "/repositories/", "/services", "/regions/"}
		}, true, []string{
			"unchecked machine e2-standard-4: (gcloud.compute.machine-types.describe) ", "The caller does not have permission; needed: in us-central1-a", "unchecked bucket kept: (gcloud.storage.buckets.describe) ",
			"unchecked image cache us-central1-docker.pkg.dev/my-project/hub: (gcloud.artifacts.repositories.describe) ",
			"unchecked APIs: (gcloud.services.list) ", "unchecked quota NVIDIA_L4_GPUS: (gcloud.compute.regions.describe) ",
		}},
		"no right in the project": {func(g *googleCloud) { g.forbidden = []string{"/projects/my-project"} }, true,
			[]string{"missing project: (gcloud.projects.describe) ", "correct persia:project"}},
		"no login": {func(*googleCloud) {}, false,
			[]string{"missing project: (gcloud.projects.describe) You do not currently have an active account selected.; gcloud auth login"}},
	} {
		t.Run(name, func(t *testing.T) {
			google := &googleCloud{t: t, project: recorded(t, "projects.get", nil), gpus: regionQuotas["NVIDIA_L4_GPUS"], enabled: without()}
			c.change(google)
			server := httptest.NewServer(google)
			t.Cleanup(server.Close)
			dir := folder(t, places)
			require.NoError(t, os.Symlink(path, filepath.Join(dir, "bin", "gcloud")))
			t.Setenv("PATH", filepath.Join(dir, "bin")+":/usr/bin:/bin")
			t.Setenv("HOME", dir)
			token := filepath.Join(dir, "token")
			require.NoError(t, os.WriteFile(token, []byte("ya29.a-token"), 0o600))
			if !c.login {
				token = ""
			}
			for name, value := range map[string]string{
				"CLOUDSDK_AUTH_ACCESS_TOKEN_FILE":                      token,
				"CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER": server.URL + "/",
				"CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE":         server.URL + "/",
				"CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE":              server.URL + "/compute/v1/",
				"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE":              server.URL + "/storage/v1/",
				"CLOUDSDK_API_ENDPOINT_OVERRIDES_ARTIFACTREGISTRY":     server.URL + "/",
				"CLOUDSDK_CORE_DISABLE_USAGE_REPORTING":                "true",
				"GOOGLE_APPLICATION_CREDENTIALS":                       "/nowhere",
				"CLOUDSDK_CONFIG":                                      filepath.Join(dir, "gcloud"),
			} {
				t.Setenv(name, value)
			}
			checks, err := Run(t.Context(), dir, "dev", CLI)
			require.NoError(t, err)
			for _, want := range c.want {
				assert.Contains(t, problems(checks), want)
			}
		})
	}
}
