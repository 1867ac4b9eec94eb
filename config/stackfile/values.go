package stackfile

import (
	"encoding/json"
	"maps"
	"slices"
)

// Values are the values of a stack by key. An encrypted string is {secure: CIPHERTEXT}.
type Values map[string]any

// Keys returns the sorted keys.
func (v Values) Keys() []string { return slices.Sorted(maps.Keys(v)) }

// Get returns the value of a key as Pulumi does: a string as it is, and anything else as
// JSON.
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
