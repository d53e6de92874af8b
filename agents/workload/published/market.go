// Package published holds the market of the published experiment (002 tables 1-3)
// and a synthetic workload log for each of its resources. The program embeds both,
// so that the demonstration and the experiments need no other files.
package published

import (
	"embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Logs are the synthetic logs, swf/RESOURCE.swf.gz each, which
// 'ramp swf synth --demo agents/workload/published/swf' wrote.
//
//go:embed swf
var Logs embed.FS

//go:embed market
var market embed.FS // one file for each table

// Machine is a machine of 002 table 1.
type Machine struct {
	Name  string // part of the file name of its log
	Cores int
}

// Resource is one of the twenty resources of 002 table 2.
type Resource struct {
	Name       string
	Machine    string
	Base       int64 // second of the machine's log at which the market starts
	Start, Min int   // credits per core-hour
}

// Job is one of the thirteen jobs of 002 table 3.
type Job struct {
	Name  string
	Cores int
	In    time.Duration // until it starts
	Price int           // limit in credits per core-hour
}

// The tables are parsed once: experiments ask for them at every offer.
var (
	machines  = sync.OnceValue(readMachines)
	resources = sync.OnceValue(readResources)
	jobs      = sync.OnceValue(readJobs)
)

// Machines returns table 1, in its order.
func Machines() []Machine { return slices.Clone(machines()) }

// Resources returns table 2, in its order.
func Resources() []Resource { return slices.Clone(resources()) }

// Jobs returns table 3, in its order.
func Jobs() []Job { return slices.Clone(jobs()) }

func readMachines() []Machine {
	return read("machines", func(f []string) (Machine, error) {
		cores, err := strconv.Atoi(f[1])
		return Machine{f[0], cores}, err
	})
}

func readResources() []Resource {
	return read("resources", func(f []string) (Resource, error) {
		var n [3]int
		for i := range n {
			var err error
			if n[i], err = strconv.Atoi(f[2+i]); err != nil {
				return Resource{}, err
			}
		}
		return Resource{f[0], f[1], int64(n[0]), n[1], n[2]}, nil
	})
}

func readJobs() []Job {
	return read("jobs", func(f []string) (Job, error) {
		cores, err := strconv.Atoi(f[1])
		if err != nil {
			return Job{}, err
		}
		in, err := time.ParseDuration(f[2])
		if err != nil {
			return Job{}, err
		}
		price, err := strconv.Atoi(f[3])
		return Job{f[0], cores, in, price}, err
	})
}

// read converts each line below the heading. It panics on a fault in a file, since
// the files are part of the program.
func read[T any](name string, line func([]string) (T, error)) []T {
	path := "market/" + name + ".csv"
	f, err := market.Open(path)
	if err != nil {
		panic(fmt.Sprintf("published: %v", err))
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("published: %s: %v", path, err))
	}
	var list []T
	for i, row := range rows[1:] {
		x, err := line(row)
		if err != nil {
			panic(fmt.Sprintf("published: %s: line %d: %v", path, i+2, err))
		}
		list = append(list, x)
	}
	return list
}
