package rfql_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ramp/rfql"
)

// contracted is a document with a contract on its second line.
func contracted(contract string) []byte {
	return []byte(`<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ"><Request><CPUHourCost>99</CPUHourCost><EndDate>2031-01-10</EndDate><EndTime>18:00:00Z</EndTime><WallTime>60</WallTime><Cores><TotalCores>2</TotalCores></Cores>
` + contract + `</Request></RequestForQuotation>`)
}

// rfql.xsd skips contracts, like everything of other namespaces; ramp.xsd describes them
// and agrees with Read.
func TestSchemaAgreesOnContracts(t *testing.T) {
	xmllint(t)
	for _, c := range []struct {
		attributes, inner string
		good              bool
	}{
		{``, `<r:P Pmax="1"/>`, true},
		{`timeLimit="30" prepay="true"`, `<r:Q Smin="1" Smax="4" Qmax="2.5"/><r:P rmin=".5" rmax="+1." Pmax="10"/>`, true},
		{`prepay="1"`, `<r:P Pmax="1"/>`, true},
		{`prepay=" 0 "`, `<r:P Pmax="1"/>`, true},
		{`prepay="yes"`, `<r:P Pmax="1"/>`, false},
		{`r:prepay="true"`, `<r:P Pmax="1"/>`, false},
		{`xml:lang="en"`, `<r:P Pmax="1" xml:lang="en"/>`, true},
		{`xmlns:x="urn:x" x:prepay="true"`, `<r:P Pmax="1" x:Pmax="2"/>`, true},
		{``, `<r:P r:Pmax="1" Pmax="1"/>`, false},
		{``, `<r:P Pmax="1" Qmax="1"/>`, false},
		{`limit="3"`, `<r:P Pmax="1"/>`, false},
		{``, `<r:P Pmax="1.0000001"/>`, false},
		{``, `<r:P Pmax="1"/><r:P Pmax="1"/>`, false},
		{``, `<P Pmax="1"/>`, false},
	} {
		element := fmt.Sprintf(`<r:Contract xmlns:r="urn:ramp:rfql:2" %s>%s</r:Contract>`, c.attributes, c.inner)
		if _, err := rfql.Parse(contracted(element), atNow()); (err == nil) != c.good {
			t.Errorf("%s: good %t, we say %v", element, c.good, err)
		}
		file := filepath.Join(t.TempDir(), "contract.xml")
		if err := os.WriteFile(file, []byte(element), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("xmllint", "--noout", "--nonet", "--schema", "ramp.xsd", file).CombinedOutput(); (err == nil) != c.good {
			t.Errorf("%s: good %t, the schema says %s", element, c.good, out)
		}
	}
}

// Faults of a contract have its line, and rates are in cores.
func TestFaultsOfAContractAreOnItsLine(t *testing.T) {
	for _, contract := range []string{
		`<r:Contract xmlns:r="urn:ramp:rfql:2"><r:P rmin="1.5" rmax="0.5" Pmax="1"/></r:Contract>`,
		`<r:Contract xmlns:r="urn:ramp:rfql:2" timeLimit="61"><r:P Pmax="1"/></r:Contract>`,
		`<r:Contract xmlns:r="urn:ramp:rfql:2"><r:P rmax="1"/></r:Contract>`,
	} {
		_, err := rfql.Parse(contracted(contract), atNow())
		var faults rfql.Faults
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line != 2 {
			t.Errorf("%s: %v", contract, err)
		}
		if text := fmt.Sprint(err); strings.Contains(contract, "rmin") && !strings.Contains(text, "1.5 cores is above the maximum of 0.5") {
			t.Error(text)
		}
	}
}
