package images

import (
	"compress/gzip"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is a container image for Linux on x86-64.
type Image struct {
	// Names are the references of the image, with tags.
	Names       []string
	Layers      []Layer
	Environment []string
	Entrypoint  []string
	// User is "" for root, or UID:GID.
	User string
}

// Write writes the image as a Docker archive, which containerd imports. If it fails, it
// leaves no file, or the one that was there.
func (i Image) Write(path string) error {
	image, err := i.build()
	if err != nil {
		return err
	}
	images := map[name.Tag]v1.Image{}
	for _, reference := range i.Names {
		tag, err := name.NewTag(reference, name.StrictValidation)
		if err != nil {
			return err
		}
		// The archive lists the tags of one value in random order, and values in a fixed
		// one. CreatedAt returns a value for each tag, of the same image.
		if images[tag], err = mutate.CreatedAt(image, v1.Time{Time: epoch}); err != nil {
			return err
		}
	}
	building := path + ".building"
	defer func() { _ = os.Remove(building) }()
	if err := tarball.MultiWriteToFile(building, images); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.Rename(building, path)
}

func (i Image) build() (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: "amd64",
		OS:           "linux",
		Config:       v1.Config{Env: i.Environment, Entrypoint: i.Entrypoint, User: i.User, WorkingDir: "/"},
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, files := range i.Layers {
		// A layer of 1.7 GB is read once, on this machine, so compression would not pay.
		layer, err := tarball.LayerFromOpener(files.open, tarball.WithCompressionLevel(gzip.NoCompression))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	return image, nil
}
