package stackgen

import (
	"maps"
	"slices"
)

// Shrink removes every key and every item of a stack that fails does not need, and returns the
// rest.
func Shrink(stack Stack, fails func(Stack) bool) Stack {
	for smaller := true; smaller; {
		smaller = false
		for i := 0; ; i++ {
			candidate := stack.Clone()
			n := i
			if _, removed := without(map[string]any(candidate), &n); !removed {
				break
			}
			if fails(candidate) {
				stack, smaller = candidate, true
				i-- // another item has its index now
			}
		}
	}
	return stack
}

// without returns a value without its nth part, counting from the outside.
func without(value any, n *int) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if *n == 0 {
				delete(value, name)
				return value, true
			}
			*n--
			inner, removed := without(value[name], n)
			if removed {
				value[name] = inner
				return value, true
			}
		}
	case []any:
		for i := range value {
			if *n == 0 {
				return slices.Delete(value, i, i+1), true
			}
			*n--
			inner, removed := without(value[i], n)
			if removed {
				value[i] = inner
				return value, true
			}
		}
	}
	return value, false
}
