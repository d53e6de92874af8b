package clearing

func solve(p *Problem) Solution { return Solution{Status: Undecided} }
