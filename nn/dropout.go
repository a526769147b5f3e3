package nn

var dropoutModules []*Def
