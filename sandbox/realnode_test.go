package sandbox

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/node"
)

func TestFindRealNode(t *testing.T) {
	images := testkit.Must(filepath.Abs("images"))(t)
	for name, c := range map[string]struct {
		said RealNode
		last string
		want RealNode
		err  string
	}{
		"none":                        {},
		"as it was":                   {last: `{"Pool": "train", "Images": "/i"}`, want: RealNode{Pool: "train", Images: "/i"}},
		"the first":                   {said: RealNode{Pool: "train", Images: "images"}, want: RealNode{Pool: "train", Images: images}},
		"another":                     {said: RealNode{Pool: "gpu", Images: "images"}, last: `{"Pool": "train", "Images": "/i"}`, want: RealNode{Pool: "gpu", Images: images}},
		"a file that is not readable": {last: `{`, err: "real-node.json: "},
	} {
		t.Run(name, func(t *testing.T) {
			f := folder{t.TempDir(), "dev"}
			if c.last != "" {
				require.NoError(t, os.MkdirAll(f.path(), 0o700))
				require.NoError(t, os.WriteFile(f.realNode(), []byte(c.last), 0o600))
			}
			found, err := findRealNode(c.said, f)
			testkit.Fails(t, err, c.err)
			assert.Equal(t, c.want, found)
		})
	}
}

// TestNodeOfOtherImagesIsAnother: a machine reads its options and imports its images only when it starts.
func TestNodeOfOtherImagesIsAnother(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*node.Options)
		want   bool
	}{
		"nothing":            {func(*node.Options) {}, false},
		"what is no archive": {func(o *node.Options) { write(t, filepath.Join(o.Images, "training.tar.stamp"), "b") }, false},
		"an archive's size":  {func(o *node.Options) { write(t, filepath.Join(o.Images, "training.tar"), "longer") }, true},
		"an archive more":    {func(o *node.Options) { write(t, filepath.Join(o.Images, "nats.tar"), "a") }, true},
		"an archive less":    {func(o *node.Options) { require.NoError(t, os.Remove(filepath.Join(o.Images, "training.tar"))) }, true},
		"an option":          {func(o *node.Options) { o.Disks = "/elsewhere" }, true},
		"the images' folder": {func(o *node.Options) { o.Images = t.TempDir() }, true},
		"an archive, rebuilt": {func(o *node.Options) {
			require.NoError(t, os.Chtimes(filepath.Join(o.Images, "training.tar"), time.Time{}, time.Unix(1, 0)))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := node.Options{Dir: t.TempDir(), Images: t.TempDir()}
			write(t, filepath.Join(o.Images, "training.tar"), "a")
			before := testkit.Must(nodeProgram("sandbox", o))(t)
			c.change(&o)
			after := testkit.Must(nodeProgram("sandbox", o))(t)
			assert.Equal(t, c.want, !assert.ObjectsAreEqual(before, after), "%v and %v", before, after)
		})
	}
}
