package command

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend/worker"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/internal/stopwatch"
	"plumb/tensor"
)

//go:embed bench/compare.py
var benchCompare string

func newBenchCompare() *cobra.Command {
	b := &compareBench{}
	size, python := 64<<20, ""
	asJSON := false
	cmd := &cobra.Command{
		Use:     "compare",
		Example: `  plumb bench compare --size 64MiB`,
		Short:   "GB/s of the comparison beside numpy.allclose, torch.allclose and a memory read",
		Long: `Compare measures the comparison of two float32 tensors, one thread, both sides
counted: with every statistic, and with the pass or fail rules alone. In the
same rounds it measures a plain read of the memory, and numpy.allclose and
torch.allclose in a Python process. The medians of the rounds are shown.`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.run(cmd.Context(), size, python); err != nil {
				return err
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	fl := cmd.Flags()
	fl.Var(&limited[int]{to: &size, parse: parseSize, kind: "size", want: "from 4KiB to 16GiB, such as 64MiB", text: "64MiB"}, "size", "bytes of each tensor")
	b.count = 9
	fl.Var(wholeNumber(&b.count, 1), "count", "rounds")
	fl.StringVar(&python, "python", "", "the Python that has numpy and torch")
	fl.BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

// parseSize reads a number of bytes with an optional KiB, MiB or GiB.
func parseSize(s string) (n int, ok bool) {
	digits, shift := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if d, ok := strings.CutSuffix(s, unit); ok {
			digits, shift = d, 10*(i+1)
		}
	}
	n, err := strconv.Atoi(digits)
	ok = err == nil && n >= 1 && n <= math.MaxInt32 && n<<shift >= 4096 && n<<shift <= 16<<30
	return n << shift &^ 63, ok
}

// compareBench measures package compare.
type compareBench struct {
	count   int
	Bytes   int          `json:"bytes"` // of one tensor
	Rounds  int          `json:"rounds"`
	Rows    []compareRow `json:"rows"`
	Skipped []string     `json:"skipped,omitempty"` // what was not measured, and why
}

type compareRow struct {
	Name string  `json:"name"`
	GBs  float64 `json:"gb_per_s"`
	// The row's speed divided by those of others; 0 where one is missing.
	PerNumpy  float64 `json:"per_numpy_allclose,omitempty"`
	PerMemory float64 `json:"per_memory_read"`

	once    func() (time.Duration, error)
	seconds []float64
}

const (
	memoryRow = "memory read"
	numpyRow  = "numpy.allclose"
	torchRow  = "torch.allclose"
)

// run measures every row once a round, in turn, so that a busy machine slows
// all alike.
func (b *compareBench) run(ctx context.Context, bytes int, python string) error {
	b.Bytes, b.Rounds = bytes, b.count
	b.Rows = ownRows(bytes)
	peers, err := startPeers(ctx, python, bytes)
	if err == nil {
		defer peers.close()
		for _, name := range []string{numpyRow, torchRow} {
			b.Rows = append(b.Rows, compareRow{Name: name, once: func() (time.Duration, error) { return peers.time(name) }})
		}
	} else {
		b.Skipped = append(b.Skipped, fmt.Sprintf("%s and %s: %v", numpyRow, torchRow, err))
	}
	b.Rows = b.warm()
	err = stopwatch.InTurns(b.count, len(b.Rows), func(_, i int) error {
		spent, err := b.Rows[i].once()
		if err != nil {
			return harness(err)
		}
		b.Rows[i].seconds = append(b.Rows[i].seconds, spent.Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	b.conclude()
	return ctx.Err()
}

// warm runs every row once and returns those that work.
func (b *compareBench) warm() []compareRow {
	var rows []compareRow
	for _, r := range b.Rows {
		if _, err := r.once(); err != nil {
			b.Skipped = append(b.Skipped, fmt.Sprintf("%s: %v", r.Name, err))
			continue
		}
		rows = append(rows, r)
	}
	return rows
}

func (b *compareBench) conclude() {
	speed := map[string]float64{}
	for i := range b.Rows {
		r := &b.Rows[i]
		r.GBs = 2 * float64(b.Bytes) / stopwatch.Median(r.seconds) / 1e9
		speed[r.Name] = r.GBs
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		r.PerMemory = r.GBs / speed[memoryRow]
		if peer := speed[numpyRow]; peer > 0 {
			r.PerNumpy = r.GBs / peer
		}
	}
}

// ownRows measure this process: two tensors that differ in the last bits of
// three elements in four, all within PyTorch's tolerance.
func ownRows(bytes int) []compareRow {
	want, got := tensor.New(tensor.F32, bytes/4), tensor.New(tensor.F32, bytes/4)
	x, y := tensor.Data[float32](want), tensor.Data[float32](got)
	rng := choice.NewPhilox(7)
	for i := range x {
		u, v := rng.Pair(uint64(i))
		x[i] = float32(u>>40)*0x1p-23 - 1
		y[i] = x[i] * (1 + float32(v&3)*0x1p-23)
	}
	same := want.Clone()
	limit := compare.Default(tensor.F32)
	diff := func(got *tensor.Tensor) func() bool {
		return func() bool { return compare.Tensors(want, got, limit, compare.Options{}).OK }
	}
	return []compareRow{
		{Name: memoryRow, once: clock(func() bool { return readBoth(words(want), words(got)) != 0 })},
		{Name: "bit-identical", once: clock(diff(same))},
		{Name: "all statistics", once: clock(diff(got))},
		{Name: "rules alone", once: clock(func() bool { return compare.Passes(want, got, limit, compare.Options{}) })},
	}
}

// clock returns the time that f takes; f returns true.
func clock(f func() bool) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		start := time.Now()
		ok := f()
		spent := time.Since(start)
		if !ok {
			return 0, errors.New("the tensors do not compare as they should")
		}
		return spent, nil
	}
}

// words returns the bytes of a tensor as integers of 64 bits.
func words(t *tensor.Tensor) []int64 {
	w, err := tensor.FromBytes(tensor.I64, []int{len(t.Storage()) / 8}, []int{1}, 0, t.Storage())
	if err != nil {
		panic(err) // tensor.New aligns for every dtype
	}
	return tensor.Data[int64](w)
}

// readBoth reads two tensors of one size once, side by side.
func readBoth(x, y []int64) int64 {
	var a, b, c, d int64
	for len(x) >= 8 && len(y) >= 8 {
		a += x[0] + x[1]
		b += x[2] + x[3]
		c += x[4] + x[5]
		d += x[6] + x[7]
		a += y[0] + y[1]
		b += y[2] + y[3]
		c += y[4] + y[5]
		d += y[6] + y[7]
		x, y = x[8:], y[8:]
	}
	return a + b + c + d
}

// peers is the Python process that runs numpy and torch.
type peers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startPeers(ctx context.Context, python string, bytes int) (*peers, error) {
	python, _, err := worker.FindPython(python)
	if err != nil {
		return nil, err
	}
	p := &peers{cmd: exec.CommandContext(ctx, python, "-c", benchCompare)}
	p.cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1")
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(p.in, bytes)
	return p, err
}

var errNoPeer = errors.New("the Python process ended; it needs numpy")

// time asks for one measurement.
func (p *peers) time(name string) (time.Duration, error) {
	if _, err := fmt.Fprintln(p.in, strings.ReplaceAll(name, ".", "_")); err != nil {
		return 0, errNoPeer
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return 0, errNoPeer
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		return 0, errors.New(strings.TrimSpace(line))
	}
	return time.Duration(seconds * 1e9), nil
}

func (p *peers) close() {
	p.in.Close()
	_ = p.cmd.Wait()
}

func (b *compareBench) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	fmt.Fprintf(w, "two float32 tensors of %.4g MiB, one thread, median of %d rounds\n", float64(b.Bytes)/(1<<20), b.Rounds)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tGB/s\t÷ numpy.allclose\t÷ memory read\t")
	for _, r := range b.Rows {
		peer := "-"
		if r.PerNumpy > 0 {
			peer = fmt.Sprintf("%.2f", r.PerNumpy)
		}
		fmt.Fprintf(tw, "%s\t%.2f\t%s\t%.2f\t\n", r.Name, r.GBs, peer, r.PerMemory)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, s := range b.Skipped {
		fmt.Fprintln(w, "not measured:", s)
	}
	return nil
}
