package nn

var lossModules []*Def
