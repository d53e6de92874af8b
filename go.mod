module ramp

go 1.26
