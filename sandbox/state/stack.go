package state

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Stack is a stack's folder in a service's: DIR/OWNER/PROJECT/STACK.
type Stack string

// InFolder returns the folder of a stack in the folder of a service.
func InFolder(dir, project, stack string) Stack {
	return Stack(filepath.Join(dir, "sandbox", project, stack))
}

// Exists reports whether the stack has been created.
func (s Stack) Exists() bool {
	_, err := os.Stat(filepath.Join(string(s), "stack.json"))
	return err == nil
}

// UnderWay reports whether an update has begun and not ended. If no command is at
// work, it was killed.
func (s Stack) UnderWay() (bool, error) {
	_, err := os.Stat(filepath.Join(string(s), "update.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// HasResources reports whether the state holds a resource, made or in the making.
// An update that was killed may have made what its journal says.
func (s Stack) HasResources() (bool, error) {
	base, journal, err := s.read()
	return len(base.Resources)+len(base.PendingOperations) > 0 || journal, err
}

// Pending reports whether the state has an operation with an unknown end. It does not read the
// journal of an update that has not ended.
func (s Stack) Pending() (bool, error) {
	base, _, err := s.read()
	return len(base.PendingOperations) > 0, err
}

// DeletesFailed reports whether the last update failed while it deleted resources. What it
// was deleting may be gone by now, and be in the state all the same.
func (s Stack) DeletesFailed() (bool, error) {
	text, err := os.ReadFile(filepath.Join(string(s), "last.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var last apitype.UpdateInfo
	if err := json.Unmarshal(text, &last); err != nil {
		return false, fmt.Errorf("last update of the stack: %w", err)
	}
	deletes := last.Kind == apitype.DestroyUpdate || last.ResourceChanges[apitype.OpDelete]+last.ResourceChanges[apitype.OpDeleteReplaced] > 0
	return deletes && last.Result == apitype.FailedResult, nil
}

// operations are the operations in a stack's state.
type operations struct {
	Resources         []json.RawMessage `json:"resources"`
	PendingOperations []json.RawMessage `json:"pending_operations"`
}

// read returns the state as it was before the update under way, and whether that
// has a journal.
func (s Stack) read() (base operations, journal bool, err error) {
	file, err := os.Open(filepath.Join(string(s), "state.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return operations{}, false, nil
	}
	if err != nil {
		return operations{}, false, err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	first, err := lines.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return operations{}, false, err
	}
	var state struct {
		Deployment operations `json:"deployment"`
	}
	if err := json.Unmarshal(first, &state); err != nil {
		return operations{}, false, fmt.Errorf("%s: %w", file.Name(), err)
	}
	_, err = lines.Peek(1)
	return state.Deployment, err == nil, nil
}
