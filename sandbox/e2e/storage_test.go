package e2e

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// resize gives volumes another size.
func (s storageStack) resize(size string, names ...string) {
	for _, volume := range s.configuration["persia:storage"].([]object) {
		for _, name := range names {
			if volume["name"] == name {
				volume["size"] = size
			}
		}
	}
	s.write()
}

// sandbox returns a sandbox of the stack, and what it prints.
func (s storageStack) sandbox(dir string) (*sandbox.Sandbox, *output) {
	s.t.Helper()
	printed := &output{}
	box := openSandboxTo(s.t, io.MultiWriter(s.t.Output(), printed), s.project, dir, "madeup")
	takeDown(s.t, box, dir)
	return box, printed
}

// output collects the printed text.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

// await waits until an operation has printed a text.
func (o *output) await(t *testing.T, by *operation, text string) {
	t.Helper()
	awaitUnless(t, patience, by.over, func() bool { return strings.Contains(o.String(), text) }, "%q is printed", text)
}

// volume returns a volume of 1 TiB with a claim NAME-claim.
func volume(name, source string, fields object) object {
	return object{"name": name, "size": "1Ti", source: fields}
}

// allSources has a volume for every kind of source, with what can be created
// created.
func allSources() []object {
	return []object{
		volume("directory", "hostPath", object{"path": "/var/lib/persia"}),
		volume("nfs", "nfs", object{"server": "10.0.0.9", "path": "/exports"}),
		volume("iscsi", "iscsi", object{"targetPortal": "10.0.0.3:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
		volume("any", "csi", object{"driver": "d.example.com", "volumeHandle": "h"}),
		volume("share", "filestore", object{"instance": "madeup-fs", "create": object{}}),
		volume("bucket", "gcsFuse", object{"bucket": "madeup-checkpoints", "create": object{}, "sidecar": object{"ephemeralStorage": "1Gi"}}),
		volume("disk", "persistentDisk", object{"disk": "madeup-disk", "create": object{}}),
		volume("replicated", "persistentDisk", object{"disk": "madeup-replicated", "zones": []string{"us-central1-a", "us-central1-b"}, "create": object{}}),
	}
}

func mounts(pairs ...string) []object {
	var mounts []object
	for i := 0; i < len(pairs); i += 2 {
		mounts = append(mounts, object{"volume": pairs[i], "mountPath": pairs[i+1]})
	}
	return mounts
}

// TestStorageSources: each kind of source has a pair that is bound to itself, though a
// default class and volumes of the same size are there. Two jobs
// share a volume, and one of them has two. Volumes grow in place and never shrink, and
// a claim that a pod still mounts is waited for.
func TestStorageSources(t *testing.T) {
	t.Parallel()
	one, two := job("one", nil), job("two", nil)
	one["mounts"], two["mounts"] = mounts("share", "/share", "bucket", "/bucket"), mounts("share", "/share")
	stack := newStorageStack(t, allSources(), one, two)
	s, printed := stack.sandbox(t.TempDir())
	require.NoError(t, s.Cluster().Start(t.Context(), t.Output()))
	c := storageCluster{newCluster(t, s)}

	result, err := s.Up(t.Context())
	require.NoError(t, err)
	assert.Contains(t, result.Outputs["checkpointVolumes"].Value, map[string]any{"volume": "bucket", "claim": "bucket-claim",
		"storage": "gs://madeup-checkpoints", "onDestroy": "kept: the next `pulumi up` of this stack takes it over"})
	before := map[string]types.UID{}
	for _, volume := range allSources() {
		name := volume["name"].(string)
		before[name] = c.assertPair(name, "1Ti")
	}
	classes, err := c.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"standard-rwo", "premium-rwo", "standard"}, names(classes.Items), "GKE's classes are there")
	c.assertMounted("one", "share-claim", "bucket-claim")
	c.assertMounted("two", "share-claim")
	assert.Empty(t, upChanges(t, s))

	// Kubernetes keeps the claim of a static volume from growing.
	patch := []byte(`{"spec": {"resources": {"requests": {"storage": "2Ti"}}}}`)
	_, err = c.CoreV1().PersistentVolumeClaims("persia").Patch(t.Context(), "share-claim", types.MergePatchType, patch, metav1.PatchOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "only dynamically provisioned pvc can be resized")

	// The three of Google Cloud that have a size, and what is bound to them.
	stack.resize("2Ti", "share", "disk", "replicated", "nfs")
	assert.Equal(t, map[string]int{"update": 7}, upChanges(t, s))
	for _, name := range []string{"share", "disk", "replicated", "nfs"} {
		assert.Equal(t, before[name], c.assertPair(name, "2Ti"), "%s is the volume that it was", name)
	}
	assert.Empty(t, upChanges(t, s))

	for _, name := range []string{"share", "disk", "replicated"} {
		stack.resize("1Ti", name)
		printed.reset()
		_, err = s.Preview(t.Context())
		require.Error(t, err)
		assert.Contains(t, printed.String(), "has 2048Gi, and never shrinks; write 2048Gi or more")
		stack.resize("2Ti", name)
	}

	c.createHolder("nfs-claim")
	printed.reset()
	destroy := begin(func() error { return s.Destroy(t.Context()) })
	printed.await(t, destroy, "waiting for finalizers: kubernetes.io/pvc-protection")
	require.NoError(t, c.CoreV1().Pods("persia").Delete(t.Context(), "holder", *metav1.NewDeleteOptions(0)))
	require.NoError(t, destroy.wait())
	for _, text := range []string{
		"gcp:storage:Bucket gs://madeup-checkpoints deleted", "[retain]",
		"kept for the stacks that made it", "bucket madeup-checkpoints", "Filestore instance projects/my-project/locations/us-central1-a/instances/madeup-fs",
	} {
		assert.True(t, strings.Contains(printed.String(), text), "destroy prints %q", text)
	}
	c.assertEmpty()
}

// TestStorageKept destroys a stack and brings it back over the same storage, several times.
// Sometimes the whole sandbox goes. In the last life the stack file says that its data may
// go, and nothing is left.
func TestStorageKept(t *testing.T) {
	t.Parallel()
	returns := forms(2, 10)
	stack := newStorageStack(t, []object{
		volume("share", "filestore", object{"instance": "madeup-fs", "create": object{}}),
		volume("bucket", "gcsFuse", object{"bucket": "madeup-checkpoints", "create": object{}}),
		volume("disk", "persistentDisk", object{"disk": "madeup-disk", "create": object{}}),
		volume("replicated", "persistentDisk", object{"disk": "madeup-replicated", "zones": []string{"us-central1-a", "us-central1-b"}, "create": object{}}),
	})
	dir := t.TempDir()
	s, printed := stack.sandbox(dir)
	handles := map[string]string{}
	for life := range returns + 1 {
		size := "1Ti"
		if life == returns {
			// What is taken over may change at once.
			stack.deleteWithStack()
			stack.resize("2Ti", "share", "bucket", "disk", "replicated")
			size = "2Ti"
		}
		result, err := s.Up(t.Context())
		require.NoError(t, err)
		stack.assertTakenOver(life > 0, changes(t, result.Summary))
		c := storageCluster{newCluster(t, s)}
		for _, name := range []string{"share", "bucket", "disk", "replicated"} {
			c.assertPair(name, size)
			handle := c.handle(name)
			if life == 0 {
				handles[name] = handle
			}
			assert.Equal(t, handles[name], handle, "life %d", life)
		}
		if life == 1 {
			assert.Empty(t, upChanges(t, s))
			assert.Empty(t, refreshChanges(t, s))
			stack.failToMark(s, c, printed)
		}
		switch life {
		case 1, 5:
			require.NoError(t, s.Down(t.Context()))
			assert.Equal(t, []string{"storage"}, entriesOf(t, dir), "what is kept is all that is left")
		case returns:
			assert.Contains(t, printed.String(), "`pulumi destroy` deletes gs://madeup-checkpoints with all checkpoints, as the stack file says")
			require.NoError(t, s.Down(t.Context()))
			assert.Empty(t, entriesOf(t, dir), "nothing is kept")
		default:
			require.NoError(t, s.Destroy(t.Context()))
			c.assertEmpty()
		}
	}
}

// failToMark has an update mark the bucket for deletion and then fail, and checks that the next one,
// whose stack file has no bucket, does not delete it.
func (s storageStack) failToMark(box *sandbox.Sandbox, c storageCluster, printed *output) {
	s.t.Helper()
	taken := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "taken"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.9", Path: "/"}},
	}}
	_, err := c.CoreV1().PersistentVolumes().Create(s.t.Context(), taken, metav1.CreateOptions{})
	require.NoError(s.t, err)
	volumes := s.configuration["persia:storage"].([]object)
	storage := func(changed ...object) {
		s.configuration["persia:storage"] = append(slices.DeleteFunc(slices.Clone(volumes), func(v object) bool { return v["name"] == "bucket" }), changed...)
		s.write()
	}
	storage(volume("taken", "gcsFuse", object{"bucket": "madeup-checkpoints", "create": object{"deleteWithStack": "madeup-checkpoints"}}))
	_, err = box.Up(s.t.Context())
	require.Error(s.t, err)
	storage()
	printed.reset()
	_, err = box.Preview(s.t.Context())
	require.Error(s.t, err)
	assert.Contains(s.t, printed.String(), "gs://madeup-checkpoints in the project my-project for deletion (deleteWithStack), and no volume creates it any more")
	assert.NotContains(s.t, printed.String(), "stays in gs://madeup-checkpoints")
	require.NoError(s.t, c.CoreV1().PersistentVolumes().Delete(s.t.Context(), "taken", metav1.DeleteOptions{}))
	s.configuration["persia:storage"] = volumes
	s.write()
	require.NoError(s.t, box.Apply(s.t.Context()))
	assert.Empty(s.t, upChanges(s.t, box))
}

// deleteWithStack has all storage of the stack go with it.
func (s storageStack) deleteWithStack() {
	for _, volume := range s.configuration["persia:storage"].([]object) {
		for source, name := range map[string]string{"filestore": "instance", "gcsFuse": "bucket", "persistentDisk": "disk"} {
			if fields, ok := volume[source].(object); ok {
				fields["create"] = object{"deleteWithStack": fields[name]}
			}
		}
	}
	s.write()
}

// assertTakenOver checks that an update has imported the four volumes' storage
// and the network of the Filestore instance. Google Cloud's provider reads no labels
// of what it imports, since they may be others', so that each of the four is updated
// to have those that it has. Networks have none.
func (s storageStack) assertTakenOver(back bool, found map[string]int) {
	s.t.Helper()
	if !back {
		assert.Zero(s.t, found["import"], "%v", found)
	} else {
		assert.Equal(s.t, 5, found["import"], "%v", found)
		assert.Equal(s.t, 4, found["update"], "%v", found)
	}
	assert.Zero(s.t, found["replace"], "%v", found)
}

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
