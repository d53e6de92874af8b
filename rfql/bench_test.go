package rfql_test

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"ramp/rfql"
)

// kilobyte is a document of about 1 KiB with every term in it.
const kilobyte = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ" xmlns:r="urn:ramp:rfql:2" r:optimize="cost-time">
  <Request r:name="first of two" r:application="LB3D">
    <CPUHourCost>12.5</CPUHourCost>
    <EndDate>2031-01-10</EndDate>
    <EndTime>15:05:34</EndTime>
    <StartDate>2031-01-10</StartDate>
    <StartTime>11:01:34</StartTime>
    <OperatingSystem>LINUX</OperatingSystem>
    <OSVersion>5</OSVersion>
    <Architecture>x86_64</Architecture>
    <CPUSpeed>2400</CPUSpeed>
    <WallTime>120</WallTime>
    <InterNodeBandwidth>10000</InterNodeBandwidth>
    <RAMPerCore>2048</RAMPerCore>
    <Disk><TotalDiskSpace>500</TotalDiskSpace></Disk>
    <Cores><Nodes><NodeCount>16</NodeCount><NodeCores>32</NodeCores></Nodes></Cores>
  </Request>
  <Request><!-- it begins when the first ends -->
    <CPUHourCost>12.5</CPUHourCost><EndDate>2031-01-10</EndDate><EndTime>19:05:34</EndTime>
    <StartDate>2031-01-10</StartDate><StartTime>15:05:34</StartTime>
    <Cores><TotalCores>64</TotalCores></Cores>
  </Request>
</RequestForQuotation>
`

func BenchmarkParse1KiB(b *testing.B) {
	if n := len(kilobyte); n < 1024 || n > 1400 {
		b.Fatalf("the document has %d bytes", n)
	}
	doc, now := []byte(kilobyte), time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := rfql.Parse(doc, now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefuse1MiB bounds what a hostile document costs: elements, names and
// namespaces as dense as they can be.
func BenchmarkRefuse1MiB(b *testing.B) {
	head := `<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ"`
	for i := range 30 {
		head += " xmlns:p" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + `="u"`
	}
	doc := []byte(head + ">" + strings.Repeat(`<paa:a b="" c=""/>`, 58000))
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, _, err := rfql.Read(doc); err == nil {
			b.Fatal("read")
		}
	}
}

// BenchmarkEncodingXML1KiB is the yardstick: what it takes encoding/xml to cut
// the same document into tokens, and nothing more.
func BenchmarkEncodingXML1KiB(b *testing.B) {
	b.SetBytes(int64(len(kilobyte)))
	for b.Loop() {
		dec := xml.NewDecoder(strings.NewReader(kilobyte))
		for {
			if _, err := dec.RawToken(); err != nil {
				break
			}
		}
	}
}
