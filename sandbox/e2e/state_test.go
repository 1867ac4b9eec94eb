package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/state"
)

// TestState holds that the state has every step that the CLI has been told is
// stored, whatever happens to the service afterwards.
func TestState(t *testing.T) {
	nightly(t)
	t.Parallel()
	began := map[string]any{"version": 1, "kind": apitype.JournalEntryKindBegin, "sequenceID": 1, "operationID": 1,
		"operation": map[string]any{"type": "creating", "resource": made("a")}}
	succeeded := map[string]any{"version": 1, "kind": apitype.JournalEntryKindSuccess, "sequenceID": 2, "operationID": 1, "state": made("a")}

	cases := map[string]struct {
		entries []any
		// torn is the part of a further entry that a killed service had written.
		torn               string
		resources, pending int
	}{
		"before the first step":          {nil, "", 0, 0},
		"during a step":                  {[]any{began}, "", 0, 1},
		"after a step":                   {[]any{began, succeeded}, "", 1, 0},
		"while it writes a further step": {[]any{began, succeeded}, `{"version":1,"ki`, 1, 0},
	}
	for name, test := range cases {
		t.Run("killed "+name, func(t *testing.T) {
			dir := t.TempDir()
			s := startState(t, dir)
			s.create("dev")
			s.do(http.StatusOK, "POST", "update/first", apitype.StartUpdateRequest{JournalVersion: 1}, nil)
			if len(test.entries) > 0 {
				s.do(http.StatusOK, "PATCH", "update/first/journalentries", map[string]any{"entries": test.entries}, nil)
			}
			require.NoError(t, s.Close())
			folder := state.InFolder(dir, "persia", "dev")
			appendTo(t, filepath.Join(string(folder), "state.jsonl"), test.torn)

			underWay, err := folder.UnderWay()
			require.NoError(t, err)
			assert.True(t, underWay)
			s = startState(t, dir)
			s.assertHolds(test.resources, test.pending)
			s.do(http.StatusConflict, "POST", "update/second", apitype.StartUpdateRequest{JournalVersion: 1}, nil)
			s.do(http.StatusOK, "POST", "update/first/cancel", nil, nil)
			s.do(http.StatusConflict, "PATCH", "update/first/journalentries", map[string]any{"entries": test.entries}, nil)
			s.assertHolds(test.resources, test.pending)

			s.do(http.StatusOK, "POST", "update/second", apitype.StartUpdateRequest{JournalVersion: 1}, nil)
			other := map[string]any{"version": 1, "kind": apitype.JournalEntryKindSuccess, "sequenceID": 1, "operationID": 1, "state": made("b")}
			s.do(http.StatusOK, "PATCH", "update/second/journalentries", map[string]any{"entries": []any{other}}, nil)
			summary := apitype.SummaryEvent{ResourceChanges: map[apitype.OpType]int{apitype.OpCreate: 1}}
			s.do(http.StatusOK, "POST", "update/second/events/batch",
				apitype.EngineEventBatch{Events: []apitype.EngineEvent{{SummaryEvent: &summary}}}, nil)
			s.do(http.StatusOK, "POST", "update/second/complete", apitype.CompleteUpdateRequest{Status: apitype.UpdateStatusSucceeded}, nil)
			s.assertHolds(test.resources+1, test.pending)
			var history apitype.GetHistoryResponse
			s.do(http.StatusOK, "GET", "updates", nil, &history)
			require.Len(t, history.Updates, 1)
			assert.Equal(t, summary.ResourceChanges, history.Updates[0].ResourceChanges)
			assert.Equal(t, apitype.SucceededResult, history.Updates[0].Result)
			underWay, err = folder.UnderWay()
			require.NoError(t, err)
			assert.False(t, underWay)
			pending, err := folder.Pending()
			require.NoError(t, err)
			assert.Equal(t, test.pending > 0, pending)
		})
	}

	t.Run("another token is refused", func(t *testing.T) {
		s := startState(t, t.TempDir())
		s.Token = "another"
		s.do(http.StatusUnauthorized, "GET", "", nil, nil)
	})
	t.Run("a CLI without a journal is refused", func(t *testing.T) {
		s := startState(t, t.TempDir())
		s.create("dev")
		s.do(http.StatusBadRequest, "POST", "update/first", apitype.StartUpdateRequest{}, nil)
	})
}

// made returns a resource of a state.
func made(name string) map[string]any {
	return map[string]any{
		"urn": "urn:pulumi:dev::persia::test:index:Thing::" + name, "type": "test:index:Thing", "custom": true, "id": name,
	}
}

type stateService struct {
	*state.Service
	t *testing.T
}

func startState(t *testing.T, dir string) stateService {
	t.Helper()
	service, err := state.Start(t.Context(), tools.PulumiState, dir, t.Output())
	require.NoError(t, err)
	t.Cleanup(func() { _ = service.Close() })
	return stateService{service, t}
}

// create makes a stack.
func (s stateService) create(name string) {
	s.t.Helper()
	s.call(http.StatusOK, "POST", "/api/stacks/sandbox/persia", apitype.CreateStackRequest{StackName: name}, nil)
}

// do sends a request of the stack dev and expects a status.
func (s stateService) do(status int, method, path string, body, into any) {
	s.t.Helper()
	s.call(status, method, "/api/stacks/sandbox/persia/dev/"+path, body, into)
}

func (s stateService) call(status int, method, path string, body, into any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(s.t, err)
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader(text))
	require.NoError(s.t, err)
	request.Header.Set("Authorization", "token "+s.Token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	require.Equal(s.t, status, response.StatusCode, "%s %s", method, path)
	if into != nil {
		require.NoError(s.t, json.NewDecoder(response.Body).Decode(into))
	}
}

// assertHolds counts the resources and the pending operations of the state.
func (s stateService) assertHolds(resources, pending int) {
	s.t.Helper()
	var exported apitype.ExportStackResponse
	s.do(http.StatusOK, "GET", "export", nil, &exported)
	var deployment apitype.DeploymentV3
	require.NoError(s.t, json.Unmarshal(exported.Deployment, &deployment))
	assert.Len(s.t, deployment.Resources, resources, fmt.Sprintf("resources in %s", exported.Deployment))
	assert.Len(s.t, deployment.PendingOperations, pending, fmt.Sprintf("pending operations in %s", exported.Deployment))
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}
