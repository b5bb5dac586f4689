package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// print writes value as JSON, or a table of the rows that table returns, the
// first of which is the head.
func (c *cli) print(value any, table func() [][]string) error {
	if c.output == "json" {
		return c.printJSON(value)
	}
	return c.printTable(table())
}

func (c *cli) printJSON(value any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func (c *cli) printTable(rows [][]string) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return w.Flush()
}

// oneLine keeps a cell from breaking its table.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
}

// brief is the start of a text, on one line.
func brief(text string) string {
	if runes := []rune(oneLine(text)); len(runes) > 120 {
		return string(runes[:119]) + "…"
	}
	return oneLine(text)
}

// or returns text, or what stands for nothing.
func or(text, nothing string) string {
	if text == "" {
		return nothing
	}
	return text
}

// ago says how long ago a moment was, or how soon it is, in the two largest
// units at most.
func (c *cli) ago(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	if d := c.now().Sub(at); d >= 0 {
		return span(d) + " ago"
	}
	return "in " + span(at.Sub(c.now()))
}

func (c *cli) agoPtr(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return c.ago(*at)
}

// span writes a duration as a person would say it: 350ms, 4.2s, 3m10s, 2h5m, 3d4h.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// shortID is the start of a container ID, as docker ps shows it.
func shortID(id string) string { return id[:min(len(id), 12)] }

// pairs writes a map as a=1,b=2.
func pairs(m map[string]string) string {
	list := make([]string, 0, len(m))
	for key, value := range m {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
