package optim_test

type scheduleCase struct{ name string }

func (c scheduleCase) request() scheduleRequest { return scheduleRequest{} }
