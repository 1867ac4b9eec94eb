package e2e

import (
	"io"
	"testing"

	"persia/sandbox"
)

// storageStack is the file of a stack with volumes.
type storageStack struct {
	t             *testing.T
	project       string
	configuration object
}

func newStorageStack(t *testing.T, volumes []object, jobs ...object) storageStack {
	t.Helper()
	project := t.TempDir()
	configuration := stackText(t, project, madeUp{jobs: jobs})
	configuration["persia:storage"] = volumes
	s := storageStack{t, project, configuration}
	s.write()
	return s
}

func (s storageStack) write() {
	s.t.Helper()
	writeConfiguration(s.t, s.project, "madeup", s.configuration)
}

// sandbox returns a sandbox of the stack, and what it prints.
func (s storageStack) sandbox(dir string) (*sandbox.Sandbox, *output) {
	s.t.Helper()
	printed := &output{}
	box := openSandboxTo(s.t, io.MultiWriter(s.t.Output(), printed), s.project, dir, "madeup")
	takeDown(s.t, box, dir)
	return box, printed
}

// volume returns a volume of 1 TiB with a claim NAME-claim.
func volume(name, source string, fields object) object {
	return object{"name": name, "size": "1Ti", source: fields}
}

func mounts(pairs ...string) []object {
	var mounts []object
	for i := 0; i < len(pairs); i += 2 {
		mounts = append(mounts, object{"volume": pairs[i], "mountPath": pairs[i+1]})
	}
	return mounts
}
