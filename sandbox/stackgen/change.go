package stackgen

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// maker changes stacks at random.
type maker struct {
	schema *Schema
	*rand.Rand
	// stack is the one that is being changed.
	stack Stack
}

// deepest is how far objects are put into each other to make room for a key, and how
// deep values are filled with more than they need.
const deepest = 8

// change returns a copy of a stack with one key written, changed or removed.
func (m *maker) change(stack Stack) Stack {
	return m.changeKey(stack, m.schema.keys[m.IntN(len(m.schema.keys))])
}

func (m *maker) changeKey(stack Stack, key Key) Stack {
	m.stack = stack.Clone()
	object := m.objectFor(key.Definition, 0)
	if object == nil {
		return m.stack
	}
	if _, there := object[key.Property]; there && m.IntN(10) == 0 {
		delete(object, key.Property)
		return m.stack
	}
	m.write(object, key)
	return m.stack
}

// write gives a key of an object another value. What it says by another name is
// renamed, and what excludes it is removed.
func (m *maker) write(object map[string]any, key Key) {
	if names := sameRole(key); names != nil {
		for _, name := range names {
			if role, ok := object[name]; ok && name != key.Property {
				delete(object, name)
				object[key.Property] = role
				return
			}
		}
	}
	n := m.schema.Definitions[key.Definition].Properties[key.Property]
	object[key.Property] = m.changed(key, n, object[key.Property])
	if choices := oneOf[key.Definition]; slices.Contains(choices, key.Property) {
		for _, other := range choices {
			if other != key.Property {
				delete(object, other)
			}
		}
	}
	if excluded := excluding[key.String()]; excluded != nil {
		for name := range object {
			if name != key.Property && (len(excluded) == 0 || slices.Contains(excluded, name)) {
				delete(object, name)
			}
		}
	}
	if name := olderPaths[key.Property]; name != "" {
		if env, ok := object["persiaEnv"].(map[string]any); ok {
			delete(env, name)
		}
	}
}

// changed returns another value of a key. A list gets one more item in half of the cases.
func (m *maker) changed(key Key, n *node, value any) any {
	if items, ok := value.([]any); ok && n.Items != nil && m.IntN(2) == 0 {
		return append(items, m.item(key, n.Items, items))
	}
	return m.value(key, n, 0)
}

// item returns one more item of a list: a new one, or one that is there by another name.
func (m *maker) item(key Key, n *node, items []any) any {
	if len(items) == 0 || m.IntN(2) == 0 {
		return m.value(key, n, 1)
	}
	item := clone(items[m.IntN(len(items))])
	if object, ok := item.(map[string]any); ok && object["name"] != nil {
		object["name"] = fmt.Sprintf("%v-%d", object["name"], len(items))
	}
	return item
}

// objectFor returns an object of a definition in the stack, and adds one if there is none.
func (m *maker) objectFor(definition string, depth int) map[string]any {
	if there := m.find(definition); len(there) > 0 {
		return there[m.IntN(len(there))]
	}
	parents := m.schema.parents[definition]
	if len(parents) == 0 || depth > deepest {
		return nil
	}
	parent := parents[m.IntN(len(parents))]
	object := m.objectFor(parent.Definition, depth+1)
	if object == nil {
		return nil
	}
	m.write(object, parent)
	if there := m.find(definition); len(there) > 0 {
		return there[m.IntN(len(there))]
	}
	return nil
}

func (m *maker) find(definition string) []map[string]any {
	var found []map[string]any
	m.schema.objects(m.stack, func(of string, object map[string]any) {
		if of == definition {
			found = append(found, object)
		}
	})
	return found
}

// value returns a value of a key. The deeper its position, the more usual the value is: one odd
// value among many is enough.
func (m *maker) value(key Key, n *node, depth int) any {
	usual, oddity := m.usual(key), 3+7*depth
	switch {
	case len(usual) > 0 && (n.Ref != "" || n.Items == nil && n.Additional.node == nil) && m.IntN(oddity) > 0:
		return clone(usual[m.IntN(len(usual))])
	case n.Ref != "":
		return m.object(n.holds(), depth)
	case n.Items != nil:
		items := []any{}
		for range 1 + m.IntN(2) {
			items = append(items, m.value(key, n.Items, depth+1))
		}
		return items
	case n.Additional.node != nil:
		return m.mapping(key, n.Additional.node, depth)
	case len(n.Enum) > 0 && m.IntN(5*oddity) > 0:
		return n.Enum[m.IntN(len(n.Enum))]
	default:
		return m.odd(n)
	}
}

// object returns an object with the required fields of a definition, and sometimes more.
func (m *maker) object(definition string, depth int) any {
	object := map[string]any{}
	d := m.schema.Definitions[definition]
	if d == nil {
		return m.pick(oddTexts)
	}
	choices := oneOf[definition]
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		property := d.Properties[name]
		wanted := slices.Contains(d.Required, name) || slices.Contains(needed[definition], name)
		more := depth < deepest && m.IntN(12) == 0 && property.Deprecation == "" && needed[definition] == nil
		if (wanted || more) && !slices.Contains(choices, name) {
			object[name] = m.value(Key{definition, name}, property, depth+1)
		}
	}
	if len(choices) > 0 {
		name := choices[m.IntN(len(choices))]
		object[name] = m.value(Key{definition, name}, d.Properties[name], depth+1)
	}
	return object
}

func (m *maker) mapping(key Key, n *node, depth int) any {
	object := map[string]any{}
	for range 1 + m.IntN(2) {
		name := fmt.Sprint(m.pick(oddTexts))
		if names := usualEntries[key.Property]; len(names) > 0 && m.IntN(5) > 0 {
			name = names[m.IntN(len(names))]
		}
		object[name] = m.value(key, n, depth+1)
	}
	return object
}

// odd returns a value that no user would write, mostly of the right type.
func (m *maker) odd(n *node) any {
	if m.IntN(50) == 0 {
		return m.pick([]any{nil, true, "", 0, []any{}, map[string]any{}, -1})
	}
	switch {
	case len(n.AnyOf) > 0 && n.AnyOf[0].Pattern != "" || n.Pattern != "":
		return m.pick(quantities)
	case n.Type == "boolean":
		return m.IntN(2) == 0
	case n.Type == "integer" || n.Type == "number":
		return m.pick(numbers)
	default:
		return m.pick(oddTexts)
	}
}

func (m *maker) pick(values []any) any { return values[m.IntN(len(values))] }
