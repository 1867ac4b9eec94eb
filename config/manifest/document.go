package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	yamldocuments "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"persia/config/decode"
	"persia/config/notation"
)

// The kinds of objects that a manifest may hold.
const (
	persiaJob   = "PersiaJob"
	natsCluster = "NatsCluster"
)

var versions = map[string]string{persiaJob: "persia.com/v1", natsCluster: "nats.io/v1alpha2"}

// document is a Kubernetes object of a manifest.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
		// Namespace is ignored, but allowed: the stack determines where its jobs run.
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`

	at *field.Path
}

// readFile reads the objects of a file.
func (r *reader) readFile(at *field.Path, name string) []*document {
	text, err := openFile(r.files, name)
	if err != nil {
		r.Undecodable(at, name, "%s", err)
		return nil
	}
	in := field.NewPath(fmt.Sprintf("%s(%s)", at, name))
	objects, nodes, err := objectsOf(text)
	if err != nil {
		r.Unreadable(in, "is not valid YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
		return nil
	}
	var documents []*document
	for i, object := range objects {
		doc := &document{at: in}
		if len(objects) > 1 {
			doc.at = in.Index(i)
		}
		notation.Numbers(r.Problems, doc.at, nodes[i])
		decode.Into(r.Problems, doc.at, object, doc)
		if r.isOurs(doc) {
			documents = append(documents, doc)
		}
	}
	return documents
}

// isOurs reports whether an object is of a kind that a manifest may hold.
func (r *reader) isOurs(doc *document) bool {
	version, known := versions[doc.Kind]
	switch {
	case known && doc.APIVersion == version:
		return true
	case !r.Decoded(doc.at):
	case known:
		r.Undecodable(doc.at.Child("apiVersion"), doc.APIVersion, "must be %s for a %s", version, doc.Kind)
	default:
		r.Undecodable(doc.at.Child("kind"), doc.Kind, "must be PersiaJob or NatsCluster; apply other objects with kubectl")
	}
	return false
}

func openFile(files fs.FS, name string) ([]byte, error) {
	clean := path.Clean(name)
	if files == nil || !fs.ValidPath(clean) {
		return nil, errors.New("must be in the project's directory or below it; write its path from there, like jobs/train.yml")
	}
	text, err := fs.ReadFile(files, clean)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("does not exist; write the path of a file from the project's directory, like jobs/train.yml")
	case errors.As(err, &failed):
		return nil, fmt.Errorf("cannot be read: %w", failed.Err)
	}
	return text, err
}

// objectsOf splits a file into its documents, without empty ones. It returns each as a tree, and
// as it is written.
func objectsOf(text []byte) ([]any, []*yamlnodes.Node, error) {
	reader := yamldocuments.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []any
	var nodes []*yamlnodes.Node
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nodes, nil
		}
		if err != nil {
			return nil, nil, err
		}
		converted, err := yaml.YAMLToJSONStrict(part)
		if err != nil {
			return nil, nil, err
		}
		object := decode.JSON(string(converted))
		if object == nil {
			continue
		}
		var document yamlnodes.Node
		if err := yamlnodes.Unmarshal(part, &document); err != nil {
			return nil, nil, err
		}
		objects, nodes = append(objects, object), append(nodes, document.Content[0])
	}
}
