package web

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/proof"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// purchase shows one purchase: what is to be decided, the auction, what was bought, and
// what would help.
func (s userPages) purchase(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	p, err := ask(ctx, s.Server, control.Purchase, control.IDCall{ID: id})
	if err != nil {
		return view{}, err
	}
	rounds, err := ask(ctx, s.Server, control.Rounds, control.IDCall{ID: id})
	if err != nil {
		return view{}, err
	}
	now := s.cfg.Now()
	v := view{Title: "Purchase " + cmp.Or(p.RFQ, p.ID), On: []string{control.EventPurchase, control.EventRound, control.EventRun}, Of: id}
	v.Blocks = append(v.Blocks, block{Status: statusWords(p), Facts: purchaseFacts(p, now), Links: purchaseLinks(p)})
	if run, err := ask(ctx, s.Server, control.Run, control.RunCall{ID: id}); err == nil { // most purchases have none
		v.Blocks = append(v.Blocks, block{Heading: "Program", Facts: []fact{{"State", runState(run)}, {"Command", txt(commandWords(run.Program))}}, Links: []link{{"Its output and files", runPath(id)}}})
	}
	v.Blocks = append(v.Blocks, decisions(p)...)
	if len(p.Units) > 0 {
		v.Blocks = append(v.Blocks, block{Table: unitTable(p)})
	}
	v.Blocks = append(v.Blocks, whyNot(p)...)
	v.Blocks = append(v.Blocks, block{Heading: "Auction", Table: auctionTable(p, rounds)}, block{Heading: "Timeline", Table: timeline(p)})
	return v, nil
}

// statusWords say how far a purchase is, for those who hear the page.
func statusWords(p message.Purchase) string {
	text := "State: " + p.State + "."
	if n := len(p.Rounds); n > 0 && (p.State == user.StateBidding || p.State == user.StateApproval) {
		r := p.Rounds[n-1]
		text += fmt.Sprintf(" Round %d: %s, %s, best %s %s per core-hour.", r.Round, words.Plural(r.Offers, "offer"), words.Plural(r.Refusals, "refusal"), bestWords(r.Best), currencyOf(p))
	}
	return text
}

func currencyOf(p message.Purchase) string { return cmp.Or(p.Currency, "credits") }

func bestWords(best []*protocol.Credits) string { return strings.Join(words.Prices(best), " / ") }

func purchaseFacts(p message.Purchase, now time.Time) []fact {
	list := []fact{{"State", state(p.State)}, {totalName(p), txt(totalOf(p))}, {"Sites asked", txt(words.Plural(p.Found, "site"))}, {"Ordered", moment(p.Created)}}
	if !p.Until.IsZero() {
		list = append(list, fact{"This phase ends", cell{Text: words.Timestamp(p.Until), Left: max(p.Until.Sub(now), time.Millisecond)}})
	}
	if p.Waits != "" {
		list = append(list, fact{"The bank has not decided yet", txt(p.Waits)})
	}
	if !p.Deadline.IsZero() {
		list = append(list, fact{"Must end by", minute(p.Deadline)})
	}
	if p.Mode != "" {
		list = append(list, fact{"When it is paid", txt(string(p.Mode))})
	}
	if p.Settled && p.Why != "" { // such as that a site refused to take it back
		list = append(list, fact{"Note", txt(p.Why)})
	}
	if p.RefundTotal > 0 {
		list = append(list, fact{"Refunded", txt(money(p.RefundTotal, p.Currency))})
	}
	if p.Contract != "" {
		list = append(list, fact{"Bank", txt(name(p.Bank))}, fact{"Contract", txt(string(p.Contract))})
	}
	return append(list, fact{"ID", txt(p.ID)})
}

// totalName says what a total is: that of a purchase, or only of the nearest offers.
func totalName(p message.Purchase) string {
	if p.Settled || p.Contract != "" {
		return "Total"
	}
	return "Total of the best offers"
}

func totalOf(p message.Purchase) string {
	if p.Total == 0 {
		return "-"
	}
	return money(p.Total, p.Currency)
}

func purchaseLinks(p message.Purchase) []link {
	list := []link{{"Messages (trace)", purchasePath(p.ID) + "/trace"}, {"Same request again", "/compose?from=" + url.QueryEscape(p.ID)}}
	if p.Contract != "" && (p.Settled || p.State == user.StateVoid) {
		list = append(list, link{"Receipt and proof (ZIP)", purchasePath(p.ID) + "/receipt.zip"})
	}
	return list
}

// decisions are the forms for what its owner may decide about a purchase now.
func decisions(p message.Purchase) (list []block) {
	switch {
	case p.State == user.StateApproval:
		list = append(list, block{Heading: "Your decision", Note: &note{Kind: "good", Text: fmt.Sprintf("The best set costs %s. Nothing is bought until you approve.", totalOf(p)), Help: strings.Join(p.Violations, "; ")},
			Form: &form{Action: "/approve", Submit: "Buy for " + totalOf(p), Fields: []field{hidden("id", p.ID), hidden("yes", "1")}}},
			block{Form: &form{Action: "/approve", Submit: "Do not buy", Danger: true, Fields: []field{hidden("id", p.ID), hidden("yes", "0")}}})
	case p.State == user.StateSettled:
		list = append(list, block{Form: &form{Action: "/cancel", Submit: "Ask the sites to take it back", Danger: true, Fields: []field{hidden("id", p.ID)}}})
	}
	for _, u := range p.Units {
		if u.Dispute != "" && u.Word == "" {
			list = append(list, block{Heading: fmt.Sprintf("Usage of unit %d", u.Unit+1), Note: &note{Text: fmt.Sprintf("%s reports %s due. %s", u.Resource, money(u.Due, p.Currency), words.Sentence(u.Dispute))},
				Form: &form{Action: "/usage", Submit: "Agree to pay " + money(u.Due, p.Currency), Fields: []field{hidden("id", p.ID), hidden("unit", fmt.Sprint(u.Unit+1)), hidden("record", u.Record), hidden("agree", "1")}}})
		}
	}
	return list
}

func unitTable(p message.Purchase) *table {
	t := &table{Caption: "What is bought", Heads: heads("Unit#", "Site", "Cores#", "Slot", "Price#", "List price#", "Cost#", "Paid#", "State")}
	if !p.Settled {
		t.Caption = "The best set of offers"
	}
	for _, u := range p.Units {
		paid, list := "-", "-"
		if u.How != "" {
			paid = money(u.Paid, p.Currency)
		}
		if u.List > 0 {
			list = perHour(u.List, p.Currency)
		}
		t.Rows = append(t.Rows, []cell{num(fmt.Sprint(u.Unit + 1)), txt(u.Resource), num(words.Plural(u.Cores, "core")), slot(u.Start, u.End),
			num(perHour(u.Price, p.Currency)), num(list), num(money(u.Cost, p.Currency)), num(paid), state(cmp.Or(u.State, "-")).and(u.Dispute)})
	}
	return t
}

// whyNot explains why nothing was bought, with a button for each change that would help.
func whyNot(p message.Purchase) (list []block) {
	if p.Settled || p.State == user.StateBidding {
		return nil
	}
	if text := strings.Trim(strings.Join(append(slices.Clone(p.Violations), p.Why), "; "), "; "); text != "" {
		list = append(list, block{Heading: "Why", Note: &note{Kind: "bad", Text: words.Sentence(text)}})
	}
	if len(p.Reasons) > 0 {
		t := &table{Caption: "Why sites refuse", Heads: heads("Sites#", "Reason")}
		for _, code := range words.Commonest(p.Reasons) {
			t.Rows = append(t.Rows, []cell{num(words.Plural(p.Reasons[code], "site")), txt(words.ReasonOf(protocol.Code(code), p.Reasons[code] == 1, p.Deadline))})
		}
		list = append(list, block{Table: t})
	}
	if len(p.Programs)+len(p.Notes) > 0 {
		list = append(list, block{Note: &note{Text: strings.Join(append(slices.Clone(p.Programs), p.Notes...), "; ")}})
	}
	for i, r := range p.Relaxations {
		b := block{Form: &form{Action: "/relax", Submit: relaxWords(r), Fields: []field{hidden("id", p.ID), hidden("which", fmt.Sprint(i)), hidden("next", control.NewPurchaseID(false))}}}
		if i == 0 {
			b.Heading, b.Note = "What would help", &note{Text: "Each button asks the market again with that change. You approve before anything is bought."}
		}
		list = append(list, b)
	}
	return list
}

// timeline is what happened, and how long it took.
func timeline(p message.Purchase) *table {
	t := &table{Caption: "What happened, and how long it took", Heads: heads("What", "Took#", "Result")}
	ms := func(v float64) cell { return num(fmt.Sprintf("%.1f ms", v)) }
	t.Rows = append(t.Rows, []cell{txt("Ordered"), num("-"), txt(words.Timestamp(p.Created))})
	for _, r := range p.Rounds {
		t.Rows = append(t.Rows, []cell{txt(fmt.Sprintf("Round %d", r.Round)), ms(r.MS), txt(fmt.Sprintf("best %s %s per core-hour; %s, %s", bestWords(r.Best), currencyOf(p), words.Plural(r.Offers, "offer"), words.Plural(r.Refusals, "refusal")))})
	}
	for _, x := range []struct {
		what string
		took float64
		res  string
	}{{"Auction", p.AuctionMS, words.Plural(len(p.Rounds), "round")}, {"Sites' votes", p.VoteMS, "all sites hold"}, {"Bank's decision", p.SettleMS, p.State}, {"All", p.ElapsedMS, p.State}} {
		if x.took > 0 {
			t.Rows = append(t.Rows, []cell{txt(x.what), ms(x.took), txt(x.res)})
		}
	}
	return t
}

func (s userPages) trace(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	list, err := ask(ctx, s.Server, control.Trace, control.IDCall{ID: id})
	v := view{Title: "Messages of a purchase", Blocks: []block{{Note: &note{Text: "Every message of " + id + ", oldest first, as the agents wrote it."}, Links: []link{{"Back to the purchase", purchasePath(id)}}}}}
	const most = 400
	if len(list) > most {
		v.Blocks[0].Note.Help = fmt.Sprintf("The first %d of %d; 'ramp user trace %s' has all.", most, len(list), id)
		list = list[:most]
	}
	for _, t := range list {
		v.Blocks = append(v.Blocks, block{Heading: words.Timestamp(t.At) + ", " + t.Dir, Text: visibleLines(t.Text)})
	}
	return v, err
}

// receipt sends the signed documents of a purchase. The archive is made in memory, so a
// full disk does not matter.
func (s userPages) receipt(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), AnswerTime)
	defer cancel()
	signed, err := ask(ctx, s.Server, control.SignedParts, control.IDCall{ID: r.PathValue("id")})
	var out bytes.Buffer
	if err == nil {
		err = zipReceipt(&out, signed, s.cfg.Now())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", "attachment; filename=receipt.zip")
	_, _ = w.Write(out.Bytes()) // an error means that the browser left
}

func zipReceipt(out *bytes.Buffer, signed control.SignedFiles, now time.Time) error {
	files, names, verify := proof.Files(signed)
	names = append(names, "VERIFY.txt")
	files["VERIFY.txt"] = []byte("Verify these files by:\n  " + strings.Join(verify, "\n  ") + "\n")
	z := zip.NewWriter(out)
	for _, n := range names {
		f, err := z.CreateHeader(&zip.FileHeader{Name: n, Method: zip.Deflate, Modified: now})
		if err == nil {
			_, err = f.Write(files[n])
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// auctionTable has a row for each seller and a column for each round.
func auctionTable(p message.Purchase, rounds []control.RoundView) *table {
	last := 0
	bids := map[protocol.AgentID]map[int]cell{}
	for _, r := range rounds {
		last = max(last, r.Round)
		if r.Seller == "" {
			continue
		}
		if bids[r.Seller] == nil {
			bids[r.Seller] = map[int]cell{}
		}
		bids[r.Seller][r.Round] = bidCell(r, p)
	}
	t := &table{Caption: "Lowest price, or why not, by site and round; prices in " + currencyOf(p) + " per core-hour", Heads: heads("Site"), Empty: "No site has answered yet."}
	for n := range last {
		t.Heads = append(t.Heads, head{Text: fmt.Sprintf("Round %d", n+1)})
	}
	sellers := slices.SortedFunc(maps.Keys(bids), func(a, b protocol.AgentID) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a, b))
	})
	won := map[protocol.AgentID]bool{}
	for _, u := range p.Units {
		won[u.Seller] = true
	}
	for _, id := range sellers {
		row := []cell{txt(name(id))}
		if won[id] {
			row[0] = row[0].and("in the best set")
		}
		for n := range last {
			row = append(row, cmp.Or(bids[id][n+1], txt("–")))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// bidCell is what a seller answered in a round: its lowest price, and why it offers no more.
func bidCell(r control.RoundView, p message.Purchase) cell {
	c := cell{}
	var least protocol.Credits
	for _, o := range r.Offers {
		for _, i := range o.Items {
			if least == 0 || i.Price < least {
				least = i.Price
			}
		}
	}
	var why []string
	for _, reason := range r.Reasons {
		text := words.ReasonOf(reason.Code, true, p.Deadline)
		if reason.Asks > 0 {
			text += ", from " + reason.Asks.Cents()
		}
		if reason.Note != "" {
			text += ": " + reason.Note
		}
		if !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	if reasons := strings.Join(why, "; "); least > 0 {
		c.Text, c.Small = least.Cents(), reasons
	} else {
		c.Text = cmp.Or(reasons, "no offer")
	}
	return c
}
