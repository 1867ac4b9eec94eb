package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
)

const (
	// pauseImage is that of the first container of every pod.
	pauseImage   = "registry.k8s.io/pause:3.10"
	pauseArchive = "pause.tar"
)

// writePauseImage writes an archive, as `docker save` does, of the image of which the
// program is all.
func writePauseImage(path, program string) error {
	executable, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := tarball(map[string][]byte{"pause": executable})
	if err != nil {
		return err
	}
	config, err := json.Marshal(object{
		"architecture": "amd64",
		"os":           "linux",
		"config":       object{"Entrypoint": []string{"/pause"}, "User": "65535:65535"},
		"rootfs":       object{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]object{{
		"Config": "config.json", "RepoTags": []string{pauseImage}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	archive, err := tarball(map[string][]byte{"config.json": config, "layer.tar": layer, "manifest.json": manifest})
	if err != nil {
		return err
	}
	return os.WriteFile(path, archive, 0o644)
}

// tarball holds files that all may read and run.
func tarball(files map[string][]byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for name, content := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
