package google

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestCommandsShareAFolder: the commands of several stacks create and delete resources at the
// same time, and the last deletion removes the folders.
func TestCommandsShareAFolder(t *testing.T) {
	const commands, rounds = 4, 50
	parent := t.TempDir()
	dir := filepath.Join(parent, "storage")
	var group errgroup.Group
	for command := range commands {
		cloud, name := New(dir, Settings{}), fmt.Sprintf("bucket-%d", command)
		group.Go(func() error {
			for range rounds {
				if err := cloud.Create("storage.bucket", name, Body{"location": "EU"}); err != nil {
					return fmt.Errorf("create %s: %w", name, err)
				}
				if _, err := cloud.List("storage.bucket"); err != nil {
					return fmt.Errorf("list: %w", err)
				}
				if err := cloud.Delete("storage.bucket", name); err != nil {
					return fmt.Errorf("delete %s: %w", name, err)
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Empty(t, left, "neither the folder nor the lock stays")
}

// TestOneOfTwoCommandsCreates: the look whether a resource exists, and its creation, are
// one step.
func TestOneOfTwoCommandsCreates(t *testing.T) {
	for round := range 5 {
		dir, created := filepath.Join(t.TempDir(), "storage"), make(chan error, 4)
		for range cap(created) {
			cloud := New(dir, Settings{})
			go func() { created <- cloud.Create("storage.bucket", "checkpoints", Body{"location": "EU"}) }()
		}
		made := 0
		for range cap(created) {
			if err := <-created; err == nil {
				made++
			} else {
				assert.ErrorContains(t, err, "already exists", "round %d", round)
			}
		}
		assert.Equal(t, 1, made, "round %d", round)
	}
}
