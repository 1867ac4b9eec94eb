package toolchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/renameio/v2"
)

// recordFile, in the module root, lists the programs of the archive and their checksums. It is part of
// the repository, so that users need not trust the archive.
const recordFile = "archive.json"

// record is the content of recordFile.
type record struct {
	// Go compiled the programs for Platform.
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
	Programs []program `json:"programs"`
}

// program is a program of the archive.
type program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Stamp is the digest of the sources of the program.
	Stamp  string `json:"stamp"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func readRecord(moduleRoot string) (record, error) {
	var r record
	text, err := os.ReadFile(filepath.Join(moduleRoot, recordFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", recordFile, err)
	}
	return r, nil
}

func (r record) text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

func (r record) names() []string {
	var names []string
	for _, p := range r.Programs {
		names = append(names, p.Name)
	}
	return names
}

func (r record) write(moduleRoot string) error {
	text, err := r.text()
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(moduleRoot, recordFile), text, 0o644)
}

// fits returns an error unless the programs are compiled for this machine, by the Go that is used here.
func (r record) fits(b *builder) error {
	if r.Go != b.goVersion || r.Platform != platform {
		return fmt.Errorf("it is compiled by %s for %s, and this is %s on %s", r.Go, r.Platform, b.goVersion, platform)
	}
	return nil
}

// find returns the program that is exactly the tool, or says why there is none.
func (r record) find(t tool, b *builder) (program, error) {
	i := slices.IndexFunc(r.Programs, func(p program) bool { return p.Name == t.name })
	if i < 0 {
		return program{}, errors.New("it is not there")
	}
	stamp, err := b.stamp(t)
	if err != nil {
		return program{}, err
	}
	if r.Programs[i].Stamp != stamp {
		return program{}, fmt.Errorf("%s there is compiled from other sources", r.Programs[i].Version)
	}
	return r.Programs[i], nil
}

// platform is the platform that programs are compiled for.
const platform = runtime.GOOS + "/" + runtime.GOARCH
