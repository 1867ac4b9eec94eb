package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// folders returns the folders of the container's mounts, by path.
func (r *runner) folders(dir string) map[string]string {
	folders := map[string]string{}
	for _, mount := range r.container.VolumeMounts {
		folders[mount.MountPath] = filepath.Join(dir, "volumes", mount.Name)
	}
	return folders
}

// mount writes the files of ConfigMaps and Secrets that have changed.
func (r *runner) mount(ctx context.Context, at host) error {
	for _, mount := range r.container.VolumeMounts {
		files, err := r.files(ctx, mount.Name, at)
		if err != nil {
			return fmt.Errorf("volume %s: %w", mount.Name, err)
		}
		folder := at.mounts[mount.MountPath]
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		for name, content := range files {
			path := filepath.Join(folder, name)
			if last, err := os.ReadFile(path); err == nil && bytes.Equal(last, content) {
				continue
			}
			if err := renameio.WriteFile(path, content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepMounted keeps the files up to date. A kubelet takes up to a minute for a Secret.
func (r *runner) keepMounted(ctx context.Context, at host, output io.Writer) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := r.mount(ctx, at); err != nil && ctx.Err() == nil {
			r.report(output, "cannot mount files", err)
		}
	}, probePeriod)
}

// files returns the files of a ConfigMap or a Secret. Other volumes have none.
func (r *runner) files(ctx context.Context, name string, at host) (map[string][]byte, error) {
	i := slices.IndexFunc(r.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		return nil, nil
	}
	switch volume := r.pod.Spec.Volumes[i]; {
	case volume.Secret != nil:
		secret, err := r.client.CoreV1().Secrets(r.pod.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return secret.Data, nil
	case volume.ConfigMap != nil:
		config, err := r.client.CoreV1().ConfigMaps(r.pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		files := map[string][]byte{}
		for name, text := range config.Data {
			files[name] = []byte(text)
			if r.program.serves {
				if files[name], err = listenHere(files[name], at); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		return files, nil
	}
	return nil, nil
}
