package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend/worker"
	"plumb/internal/onekernel"
)

const (
	largestRequest = 4 << 20 // bytes
	servedCases    = 24      // a default, for seconds and not for tens of them
)

// kernelServer judges kernels, as requests ask for; their processes are forks of such that are kept.
type kernelServer struct {
	http     string
	jobs     int
	deadline time.Duration

	slots chan struct{}

	mu    sync.Mutex
	found map[string][2]string // Python and version by what was asked for
}

func newKernelServe() *cobra.Command {
	s := &kernelServer{jobs: runtime.NumCPU(), deadline: 5 * time.Minute, found: map[string][2]string{}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Judge the kernels that requests name, one JSON object a line",
		Long: `Serve reads requests, one JSON object a line, and writes the report of each as one line
when it is there, in whatever order they come. A request has an "id", which its answer
repeats; the "kernel", or its "source", which is the text of a file, and its "function";
and the flags of plumb kernel by their names, such as "against" and "dtypes". What cannot
be judged is answered by {"id": …, "error": …}.

Processes that have imported PyTorch are kept; each judgement is made in forks of them, so
that a kernel that ends its process, or breaks its memory, costs its own answer. With
--http requests are posted to /kernel of an address of this machine.`,
		Example: `  echo '{"id": 1, "kernel": "softmax.py::my_softmax", "against": "torch.softmax", "seed": 7}' | plumb kernel serve`,
		Args:    noArguments(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&s.http, "http", "", "listen at this address of the loopback, such as 127.0.0.1:8080, instead of reading lines")
	fl.Var(wholeNumber(&s.jobs, 1), "jobs", "judgements at a time")
	fl.DurationVar(&s.deadline, "deadline", s.deadline, "of one answer")
	return cmd
}

func (s *kernelServer) run(cmd *cobra.Command) error {
	s.slots = make(chan struct{}, s.jobs)
	if s.http != "" {
		return s.listen(cmd)
	}
	return s.lines(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
}

// lines answers requests of a stream.
func (s *kernelServer) lines(ctx context.Context, in io.Reader, out io.Writer) error {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	var writing sync.Mutex
	say := func(answer []byte) {
		writing.Lock()
		defer writing.Unlock()
		out.Write(append(answer, '\n'))
	}
	lines := bufio.NewReaderSize(in, 1<<16)
	for ctx.Err() == nil {
		line, err := boundedLine(lines)
		if errors.Is(err, errLong) {
			say(refused(nil, err))
			continue
		}
		if len(bytes.TrimSpace(line)) > 0 {
			s.slots <- struct{}{}
			waiting.Go(func() {
				defer func() { <-s.slots }()
				say(s.answer(ctx, line))
			})
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return harness(err)
		}
	}
	return ctx.Err()
}

var errLong = fmt.Errorf("a request of more than %d bytes", largestRequest)

// boundedLine returns the next line; one that is too long is passed over.
func boundedLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > largestRequest; !long {
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if long {
			return nil, errLong
		}
		return line, err
	}
}

// listen answers requests over HTTP, on the loopback alone.
func (s *kernelServer) listen(cmd *cobra.Command) error {
	if err := loopback(s.http); err != nil {
		return usage(err)
	}
	l, err := net.Listen("tcp", s.http)
	if err != nil {
		return harness(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "listening at http://%s/kernel\n", l.Addr())
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	stop := context.AfterFunc(cmd.Context(), func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return harness(err)
	}
	return nil
}

func (s *kernelServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /kernel", func(w http.ResponseWriter, r *http.Request) {
		if loopback(r.Host) != nil || r.Header.Get("Origin") != "" { // a page in a browser has no say
			http.Error(w, "requests of this machine alone are answered", http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestRequest))
		if err != nil {
			http.Error(w, errLong.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(append(s.answer(r.Context(), body), '\n'))
	})
	return mux
}

// loopback refuses addresses that others could reach.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is no address of the loopback, such as 127.0.0.1:8080: what reaches it runs code here", address)
	}
	return nil
}

// answer judges what a request names. Whatever goes wrong is the request's own.
func (s *kernelServer) answer(ctx context.Context, request []byte) (answer []byte) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(request, &fields); err != nil {
		return refused(nil, fmt.Errorf("a request is one JSON object: %w", err))
	}
	id := fields["id"]
	defer func() {
		if p := recover(); p != nil {
			answer = refused(id, fmt.Errorf("a fault of the judge's: %v", p))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	rep, err := s.judge(ctx, fields)
	if ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("no verdict within %s", s.deadline)
	}
	if err != nil {
		return refused(id, err)
	}
	text, err := json.Marshal(struct {
		ID json.RawMessage `json:"id,omitempty"`
		*onekernel.Report
	}{id, rep})
	if err != nil {
		return refused(id, err)
	}
	return text
}

func refused(id json.RawMessage, err error) []byte {
	text, _ := json.Marshal(struct {
		ID    json.RawMessage `json:"id,omitempty"`
		Error string          `json:"error"`
	}{id, err.Error()})
	return text
}

func (s *kernelServer) judge(ctx context.Context, fields map[string]json.RawMessage) (*onekernel.Report, error) {
	f := &kernelFlags{Options: onekernel.Defaults()}
	f.YAML = decodeYAML
	f.Find, f.Cases, f.Budget = s.python, servedCases, 0
	dir, err := f.request(fields)
	if dir != "" {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return nil, err
	}
	f.seed()
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	rep, err := onekernel.Judge(ctx, *cfg)
	if errors.Is(err, worker.ErrOrphaned) {
		return onekernel.Judge(ctx, *cfg)
	}
	return rep, err
}

// request sets the flags that a request names, and returns a folder that is to be removed.
func (f *kernelFlags) request(fields map[string]json.RawMessage) (dir string, err error) {
	cmd := &cobra.Command{}
	f.register(cmd)
	var source, function string
	for name, value := range fields {
		switch name {
		case "id":
			continue
		case "kernel":
			err = json.Unmarshal(value, &f.Kernel)
		case "source":
			err = json.Unmarshal(value, &source)
		case "function":
			err = json.Unmarshal(value, &function)
		case "json", "quiet", "bundle", "verbose":
			err = errors.New("it is of the command alone")
		default:
			err = setFlag(cmd, name, value)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if source == "" {
		return "", nil
	}
	if dir, err = os.MkdirTemp("", "source-"); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "kernel.py")
	f.Kernel = strings.TrimSuffix(file+"::"+function, "::")
	return dir, os.WriteFile(file, []byte(source), 0o600)
}

// setFlag gives a flag a value of JSON's: a text, a number, true, or a list of texts.
func setFlag(cmd *cobra.Command, name string, value json.RawMessage) error {
	if cmd.Flags().Lookup(name) == nil {
		return errors.New("no flag of plumb kernel has this name")
	}
	values := []json.RawMessage{value}
	if bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) {
		if err := json.Unmarshal(value, &values); err != nil {
			return err
		}
	}
	for _, v := range values {
		text := string(v)
		if strings.HasPrefix(text, `"`) {
			if err := json.Unmarshal(v, &text); err != nil {
				return err
			}
		}
		if err := cmd.Flags().Set(name, text); err != nil {
			return err
		}
	}
	return nil
}

// python is worker.FindPython, once for each name.
func (s *kernelServer) python(name string) (path, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.found[name]; ok {
		return found[0], found[1], nil
	}
	if path, version, err = worker.FindPython(name); err == nil {
		s.found[name] = [2]string{path, version}
	}
	return path, version, err
}
