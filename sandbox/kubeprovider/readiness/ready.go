// Package readiness says whether an object in a cluster is ready, by the rules of the
// official Kubernetes provider and by its annotations.
package readiness

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	// AnnotationWaitFor has the conditions that an object is waited for.
	AnnotationWaitFor = "pulumi.com/waitFor"

	annotationSkipAwait = "pulumi.com/skipAwait"
	annotationTimeout   = "pulumi.com/timeoutSeconds"

	defaultTimeout = 10 * time.Minute
)

// Timeout returns how long an object is waited for: as long as its annotation says, or the
// default of its kind.
func Timeout(obj *unstructured.Unstructured) time.Duration {
	if n, err := strconv.Atoi(obj.GetAnnotations()[annotationTimeout]); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if rule, ok := kindRules[obj.GroupVersionKind().GroupKind()]; ok && rule.timeout > 0 {
		return rule.timeout
	}
	return defaultTimeout
}

// OnRead returns the rule by which a refresh finds an object unready, or nil if there is none. It
// ignores pulumi.com/waitFor: the official provider reads by its own rules (Read in
// provider/pkg/await/await.go).
func OnRead(ctx context.Context, c dynamic.Interface, obj *unstructured.Unstructured) Readiness {
	rule := kindRules[obj.GroupVersionKind().GroupKind()]
	if !rule.onRead || SkipsAwait(obj) {
		return nil
	}
	return rule.ready(ctx, c)
}

// CheckWaitFor refuses an annotation that names no conditions.
func CheckWaitFor(annotation string) error {
	_, err := parseWaitFor(annotation)
	return err
}

// Of returns the rule that decides whether an object is ready.
func Of(ctx context.Context, c dynamic.Interface, obj *unstructured.Unstructured) (Readiness, error) {
	annotations := obj.GetAnnotations()
	if SkipsAwait(obj) {
		return always, nil
	}
	if waitFor := annotations[AnnotationWaitFor]; waitFor != "" {
		conditions, err := parseWaitFor(waitFor)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", AnnotationWaitFor, err)
		}
		return func(obj *unstructured.Unstructured) (bool, string, error) { return evaluate(conditions, obj) }, nil
	}
	if rule, ok := kindRules[obj.GroupVersionKind().GroupKind()]; ok {
		return rule.ready(ctx, c), nil
	}
	return always, nil
}

// SkipsAwait says whether the program asks that an object is not waited for.
func SkipsAwait(obj *unstructured.Unstructured) bool {
	return strings.EqualFold(obj.GetAnnotations()[annotationSkipAwait], "true")
}

func always(*unstructured.Unstructured) (bool, string, error) { return true, "", nil }

func evaluate(conditions []waitCondition, obj *unstructured.Unstructured) (bool, string, error) {
	var unmet []string
	for _, condition := range conditions {
		met, err := condition.met(obj)
		if err != nil {
			return false, "", err
		}
		if !met {
			unmet = append(unmet, condition.text)
		}
	}
	return len(unmet) == 0, "waiting for " + strings.Join(unmet, ", "), nil
}
