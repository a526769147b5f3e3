// Command publish gives the module another path: it renames the module, the
// imports of it in every Go file and document, and what the modules of
// internal/asmgen and examples require. It changes the files in place.
//
//	go run ./internal/publish github.com/someone/plumb
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"plumb/internal/module"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/publish PATH, such as github.com/someone/plumb")
		os.Exit(2)
	}
	dir, err := root()
	if err == nil {
		err = publish(dir, module.Path, os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
	fmt.Printf("the module is %s now\nnext: go build ./...\n", os.Args[1])
}

// root returns the folder of the module in or above the working directory.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module.Path+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod of module " + module.Path + " in or above the working directory")
		}
		dir = up
	}
}
