package experiment

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func (r *Result) file(t Table) string { return cmp.Or(t.File, r.Name+"-"+t.Name) + ".csv" }

// Write writes a Result to a directory: CSV, SVG, PNG and a report in Markdown.
func (r *Result) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range r.Tables {
		if err := save(filepath.Join(dir, r.file(t)), t.CSV); err != nil {
			return err
		}
	}
	for _, f := range r.Figures {
		if err := save(filepath.Join(dir, f.Name+".png"), f.PNG); err != nil {
			return err
		}
		if err := save(filepath.Join(dir, f.Name+".svg"), f.SVG); err != nil {
			return err
		}
	}
	return save(filepath.Join(dir, r.Name+".md"), r.Markdown)
}

// save writes a file completely or not at all.
func save(path string, write func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err = cmp.Or(write(f), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Markdown is the report for people.
func (r *Result) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s (%s). Seed %d.\n", r.Name, r.Shows, r.Source, r.Seed)
	if !r.Complete {
		b.WriteString("\nInterrupted: this report has only the completed runs.\n")
	}
	if r.NotRun != "" {
		fmt.Fprintf(&b, "\n**Not run**: %s.\n", r.NotRun)
	}
	r.shapesTo(&b)
	r.factsTo(&b)
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "\n![%s](%s.png)\n\n%s\n", f.Name, f.Name, f.Caption)
	}
	for _, t := range r.Tables {
		if t.Shown {
			fmt.Fprintf(&b, "\n## %s\n\n", t.About)
			markdownTable(&b, t.Columns, t.Rows)
		} else {
			fmt.Fprintf(&b, "\n%s: `%s`, %d rows.\n", t.About, r.file(t), len(t.Rows))
		}
	}
	list(&b, "Notes", r.Notes)
	list(&b, "Substitutions", r.Told)
	b.WriteString("\n## Settings\n\n")
	markdownTable(&b, []string{"key", "value", "what"}, r.Settings.Lines())
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) shapesTo(b *strings.Builder) {
	if len(r.Shapes) == 0 {
		return
	}
	b.WriteString("\n## Required shapes\n\n")
	rows := each(r.Shapes, func(s Shape) []string { return []string{s.Name, s.verdict(), s.Measured, s.Expected} })
	markdownTable(b, []string{"shape", "", "measured", "expected"}, rows)
}

func (s Shape) verdict() string {
	if s.Held {
		return "held"
	}
	return "**not held**"
}

func (r *Result) factsTo(b *strings.Builder) {
	if len(r.Facts) == 0 {
		return
	}
	b.WriteString("\n## Comparison with the source\n\n")
	markdownTable(b, []string{"", "here", "source"}, each(r.Facts, func(f Fact) []string { return []string{f.What, f.Ours, f.Source} }))
}

func list(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, s := range items {
		fmt.Fprintf(b, "- %s\n", s)
	}
}

func markdownTable(b *strings.Builder, columns []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, r := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(r, " | "))
	}
}

// Shapes writes the required shapes of results as CSV.
func Shapes(w io.Writer, results []*Result) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"experiment", "shape", "held", "measured", "expected"}}
	for _, r := range results {
		for _, s := range r.Shapes {
			rows = append(rows, []string{r.Name, s.Name, strconv.FormatBool(s.Held), s.Measured, s.Expected})
		}
	}
	return c.WriteAll(rows)
}

// Finish writes the shapes of all experiments and, if page is true, one page with all figures.
func Finish(dir string, results []*Result, page bool) error {
	if err := save(filepath.Join(dir, "shapes.csv"), func(w io.Writer) error { return Shapes(w, results) }); err != nil {
		return err
	}
	if !page {
		return nil
	}
	return save(filepath.Join(dir, "index.html"), func(w io.Writer) error { return Index(w, results) })
}

const indexHead = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Experiments</title>
<style>body{font:16px/1.5 sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
img{width:100%;height:auto;border:1px solid #ccc}figure{margin:1rem 0}
td,th{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}.no{color:#b00;font-weight:bold}</style></head><body>
<h1>Experiments</h1>
`

// Index is an HTML page with all figures.
func Index(w io.Writer, results []*Result) error {
	var b strings.Builder
	b.WriteString(indexHead)
	for _, r := range results {
		fmt.Fprintf(&b, "<h2 id=%q>%s</h2>\n<p>%s (%s; <a href=\"%s.md\">report</a>).</p>\n", r.Name, r.Name, html.EscapeString(r.Shows), html.EscapeString(r.Source), r.Name)
		if r.NotRun != "" {
			fmt.Fprintf(&b, "<p><b>Not run</b>: %s.</p>\n", html.EscapeString(r.NotRun))
		}
		r.htmlShapes(&b)
		for _, f := range r.Figures {
			fmt.Fprintf(&b, "<figure><a href=\"%s.svg\"><img src=\"%s.png\" alt=\"%s\"></a><figcaption>%s</figcaption></figure>\n",
				f.Name, f.Name, html.EscapeString(f.Name), html.EscapeString(f.Caption))
		}
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) htmlShapes(b *strings.Builder) {
	if len(r.Shapes) == 0 {
		return
	}
	b.WriteString("<table><tr><th>shape</th><th></th><th>measured</th><th>expected</th></tr>\n")
	for _, s := range r.Shapes {
		word := "held"
		if !s.Held {
			word = `<span class="no">not held</span>`
		}
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", html.EscapeString(s.Name), word, html.EscapeString(s.Measured), html.EscapeString(s.Expected))
	}
	b.WriteString("</table>\n")
}
