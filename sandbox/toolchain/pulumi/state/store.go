package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// The files of a stack.
const (
	// stateFile holds JSON, a value a line. The first is the state as `pulumi stack
	// export` prints it. The others are what the update under way has changed since:
	// the entries of its journal.
	stateFile = "state.jsonl"
	// stackFile is the stack itself, without its state.
	stackFile = "stack.json"
	// updateFile is the update that is under way, and exists as long as it is.
	updateFile = "update.json"
	// lastFile tells of the last update that has ended.
	lastFile = "last.json"
)

// store is a stack in its folder.
type store struct{ dir string }

// update is an update that is under way.
type update struct {
	ID   string             `json:"id"`
	Info apitype.UpdateInfo `json:"info"`
}

func (s store) path(name string) string { return filepath.Join(s.dir, name) }

// deployment returns the state with what the update under way has changed, and
// the number of these changes.
func (s store) deployment() (deployment apitype.UntypedDeployment, changes int, err error) {
	file, err := os.Open(s.path(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return empty(), 0, nil
	}
	if err != nil {
		return deployment, 0, err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return deployment, 0, fmt.Errorf("%s: the state has no end: %w", file.Name(), err)
	}
	if err := json.Unmarshal(first, &deployment); err != nil {
		return deployment, 0, fmt.Errorf("%s: %w", file.Name(), err)
	}
	changed, changes, err := replay(deployment.Deployment, lines)
	if err != nil {
		return deployment, 0, fmt.Errorf("%s: %w", file.Name(), err)
	}
	if changes == 0 {
		return deployment, 0, nil
	}
	deployment.Version, deployment.Features = changed.Version, changed.Features
	deployment.Deployment, err = json.Marshal(changed.Deployment)
	return deployment, changes, err
}

// replay makes the entries of a journal, a line each, part of a state.
func replay(state json.RawMessage, journal *bufio.Reader) (changed apitype.TypedDeployment, changes int, err error) {
	var base apitype.DeploymentV3
	if err := json.Unmarshal(state, &base); err != nil {
		return changed, 0, err
	}
	replayer := backend.NewJournalReplayer(&base)
	for ; ; changes++ {
		line, err := journal.ReadBytes('\n')
		if err == io.EOF {
			// What has no end was being written when this server was killed. The CLI
			// has not been told that it is stored.
			break
		}
		if err != nil {
			return changed, 0, err
		}
		var entry apitype.JournalEntry
		if err := json.Unmarshal(line, &entry); err != nil {
			return changed, 0, fmt.Errorf("entry %d of the journal: %w", changes, err)
		}
		if err := replayer.Add(entry); err != nil {
			return changed, 0, fmt.Errorf("entry %d of the journal: %w", changes, err)
		}
	}
	if changes > 0 {
		changed, err = replayer.GenerateDeployment()
	}
	return changed, changes, err
}

// empty is the state of a stack that has never been updated.
func empty() apitype.UntypedDeployment {
	return apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage("{}")}
}

// put replaces the state and its journal in one step.
func (s store) put(deployment apitype.UntypedDeployment) error {
	return s.write(stateFile, deployment)
}

// settle makes the journal part of the state. What a killed server has left of
// an entry goes with it.
func (s store) settle() error {
	deployment, _, err := s.deployment()
	if err != nil {
		return err
	}
	return s.put(deployment)
}

// add stores entries of the journal. They are safe when it returns.
func (s store) add(entries []apitype.JournalEntry) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, entry := range entries {
		if err := encoder.Encode(entry); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(s.path(stateFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err := file.Write(lines.Bytes()); err != nil {
		// A full disk may have cut the entries off. The CLI sends them again, and they must not follow
		// a part of themselves.
		return errors.Join(err, file.Truncate(before.Size()))
	}
	return file.Sync()
}

// current returns the update that is under way, or [fs.ErrNotExist].
func (s store) current() (u update, err error) {
	err = s.read(updateFile, &u)
	return u, err
}

// begin starts an update, with the journal of an earlier one settled.
func (s store) begin(u update) error {
	if err := s.settle(); err != nil {
		return err
	}
	return s.write(updateFile, u)
}

// end ends the update under way. Interrupted at any point, it can be repeated.
func (s store) end(result apitype.UpdateResult) error {
	if err := s.settle(); err != nil {
		return err
	}
	ended, err := s.current()
	if err != nil {
		return err
	}
	ended.Info.Result, ended.Info.EndTime = result, time.Now().Unix()
	if err := s.write(lastFile, ended.Info); err != nil {
		return err
	}
	return os.Remove(s.path(updateFile))
}

func (s store) read(name string, into any) error {
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", s.path(name), err)
	}
	return nil
}

// write replaces a file in one step.
func (s store) write(name string, content any) (err error) {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(s.dir, "."+name+".")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), s.path(name))
}
