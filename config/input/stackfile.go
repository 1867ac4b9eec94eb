package input

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// StackFileName returns the name of the file of a stack.
func StackFileName(stack string) string { return "Pulumi." + stack + ".yaml" }

// The settings of a stack file for encryption.
const (
	SecretsProvider = "secretsprovider"
	EncryptionSalt  = "encryptionsalt"
	EncryptedKey    = "encryptedkey"
)

// Environment is the setting for environments of Pulumi ESC, which add values.
const Environment = "environment"

const configuration = "config"

// StackFile is a stack file.
type StackFile struct {
	// Config are the values. All keys have a namespace, by default the project's.
	Config Values
	// Settings are the other contents of the file.
	Settings map[string]any
}

// StackNames lists the stacks with files in a folder, for a message about a stack without one.
func StackNames(files fs.FS) string {
	paths, _ := fs.Glob(files, StackFileName("*"))
	if len(paths) == 0 {
		return "there is none here: run this in the folder of Pulumi.yaml, or name the folder"
	}
	return "there are " + And(Words(paths, func(path string) string {
		return strings.TrimSuffix(strings.TrimPrefix(path, "Pulumi."), ".yaml")
	}))
}

// ReadStackFile reads the stack file at a path. The project is the default namespace of keys.
func ReadStackFile(files fs.FS, path, project string) (StackFile, error) {
	text, err := fs.ReadFile(files, path)
	if err != nil {
		return StackFile{}, err
	}
	file, err := ParseStackFile(text, project)
	if err != nil {
		return StackFile{}, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// ParseStackFile parses a stack file. It refuses what Pulumi ignores or reads otherwise than people, in Problems.
func ParseStackFile(text []byte, project string) (StackFile, error) {
	file, p := StackFile{Config: Values{}}, &Problems{}
	checkText(p, nil, text)
	if err := cmp.Or(p.Err(), yaml.Unmarshal(text, &file.Settings)); err != nil {
		return StackFile{}, err
	}
	written, isObject := file.Settings[configuration].(map[string]any)
	if !isObject && file.Settings[configuration] != nil {
		return StackFile{}, errors.New(configuration + ": write the keys of the stack and their values below it")
	}
	delete(file.Settings, configuration)
	for key, value := range written {
		if !strings.Contains(key, ":") {
			key = project + ":" + key
		}
		if _, twice := file.Config[key]; twice {
			return StackFile{}, fmt.Errorf("%s: is there twice, with and without its namespace; remove one", key)
		}
		file.Config[key] = value
	}
	return file, nil
}

// instead says what to do instead of keys of Pulumi's providers.
var instead = map[string]string{
	"gcp:region":                    "write region of persia:cluster",
	"gcp:zone":                      "write zones of persia:cluster",
	"gcp:impersonateServiceAccount": "run `gcloud auth application-default login --impersonate-service-account=ACCOUNT`",
	"gcp:credentials":               "set GOOGLE_APPLICATION_CREDENTIALS to the path of the file",
	"kubernetes:kubeconfig":         "write existing.kubeconfig of persia:cluster",
	"kubernetes:context":            "write existing.context of persia:cluster",
}

// CheckKeys refuses the keys of a stack file that Pulumi or the program ignores: keys outside of config, unknown keys
// of the project, and keys of other namespaces, because the program configures its providers itself.
func (f StackFile) CheckKeys(project string, known []string) error {
	var p Problems
	for key := range f.Settings {
		if slices.Contains(known, project+":"+key) || strings.HasPrefix(key, project+":") {
			p.Forbidden(field.NewPath(key), "is outside of %s, where Pulumi ignores it; indent it below %s", configuration, configuration)
		}
	}
	for key := range f.Config {
		namespace, name, _ := strings.Cut(key, ":")
		ours := project + ":" + name
		switch near := Nearest(ours, known); {
		case slices.Contains(known, key) || namespace == "pulumi": // which the engine reads
		case namespace != project && slices.Contains(known, ours):
			p.Forbidden(field.NewPath(key), "is in the namespace %s, which nothing reads; write %s", namespace, ours)
		case namespace != project:
			p.Forbidden(field.NewPath(key), "is in the namespace %s, which nothing reads; %s", namespace, cmp.Or(instead[key], "remove it"))
		case len(near) > 0:
			p.Forbidden(field.NewPath(key), "unknown key; did you mean %s?", Or(near))
		default:
			p.Forbidden(field.NewPath(key), "unknown key; remove it, as the keys are %s", And(known))
		}
	}
	return p.Err()
}

// Text returns the file as YAML.
func (f StackFile) Text() ([]byte, error) {
	all := map[string]any{configuration: f.Config}
	maps.Copy(all, f.Settings)
	return yaml.Marshal(all)
}

// Values are the values of a stack by key. An encrypted string is {secure: CIPHERTEXT}.
type Values map[string]any

// Get returns the value of a key as Pulumi does: a string as it is, and anything else as JSON.
func (v Values) Get(key string) (string, bool) {
	value, written := v[key]
	if text, isText := value.(string); isText || !written {
		return text, written
	}
	text, err := json.Marshal(value)
	return string(text), err == nil
}

// Texts returns all values as Get does.
func (v Values) Texts() map[string]string {
	texts := map[string]string{}
	for key := range v {
		if text, ok := v.Get(key); ok {
			texts[key] = text
		}
	}
	return texts
}

// Open returns the values with each encrypted string replaced by what open returns for its
// path, which is the key followed by names and indexes, and its ciphertext.
func (v Values) Open(open func(path []any, ciphertext string) string) Values {
	opened := Values{}
	for key, value := range v {
		opened[key] = opens(value, []any{key}, open)
	}
	return opened
}

func opens(value any, path []any, open func([]any, string) string) any {
	at := func(element any) []any { return append(path[:len(path):len(path)], element) }
	switch value := value.(type) {
	case map[string]any:
		if text, isText := value["secure"].(string); isText && len(value) == 1 {
			return open(path, text)
		}
		opened := map[string]any{}
		for name, element := range value {
			opened[name] = opens(element, at(name), open)
		}
		return opened
	case []any:
		opened := make([]any, len(value))
		for i, element := range value {
			opened[i] = opens(element, at(i), open)
		}
		return opened
	}
	return value
}

// Decrypted returns the values with each encrypted string replaced by its ciphertext, for
// examples, whose ciphertexts are plain text.
func (v Values) Decrypted() Values {
	return v.Open(func(_ []any, ciphertext string) string { return ciphertext })
}

// Secrets returns the keys whose values contain encrypted strings.
func (v Values) Secrets() map[string]bool {
	keys := map[string]bool{}
	v.Open(func(path []any, _ string) string {
		keys[path[0].(string)] = true
		return ""
	})
	return keys
}
