package kube

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Custom is an object of a kind that a CustomResourceDefinition defines. Its TypeMeta
// names the kind, and Spec has the fields that the program writes.
type Custom[Spec any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

// DeepCopyObject copies the object, as [runtime.Object] requires.
func (c *Custom[Spec]) DeepCopyObject() runtime.Object { return Copy(c) }

// Copy copies an object that is plain data.
func Copy[T any](object *T) *T {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	copied := new(T)
	if err := json.Unmarshal(text, copied); err != nil {
		panic(err) // it was written by the line above
	}
	return copied
}
