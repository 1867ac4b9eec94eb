package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"persia/sandbox/files"
	"persia/sandbox/node"
	"persia/sandbox/process"
)

// RealNode describes the real node of package node, on which pods really run.
type RealNode struct {
	// Pool is the node pool, or "" where all nodes are simulated.
	Pool string
	// Images is the folder of the archives, *.tar, with the images of its pods.
	Images string
	// Buckets is the address of a server of buckets, which the node then mounts with gcsfuse, or empty.
	Buckets string
}

// findRealNode returns the real node of the options, or else of the last up, so that later commands need no options.
func findRealNode(said RealNode, f folder) (node RealNode, err error) {
	if said.Pool != "" {
		said.Images, err = filepath.Abs(said.Images)
		return said, err
	}
	err = files.ReadJSON(f.realNode(), &node)
	if errors.Is(err, fs.ErrNotExist) {
		return RealNode{}, nil
	}
	return node, err
}

// start starts what runs the real node, unless it runs.
func (n RealNode) start(ctx context.Context, s *Sandbox) error {
	if n.Pool == "" {
		return nil
	}
	if err := node.Missing(); err != nil {
		return err
	}
	if err := files.WriteJSON(s.realNode(), n, 0o600); err != nil {
		return err
	}
	dir := s.path("node")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	options := node.Options{
		Dir:        dir,
		Disks:      filepath.Join(s.storage(), "node"),
		Images:     n.Images,
		Kubeconfig: s.Kubeconfig(),
		Tools:      s.options.Tools,
		Buckets:    n.Buckets,
	}
	program, err := nodeProgram(s.options.Executable, options)
	if err != nil {
		return err
	}
	return process.Background(dir).Start(ctx, program)
}

// nodeProgram returns the program that runs the real node. Other options or images make another program: a
// machine reads both only when it starts. The archives, of gigabytes, are told apart by their sizes and times.
func nodeProgram(executable string, options node.Options) (process.Program, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return process.Program{}, err
	}
	program := process.Program{Executable: executable, Args: []string{"node", "--options", string(text)}}
	archives, err := filepath.Glob(filepath.Join(options.Images, "*.tar"))
	if err != nil {
		return program, err
	}
	for _, archive := range archives {
		info, err := os.Stat(archive)
		if err != nil {
			return program, err
		}
		program.Inputs += fmt.Sprintln(archive, info.Size(), info.ModTime().UnixNano())
	}
	return program, nil
}

// stopNode ends the real node and removes what the kernel keeps of it.
func stopNode(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := process.Background(dir).Stop(ctx); err != nil {
		return err
	}
	return node.CleanUp(dir)
}

// RunNode runs the real node of options as JSON, until ctx ends.
func RunNode(ctx context.Context, text string) error {
	var options node.Options
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		return fmt.Errorf("options of the real node: %w", err)
	}
	return node.Run(ctx, options, nodeLogger())
}

// BootMachine is the first process of the real node's machine in dir. It returns only if the machine cannot start.
func BootMachine(_ context.Context, dir string) error { return node.Boot(dir, nodeLogger()) }

// nodeLogger does not go by slog's default, which the Pulumi SDK silences.
func nodeLogger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }
