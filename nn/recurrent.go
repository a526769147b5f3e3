package nn

var recurrentModules []*Def
