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

// googleCloud answers gcloud on loopback as Google Cloud's APIs do.
type googleCloud struct {
	t       *testing.T
	enabled []string
	gpus    amount
	// forbidden are parts of the paths that the caller has no right to.
	forbidden []string
	// lacking are machine types and GPUs that a zone does not have, as ZONE/NAME.
	lacking []string
	// buckets are the locations of buckets. There are no repositories.
	buckets map[string]string
}

func (g *googleCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, answer := g.answer(r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

func (g *googleCloud) answer(path string) (status int, text string) {
	resource := path[max(strings.Index(path, "projects/"), 0):]
	name := path[strings.LastIndex(path, "/")+1:]
	switch {
	case slices.ContainsFunc(g.forbidden, func(part string) bool { return strings.Contains(path, part) }):
		return http.StatusForbidden, forbidden
	case strings.HasSuffix(path, "/projects/my-project/services"):
		return http.StatusOK, `{"services": ` + enabled(g.enabled) + `}`
	case strings.Contains(path, "/zones/"): // projects/P/zones/Z/machineTypes/T
		if zone := strings.Split(resource, "/")[3]; slices.Contains(g.lacking, zone+"/"+name) {
			return http.StatusNotFound, fmt.Sprintf(noMachine, resource)
		}
		return http.StatusOK, fmt.Sprintf(`{"name": %q}`, name)
	case strings.Contains(path, "/b/"):
		if g.buckets[name] == "" {
			return http.StatusNotFound, noBucket
		}
		return http.StatusOK, fmt.Sprintf(`{"kind": "storage#bucket", "name": %q, "location": %q}`, name, g.buckets[name])
	case strings.Contains(path, "/repositories/"):
		return http.StatusNotFound, noRepository
	case strings.HasSuffix(path, "/projects/my-project/regions/us-central1"):
		return http.StatusOK, regionWith(g.t, g.gpus)
	case strings.HasPrefix(path, "/compute/") && strings.HasSuffix(path, "/projects/my-project"):
		return http.StatusOK, withQuotas(g.t, projectQuotas)
	case strings.HasSuffix(path, "/projects/my-project"):
		return http.StatusOK, active
	}
	g.t.Errorf("gcloud asks for %s, which the test does not answer", path)
	return http.StatusNotFound, `{}`
}

// TestWithRealGcloud compares preflight's commands, and its reading of answers and errors, with the real gcloud.
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
			"missing bucket absent: it does not exist",
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
			google := &googleCloud{t: t, gpus: regionQuotas["NVIDIA_L4_GPUS"], enabled: without()}
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
			checks := testkit.Must(Run(t.Context(), "dev", CLI))(t)
			for _, want := range c.want {
				assert.Contains(t, problems(checks), want)
			}
		})
	}
}
