package nn

var windowModules []*Def
