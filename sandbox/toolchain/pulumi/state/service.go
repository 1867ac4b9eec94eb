package main

import (
	"compress/gzip"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// journalVersion is the version of the journal's entries.
const journalVersion = 1

// user is who the CLI is logged in as, and the owner of all stacks.
const user = "sandbox"

// service answers the CLI. It serves the paths and bodies of pkg/backend/httpstate/client in
// Pulumi's source.
type service struct {
	dir, token string
	// mu admits one request at a time: there is one CLI.
	mu sync.Mutex
}

func newService(dir, token string) *service { return &service{dir: dir, token: token} }

// answer is the body of a response, or an error that becomes one.
type answer func(r *http.Request, s store) (any, error)

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do answer) { mux.HandleFunc(pattern, s.serve(do)) }

	handle("GET /api/user", currentUser)
	handle("GET /api/user/organizations/default", defaultOrganization)
	handle("GET /api/user/stacks", s.listStacks)
	handle("GET /api/capabilities", nothing)

	handle("HEAD /api/stacks/{org}/{project}", project)
	handle("POST /api/stacks/{org}/{project}", s.createStack)
	const stack = "/api/stacks/{org}/{project}/{stack}"
	handle("GET "+stack, getStack)
	handle("DELETE "+stack, deleteStack)
	handle("PATCH "+stack+"/tags", setTags)
	handle("GET "+stack+"/export", exportStack)
	handle("POST "+stack+"/import", importStack)
	handle("GET "+stack+"/updates", history)
	handle("POST "+stack+"/decrypt/log-decryption", nothing)
	handle("POST "+stack+"/decrypt/log-batch-decryption", nothing)

	handle("POST "+stack+"/{kind}", createUpdate)
	const one = stack + "/{kind}/{update}"
	handle("GET "+one, updateStatus)
	handle("POST "+one, startUpdate)
	handle("PATCH "+one+"/journalentries", underWay(addEntries))
	handle("POST "+one+"/events/batch", underWay(addEvents))
	handle("POST "+one+"/renew_lease", renewLease)
	handle("POST "+one+"/complete", underWay(completeUpdate))
	handle("POST "+one+"/cancel", underWay(cancelUpdate))
	return s.authorized(mux)
}

// authorized keeps out who does not know the access token.
func (s *service) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(token(r)), []byte(s.token)) != 1 {
			fail(w, &apitype.ErrorResponse{Code: http.StatusUnauthorized, Message: "Unauthorized: the access token is another one"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// token returns the token of a request: `token T`, or `update-token T` during an update.
func token(r *http.Request) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token
}

// serve answers requests for the stack that their path names, if it names one.
func (s *service) serve(do answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		body, err := do(r, s.stack(r.PathValue("org"), r.PathValue("project"), r.PathValue("stack")))
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			fmt.Fprintf(os.Stderr, "state: %s %s: %v\n", r.Method, r.URL.Path, err)
		}
	}
}

func fail(w http.ResponseWriter, err error) {
	var response *apitype.ErrorResponse
	switch {
	case errors.As(err, &response):
	case errors.Is(err, fs.ErrNotExist):
		response = &apitype.ErrorResponse{Code: http.StatusNotFound, Message: "Not Found: " + err.Error()}
	default:
		response = &apitype.ErrorResponse{Code: http.StatusInternalServerError, Message: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(response.Code)
	_ = json.NewEncoder(w).Encode(response)
}

// stack is a stack in its folder. The CLI allows no name that is a path.
func (s *service) stack(org, project, stack string) store {
	return store{filepath.Join(s.dir, filepath.Base(org), filepath.Base(project), filepath.Base(stack))}
}

// body decodes a request.
func body(r *http.Request, into any) error {
	var reader io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		reader = unzipped
	}
	return json.NewDecoder(reader).Decode(into)
}

func nothing(*http.Request, store) (any, error) { return struct{}{}, nil }

func currentUser(*http.Request, store) (any, error) {
	return map[string]any{"id": user, "githubLogin": user, "name": user, "organizations": []any{}}, nil
}

func defaultOrganization(*http.Request, store) (any, error) {
	return apitype.GetDefaultOrganizationResponse{GitHubLogin: user}, nil
}

// project is there once a stack of it is.
func project(r *http.Request, s store) (any, error) {
	_, err := os.Stat(filepath.Dir(s.dir))
	return struct{}{}, err
}

func (s *service) listStacks(*http.Request, store) (any, error) {
	folders, err := filepath.Glob(filepath.Join(s.dir, "*", "*", "*", stackFile))
	if err != nil {
		return nil, err
	}
	list := apitype.ListStacksResponse{Stacks: []apitype.StackSummary{}}
	for _, folder := range folders {
		var stack apitype.Stack
		if err := (store{filepath.Dir(folder)}).read(stackFile, &stack); err != nil {
			return nil, err
		}
		list.Stacks = append(list.Stacks, apitype.StackSummary{
			OrgName: stack.OrgName, ProjectName: stack.ProjectName, StackName: string(stack.StackName),
		})
	}
	return list, nil
}

func (s *service) createStack(r *http.Request, _ store) (any, error) {
	var request apitype.CreateStackRequest
	if err := body(r, &request); err != nil {
		return nil, err
	}
	stack := apitype.Stack{
		ID:          rand.Text(),
		OrgName:     r.PathValue("org"),
		ProjectName: r.PathValue("project"),
		StackName:   tokens.QName(request.StackName),
		Tags:        request.Tags,
	}
	created := s.stack(stack.OrgName, stack.ProjectName, request.StackName)
	if _, err := os.Stat(created.path(stackFile)); err == nil {
		return nil, &apitype.ErrorResponse{Code: http.StatusConflict, Message: "Conflict: the stack " + request.StackName + " exists"}
	}
	if err := os.MkdirAll(created.dir, 0o700); err != nil {
		return nil, err
	}
	return apitype.CreateStackResponse{}, created.write(stackFile, stack)
}

func getStack(_ *http.Request, s store) (any, error) {
	var stack apitype.Stack
	if err := s.read(stackFile, &stack); err != nil {
		return nil, err
	}
	current, err := s.current()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	stack.ActiveUpdate = current.ID
	return stack, nil
}

func deleteStack(r *http.Request, s store) (any, error) {
	deployment, _, err := s.deployment()
	if err != nil {
		return nil, err
	}
	var state apitype.DeploymentV3
	if err := json.Unmarshal(deployment.Deployment, &state); err != nil {
		return nil, err
	}
	if len(state.Resources) > 0 && r.URL.Query().Get("force") != "true" {
		// The CLI knows this message.
		return nil, &apitype.ErrorResponse{Code: http.StatusBadRequest, Message: "Bad Request: Stack still contains resources."}
	}
	return struct{}{}, os.RemoveAll(s.dir)
}

func setTags(r *http.Request, s store) (any, error) {
	var stack apitype.Stack
	if err := s.read(stackFile, &stack); err != nil {
		return nil, err
	}
	stack.Tags = nil
	if err := body(r, &stack.Tags); err != nil {
		return nil, err
	}
	return struct{}{}, s.write(stackFile, stack)
}

func exportStack(_ *http.Request, s store) (any, error) {
	deployment, _, err := s.deployment()
	return apitype.ExportStackResponse(deployment), err
}

func importStack(r *http.Request, s store) (any, error) {
	if err := s.idle(); err != nil {
		return nil, err
	}
	var deployment apitype.UntypedDeployment
	if err := body(r, &deployment); err != nil {
		return nil, err
	}
	return apitype.ImportStackResponse{UpdateID: rand.Text()}, s.put(deployment)
}
