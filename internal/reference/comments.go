package reference

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"persia/config"
)

// comments are the doc comments of package config and the packages below it, without the
// subject that they begin with, and with the YAML names of fields.
type comments struct {
	// types maps PACKAGE.TYPE, and fields PACKAGE.TYPE.FIELD, to comments.
	types, fields map[string]string
	// values are the constants of string types.
	values map[string][]Value
}

// readComments reads the source of package config in a folder and of the packages below it.
func readComments(dir string) (*comments, error) {
	root := reflect.TypeFor[config.Stack]().PkgPath()
	packages := map[string][]*doc.Type{}
	err := filepath.WalkDir(dir, func(folder string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == "testdata" {
			return fs.SkipDir
		}
		below, err := filepath.Rel(dir, folder)
		if err != nil {
			return err
		}
		types, err := typesOf(folder, path.Join(root, filepath.ToSlash(below)))
		packages[path.Join(root, filepath.ToSlash(below))] = types
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(packages[root]) == 0 {
		return nil, fmt.Errorf("no types in %s", dir)
	}
	c := &comments{map[string]string{}, map[string]string{}, map[string][]Value{}}
	shared := sharedNames(slices.Concat(slices.Collect(maps.Values(packages))...))
	for pkg, types := range packages {
		for _, t := range types {
			names, name := shared.and(namesOf(t)), pkg+"."+t.Name
			c.types[name] = names.inYAML(withoutSubject(t.Name, firstParagraph(t.Doc)))
			for _, f := range structFields(t) {
				c.fields[name+"."+f.name] = names.inYAML(withoutSubject(f.name, oneLine(f.comment)))
			}
			c.values[name] = valuesOf(t)
		}
	}
	return c, nil
}

// typesOf returns the types of a package.
func typesOf(dir, importPath string) ([]*doc.Type, error) {
	files, fset, err := parse(dir)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	pkg, err := doc.NewFromFiles(fset, files, importPath)
	if err != nil {
		return nil, err
	}
	return pkg.Types, nil
}

// parse parses the files of a package, without its tests.
func parse(dir string) ([]*ast.File, *token.FileSet, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file)
	}
	return files, fset, nil
}

// commentedField is a field of a struct in its source.
type commentedField struct {
	name, yaml, comment string
}

// structFields returns the fields of a struct, without embedded ones. It returns none for other
// types.
func structFields(t *doc.Type) []commentedField {
	object, ok := t.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var fields []commentedField
	for _, f := range object.Fields.List {
		for _, name := range f.Names {
			fields = append(fields, commentedField{name.Name, jsonName(f.Tag), f.Doc.Text()})
		}
	}
	return fields
}

func jsonName(tag *ast.BasicLit) string {
	if tag == nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(tag.Value, "`")).Get("json"), ",")
	return name
}

func namesOf(t *doc.Type) names {
	own := names{}
	for _, f := range structFields(t) {
		own[f.name] = f.yaml
	}
	return own
}

// sharedNames returns the names that mean a field or a key in any comment, because they are not
// English words, in Go and in YAML.
func sharedNames(types []*doc.Type) names {
	shared := names{}
	for _, key := range config.Keys() {
		if _, name, _ := strings.Cut(key, ":"); compound.MatchString(name) {
			shared[name] = name
		}
	}
	for _, t := range types {
		for _, f := range structFields(t) {
			for _, name := range []string{f.name, f.yaml} {
				if compound.MatchString(name) {
					shared[name] = f.yaml
				}
			}
		}
	}
	return shared
}

// valuesOf returns the constants of a string type.
func valuesOf(t *doc.Type) []Value {
	var values []Value
	for _, group := range t.Consts {
		for _, spec := range group.Decl.Specs {
			constant := spec.(*ast.ValueSpec)
			for i, expr := range constant.Values {
				literal, ok := expr.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					continue
				}
				about := strings.TrimPrefix(oneLine(constant.Doc.Text()), constant.Names[i].Name+" ")
				values = append(values, Value{text, about})
			}
		}
	}
	return values
}
