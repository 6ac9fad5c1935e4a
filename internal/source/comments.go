package source

import (
	"go/ast"
	"slices"
)

// wellKnown are methods of interfaces that every reader knows.
var wellKnown = []string{"Error", "String", "Unwrap", "Is", "Read", "Write", "ReadFrom"}

// Undocumented returns the exported names that f declares without a comment.
func Undocumented(f *ast.File) []*ast.Ident {
	var found []*ast.Ident
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || !slices.Contains(wellKnown, d.Name.Name)) {
				found = append(found, d.Name)
			}
		case *ast.GenDecl:
			found = append(found, undocumentedSpecs(d)...)
		}
	}
	return found
}

func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	var found []*ast.Ident
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
				found = append(found, s.Name)
			}
		case *ast.ValueSpec:
			if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				found = append(found, s.Names[0])
			}
		}
	}
	return found
}

// UndocumentedFields returns the exported fields of the exported structs of f,
// and the methods of its exported interfaces, that have neither a comment above
// them nor one on their line. A comment holds for all names of its line.
func UndocumentedFields(f *ast.File) []*ast.Ident {
	var found []*ast.Ident
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			if t, ok := s.(*ast.TypeSpec); ok && t.Name.IsExported() {
				found = append(found, undocumentedIn(t.Type)...)
			}
		}
	}
	return found
}

func undocumentedIn(t ast.Expr) []*ast.Ident {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	case *ast.ArrayType:
		return undocumentedIn(t.Elt)
	case *ast.StarExpr:
		return undocumentedIn(t.X)
	case *ast.MapType:
		return undocumentedIn(t.Value)
	default:
		return nil
	}
	var found []*ast.Ident
	for _, f := range list.List {
		exported := slices.DeleteFunc(slices.Clone(f.Names), func(id *ast.Ident) bool {
			return !id.IsExported() || slices.Contains(wellKnown, id.Name)
		})
		if f.Doc == nil && f.Comment == nil {
			found = append(found, exported...)
		}
		if len(exported) > 0 {
			found = append(found, undocumentedIn(f.Type)...)
		}
	}
	return found
}
