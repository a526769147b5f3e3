package conform

// customs are the functions of CustomizedTest as compositions of PyTorch's.
var customs = map[string]func(*build) ([]any, error){}
