package sampler

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden orders anew: only ever right for a new major version")

// golden is a file of orders that never change, one a line: of what, a colon,
// the indices.
type golden struct {
	path, head string
	cases      func() []string
	order      func(t *testing.T, of string) []int64
}

const goldenHead = "# Orders that never change within a major version: see doc.go.\n"

const goldenTail = `, and of
# more than 32 only the first four, how many, and the SHA-256 of all as
# little-endian int64.
`

func goldens() []golden {
	return []golden{
		{"testdata/golden.txt", "# mode length batch_size seed rank world_size step steps: the indices", goldenCases, goldenOrder},
		{"testdata/split.txt", "# length seed fractions: the sizes, then the parts", splitCases, splitOrder},
		{"testdata/mix.txt", "# modes lengths weights batch_size seed rank world_size step steps:\n# the sources, then the records", mixCases, mixOrder},
		{"testdata/budget.txt", "# records (as long as lengthsOf says) budget max_records multiple seed rank\n# world_size step steps: the counts, then the records", budgetCases, budgetOrder},
	}
}

// goldenCases are every mode at lengths on both sides of what an algorithm
// changes at, with seeds, ranks and steps that people use, and the extremes.
func goldenCases() []string {
	var cases []string
	seeds := []uint64{0, 42, 1<<64 - 1}
	for mode := Sequential; mode <= Cyclic; mode++ {
		for _, length := range []int64{1, 2, 5, 1000, 65_536, 65_537, 1_000_000, 1 << 40, 1<<63 - 1} {
			batch := min(length, 12)
			for _, seed := range seeds {
				for _, step := range []int64{0, 1, 1_000_000, 1<<63 - 1} {
					cases = append(cases, fmt.Sprintf("%d %d %d %d 0 1 %d 1", mode, length, batch, seed, step))
				}
			}
			// Many steps at once, over the end of a cycle where the length allows.
			cases = append(cases, fmt.Sprintf("%d %d %d 42 0 1 3 9000", mode, length, batch))
			if batch == 12 {
				cases = append(cases, fmt.Sprintf("%d %d 12 42 2 3 1 2", mode, length),
					fmt.Sprintf("%d %d 12 42 5 6 1 500", mode, length))
			}
		}
	}
	return cases
}

func goldenOrder(t *testing.T, of string) []int64 {
	var c Config
	var step, steps int64
	scan(t, of, &c.Mode, &c.Length, &c.BatchSize, &c.Seed, &c.Rank, &c.WorldSize, &step, &steps)
	return mustFill(t, c, step, steps)
}

func scan(t *testing.T, of string, values ...any) {
	t.Helper()
	if _, err := fmt.Sscan(of, values...); err != nil {
		t.Fatalf("golden case %q: %v", of, err)
	}
}

func goldenLine(of string, all []int64) string {
	if len(all) <= 32 {
		return of + ":" + numbers(all)
	}
	bytes := make([]byte, 0, 8*len(all))
	for _, index := range all {
		bytes = binary.LittleEndian.AppendUint64(bytes, uint64(index))
	}
	return fmt.Sprintf("%s:%s ... %d %x", of, numbers(all[:4]), len(all), sha256.Sum256(bytes))
}

func numbers(all []int64) string {
	var text strings.Builder
	for _, index := range all {
		fmt.Fprintf(&text, " %d", index)
	}
	return text.String()
}

func TestGoldenOrders(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.path, g.test)
	}
}

// The orders are those of the file, each line of which says what it is of. No
// line may go missing either.
func (g golden) test(t *testing.T) {
	if *update {
		var text strings.Builder
		text.WriteString(goldenHead + g.head + goldenTail)
		for _, of := range g.cases() {
			text.WriteString(goldenLine(of, g.order(t, of)) + "\n")
		}
		if err := os.WriteFile(g.path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(g.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	held := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		of, _, found := strings.Cut(lines.Text(), ":")
		if strings.HasPrefix(of, "#") {
			continue
		}
		if got := goldenLine(of, g.order(t, of)); !found || got != lines.Text() {
			t.Errorf("order changed:\n got %s\nwant %s", got, lines.Text())
		}
		held[of] = true
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, of := range g.cases() {
		if !held[of] {
			t.Errorf("%s has no line for %s", g.path, of)
		}
	}
}
