// Package sbom writes the software bill of materials of compiled programs: the modules
// that Go says they are compiled from, as CycloneDX.
package sbom

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// Release is what a bill of materials is of.
type Release struct {
	Name, Version string
	Time          time.Time
	// Programs are the paths of the compiled programs.
	Programs []string
}

// Write writes the bill of materials of a release. Of the same programs it is always the
// same.
func Write(to io.Writer, release Release) error {
	modules := map[string]cyclonedx.Component{}
	for _, path := range release.Programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if info.Main.Path == "" {
			return fmt.Errorf("%s does not name its modules: compile it with go build, in a module", filepath.Base(path))
		}
		standard := module(&debug.Module{Path: "std", Version: info.GoVersion})
		modules[standard.BOMRef] = standard
		for _, dependency := range info.Deps {
			component := module(dependency)
			modules[component.BOMRef] = component
		}
	}
	return encode(to, release, modules)
}

func encode(to io.Writer, release Release, modules map[string]cyclonedx.Component) error {
	root := cyclonedx.Component{
		BOMRef: release.Name + "@" + release.Version, Type: cyclonedx.ComponentTypeApplication,
		Name: release.Name, Version: release.Version,
	}
	refs := slices.Sorted(maps.Keys(modules))
	var components []cyclonedx.Component
	for _, ref := range refs {
		components = append(components, modules[ref])
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: release.Time.UTC().Format(time.RFC3339), Component: &root}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
	return cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// module is a component for a module, or for what go.mod replaces it with.
func module(m *debug.Module) cyclonedx.Component {
	m = cmp.Or(m.Replace, m)
	component := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: packageURL(m),
	}
	component.BOMRef = component.PackageURL
	// The checksum of go.sum is a SHA-256 of the module's files.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return component
}

// packageURL is the name of a module in databases of vulnerabilities.
func packageURL(m *debug.Module) string {
	return "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(strings.TrimPrefix(m.Version, "go"), "+", "%2B")
}
