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

const goldenPath = "testdata/golden.txt"

const goldenHead = `# Orders that never change within a major version: see doc.go.
# mode length batch_size seed rank world_size step steps: the indices, and of
# more than 32 only the first four, how many, and the SHA-256 of all as
# little-endian int64.
`

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

func goldenLine(t *testing.T, of string) string {
	t.Helper()
	var c Config
	var step, steps int64
	_, err := fmt.Sscan(of, &c.Mode, &c.Length, &c.BatchSize, &c.Seed, &c.Rank, &c.WorldSize, &step, &steps)
	if err != nil {
		t.Fatalf("golden case %q: %v", of, err)
	}
	all := mustFill(t, c, step, steps)
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

// The orders are those of the file, each line of which says what it is of. No
// line may go missing either.
func TestGoldenOrders(t *testing.T) {
	if *update {
		var text strings.Builder
		text.WriteString(goldenHead)
		for _, of := range goldenCases() {
			text.WriteString(goldenLine(t, of) + "\n")
		}
		if err := os.WriteFile(goldenPath, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(goldenPath)
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
		if got := goldenLine(t, of); !found || got != lines.Text() {
			t.Errorf("order changed:\n got %s\nwant %s", got, lines.Text())
		}
		held[of] = true
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, of := range goldenCases() {
		if !held[of] {
			t.Errorf("%s has no line for %s", goldenPath, of)
		}
	}
}
