package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"plumb/internal/conform/config"
	"plumb/internal/spell"
	"plumb/suites"
)

// shippedModels is the file of the networks that Plumb ships.
const shippedModels = "suites/conformance/models.json"

// modelFlags choose models of a network.
type modelFlags struct {
	name, file, configs string
	all                 bool
}

func (m *modelFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&m.name, "model", "", "only the functions that this network calls, such as resnet50; with --model-configs its own config")
	fl.Var(inFile(&m.file), "model-file", "a file of networks to use instead of those that Plumb ships")
	fl.Var(folder(&m.configs), "model-configs", "the folder of configs of networks: that of --model, in place of CONFIG, is {cv,det,seg,other}_configs/NAME_config.py there")
}

// load returns all models, and the one that cases are chosen by; nil for none.
func (m *modelFlags) load() (all []*config.Model, one *config.Model, err error) {
	name, src := shippedModels, suites.Models
	if m.file != "" {
		name = m.file
		if src, err = readRegular(name); err != nil {
			return nil, nil, usage(err)
		}
	}
	if all, err = config.LoadModels(name, src); err != nil {
		return nil, nil, usage(err)
	}
	if m.name == "" || m.configs != "" {
		return all, nil, nil
	}
	var names []string
	for _, one := range all {
		if strings.EqualFold(one.Name, m.name) {
			return all, one, nil
		}
		names = append(names, one.Name)
	}
	return nil, nil, m.unknown(name, names)
}

// unknown tells which models there are.
func (m *modelFlags) unknown(where string, names []string) error {
	meant, least := "", spell.Distance(m.name, "")
	for _, n := range names {
		if d := spell.Distance(strings.ToLower(m.name), n); d < min(least, maxSlips) {
			meant, least = "; is "+n+" meant?", d
		}
	}
	if len(names) == 0 {
		return usage(fmt.Errorf("--model %s: %s has no model", m.name, where))
	}
	return usage(fmt.Errorf("--model %s: %s has %s%s", m.name, where, strings.Join(names, " "), meant))
}

// maxSlips is from how many letters on another name is no slip of the pen.
const maxSlips = 4

// modelSuffix ends the name of a network's config, file and variable.
const modelSuffix = "_config"

// own returns the config that a command takes: with --model-configs that of the
// network, in place of args.
func (m *modelFlags) own(args []string) ([]string, error) {
	if m.configs == "" {
		return args, nil
	}
	if len(args) > 0 {
		return nil, usage(fmt.Errorf("--model-configs gives the config of %s: leave %s out", m.name, args[0]))
	}
	files, err := filepath.Glob(filepath.Join(m.configs, "*_configs", "*"+modelSuffix+".py"))
	if err == nil && len(files) == 0 {
		err = errors.New("no such folder")
		if _, there := os.Stat(m.configs); there == nil {
			err = errors.New("want {cv,det,seg,other}_configs/NAME_config.py in it")
		}
	}
	if err != nil {
		return nil, usage(fmt.Errorf("--model-configs %s: %w", m.configs, err))
	}
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), modelSuffix+".py")
		if strings.EqualFold(name, m.name) {
			return []string{f}, m.holds(f, name+modelSuffix)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return nil, m.unknown(m.configs, names)
}

// holds wants the config of a file in the variable of the network's name.
func (m *modelFlags) holds(path, variable string) error {
	src, err := configText(path)
	if err != nil {
		return err
	}
	c, err := config.Load(path, src)
	if err != nil {
		return usage(err)
	}
	if c.Variable != variable {
		return usage(fmt.Errorf("%s: the config is in %s; that of --model %s is in %s", path, c.Variable, m.name, variable))
	}
	return nil
}
