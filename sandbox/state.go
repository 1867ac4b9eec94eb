package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"persia/sandbox/files"
	"persia/sandbox/process"
)

// State is the state of a stack in a folder of Pulumi's file backend.
type State struct{ dir, stack string }

// url is for PULUMI_BACKEND_URL. Pulumi need not keep the types of the files.
func (s State) url() string {
	return (&url.URL{Scheme: "file", Path: s.dir, RawQuery: "metadata=skip"}).String()
}

// File is the checkpoint, which Pulumi writes at each step.
func (s State) File() string {
	return filepath.Join(s.dir, ".pulumi", "stacks", "persia", s.stack+".json")
}

// Resources counts the resources, and the operations whose end is unknown.
func (s State) Resources() (resources, pending int, err error) {
	var saved struct {
		Checkpoint struct {
			Latest struct {
				Resources         []json.RawMessage `json:"resources"`
				PendingOperations []json.RawMessage `json:"pending_operations"`
			} `json:"latest"`
		} `json:"checkpoint"`
	}
	err = files.ReadJSON(s.File(), &saved)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	return len(saved.Checkpoint.Latest.Resources), len(saved.Checkpoint.Latest.PendingOperations), err
}

// Locks are the files of the updates that have begun and not ended. If no command is at work, it was killed.
func (s State) Locks() []string {
	locks, _ := filepath.Glob(filepath.Join(s.dir, ".pulumi", "locks", "organization", "persia", s.stack, "*.json"))
	return locks
}

// endCLI ends the CLIs that hold a lock: one that is killed without its children goes on, and would write the state.
func (s State) endCLI(ctx context.Context, executable string) error {
	for _, lock := range s.Locks() {
		var holder struct{ PID int }
		if files.ReadJSON(lock, &holder) != nil {
			continue // the CLI has ended meanwhile, or the machine before it wrote the file
		}
		found, err := process.Find(holder.PID)
		if err != nil || !strings.HasPrefix(found.Command, executable) {
			continue
		}
		if err := process.Stop(ctx, time.Minute, found); err != nil {
			return err
		}
	}
	return nil
}

// unlock ends the CLIs that hold a lock, and removes the locks.
func (s State) unlock(ctx context.Context, executable string) error {
	errs := []error{s.endCLI(ctx, executable)}
	for _, lock := range s.Locks() {
		errs = append(errs, os.Remove(lock))
	}
	return errors.Join(errs...)
}

// update is an entry of Pulumi's history: an update, a refresh or a destroy. ResourceChanges counts resources by
// operation.
type update struct {
	Kind            apitype.UpdateKind
	Result          apitype.UpdateResult
	ResourceChanges map[string]int
}

// last returns the last update, or nothing.
func (s State) last() (last update, err error) {
	// The names end with the time.
	history, err := filepath.Glob(filepath.Join(s.dir, ".pulumi", "history", "persia", s.stack, "*.history.json"))
	if err == nil && len(history) > 0 {
		err = files.ReadJSON(history[len(history)-1], &last)
	}
	return last, err
}

// deletesFailed reports whether the last update failed while it deleted resources. They may be gone by
// now, and be in the state all the same.
func (s State) deletesFailed() (bool, error) {
	last, err := s.last()
	deletes := last.Kind == apitype.DestroyUpdate || last.ResourceChanges["delete"]+last.ResourceChanges["delete-replaced"] > 0
	return deletes && last.Result == apitype.FailedResult, err
}
