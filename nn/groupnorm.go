package nn

var groupNormModules []*Def
