package nn

var attentionModules []*Def
