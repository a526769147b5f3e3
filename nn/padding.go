package nn

var paddingModules []*Def
