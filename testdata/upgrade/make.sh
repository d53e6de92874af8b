set -e
# Run in an empty directory: what the archive beside this file was made with.
R=${RAMP:-ramp}
$R ca init --dir ca --lifetime 800000h >/dev/null
for a in bank site ann; do $R ca issue $a --dir ca --out $a --lifetime 799000h >/dev/null; done
printf 'bank: {currencies: [CPU]}\n' > bank/config.yaml
$R bank serve --dir bank 2> bank.log & B=$!
until grep -q msg=ready bank.log; do :; done
BANK=$($R ca show bank/agent.pem | awk '$1 == "agent" {print $2}'); JOIN=$(head -n 1 bank/addresses)
$R bank account open site --cert site/agent.pem --dir bank
$R bank account open ann --cert ann/agent.pem --dir bank
$R bank credit ann 100 --dir bank
cat > site/config.yaml <<X
bootstrap: [$JOIN]
resource:
  driver: local
  local: {cores: 2, claims: ../claims}
  start_price: "3"
  minimum_price: "1"
  horizon: 80000h
  pay: [{bank: $BANK, currency: CPU}]
  properties: {os: Linux, architecture: x86_64}
  cancellation: {before: 10m, fee_per_mille: 100}
X
$R resource serve --dir site 2> site.log & S=$!
until grep -q msg=ready site.log; do :; done
printf "bootstrap: [$JOIN]\nuser: {pay: [{bank: $BANK, currency: CPU}]}\n" > ann/config.yaml
cat > job.xml <<X
<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ" xmlns:r="urn:ramp:rfql:2">
  <Request r:name="job"><CPUHourCost>2.50</CPUHourCost><EndDate>2034-06-01</EndDate><EndTime>12:00:00Z</EndTime><StartDate>2034-06-01</StartDate><StartTime>08:00:00Z</StartTime><WallTime>60</WallTime><Cores><TotalCores>1</TotalCores></Cores></Request>
</RequestForQuotation>
X
until $R user resources --dir ann | grep -q site; do :; done
$R user buy job.xml --dir ann --id first
$R user buy job.xml --dir ann --id second
$R user cancel second --dir ann
sed 's/2.50/0.50/' job.xml > cheap.xml
$R user buy cheap.xml --dir ann --id third || true
kill $S; wait $S; kill $B; wait $B
