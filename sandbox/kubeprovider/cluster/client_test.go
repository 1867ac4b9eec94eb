package cluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// TestBindNeedsTheList: a kind whose group the API server fails to list is not taken
// for one that is not there.
func TestBindNeedsTheList(t *testing.T) {
	const version = "nats.io/v1alpha2"
	cases := map[string]struct {
		status  int
		kinds   []metav1.APIResource
		noMatch bool
	}{
		"the group fails":        {http.StatusInternalServerError, nil, false},
		"the group is not there": {http.StatusNotFound, nil, true},
		"the kind is not there":  {http.StatusOK, []metav1.APIResource{{Name: "others", Kind: "Other"}}, true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, status int, body any) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_ = json.NewEncoder(w).Encode(body)
			}
			mux := http.NewServeMux()
			mux.HandleFunc("/api", func(w http.ResponseWriter, _ *http.Request) {
				answer(w, http.StatusOK, metav1.APIVersions{Versions: []string{}})
			})
			mux.HandleFunc("/apis", func(w http.ResponseWriter, _ *http.Request) {
				offered := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: "v1alpha2"}
				answer(w, http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{
					{Name: "nats.io", Versions: []metav1.GroupVersionForDiscovery{offered}, PreferredVersion: offered},
				}})
			})
			mux.HandleFunc("/apis/"+version, func(w http.ResponseWriter, _ *http.Request) {
				if test.status != http.StatusOK {
					answer(w, test.status, metav1.Status{Status: metav1.StatusFailure, Code: int32(test.status)})
					return
				}
				answer(w, http.StatusOK, metav1.APIResourceList{GroupVersion: version, APIResources: test.kinds})
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			c, err := New(&rest.Config{Host: server.URL}, "")
			require.NoError(t, err)
			_, err = c.Bind(&unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": "NatsCluster"}})
			require.Error(t, err)
			assert.Equal(t, test.noMatch, meta.IsNoMatchError(err), "%v", err)
		})
	}
}
