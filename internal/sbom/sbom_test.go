package sbom

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWrite compares the bill of materials of the command with what Go says of it.
func TestWrite(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sbom")
	output, err := exec.Command("go", "build", "-o", program, "./cmd").CombinedOutput()
	require.NoError(t, err, string(output))
	release := Release{Name: "persia", Version: "1.2.3", Time: time.Unix(0, 0), Programs: []string{program, program}}
	var text, again bytes.Buffer
	require.NoError(t, Write(&text, release))
	require.NoError(t, Write(&again, release))
	assert.Equal(t, text.String(), again.String())

	var bom cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(&text, cyclonedx.BOMFileFormatJSON).Decode(&bom))
	assert.Equal(t, "1970-01-01T00:00:00Z", bom.Metadata.Timestamp)
	assert.Equal(t, []string{"persia", "1.2.3"}, []string{bom.Metadata.Component.Name, bom.Metadata.Component.Version})

	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	want := []string{"std " + info.GoVersion}
	for _, dependency := range info.Deps {
		want = append(want, dependency.Path+" "+dependency.Version)
	}
	require.Greater(t, len(want), 1)
	var got, refs []string
	for _, component := range *bom.Components {
		got = append(got, component.Name+" "+component.Version)
		refs = append(refs, component.BOMRef)
		if component.Name != "std" && assert.NotNil(t, component.Hashes, component.Name) {
			assert.Regexp(t, "^[0-9a-f]{64}$", (*component.Hashes)[0].Value)
		}
	}
	assert.ElementsMatch(t, want, got)
	assert.Equal(t, []cyclonedx.Dependency{{Ref: "persia@1.2.3", Dependencies: &refs}}, *bom.Dependencies)
}

func TestModule(t *testing.T) {
	component := module(&debug.Module{
		Path: "example.com/a", Version: "v1.0.0",
		Replace: &debug.Module{Path: "example.com/fork", Version: "v1.1.0+incompatible", Sum: "h1:YQ=="},
	})
	assert.Equal(t, "pkg:golang/example.com/fork@v1.1.0%2Bincompatible", component.PackageURL)
	assert.Equal(t, &[]cyclonedx.Hash{{Algorithm: "SHA-256", Value: "61"}}, component.Hashes)
}

// TestNoProgram: a file that Go has not compiled is named.
func TestNoProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "persia")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh"), 0o600))
	assert.ErrorContains(t, Write(&bytes.Buffer{}, Release{Programs: []string{path}}), path)
}
