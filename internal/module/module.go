// Package module tells the path of this module, which internal/publish may change.
package module

import (
	"reflect"
	"strings"
)

type here struct{}

// Path is the module's path, such as "plumb".
var Path = strings.TrimSuffix(reflect.TypeFor[here]().PkgPath(), "/internal/module")

// Join returns the import path of a package by its folder below the module's
// root; "." is the root.
func Join(folder string) string {
	if folder == "." {
		return Path
	}
	return Path + "/" + folder
}
