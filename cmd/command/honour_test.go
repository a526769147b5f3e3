package command

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f for the root and all below it.
func everyCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		everyCommand(c, f)
	}
}

// refusal runs a command line that must be refused as a mistake of the
// caller's, and returns the message.
func refusal(t *testing.T, args ...string) string {
	t.Helper()
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	if err == nil {
		t.Errorf("plumb %s is taken", strings.Join(args, " "))
		return ""
	}
	if e, ok := err.(*exitError); ok {
		if e.code != exitUsage {
			t.Errorf("plumb %s ends with %d: %v", strings.Join(args, " "), e.code, e.err)
		}
		return e.err.Error()
	}
	return err.Error()
}

// TestFlagsThatCannotBeHonouredAreRefused: nothing that is asked for is
// ignored in silence.
func TestFlagsThatCannotBeHonouredAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	test := write("x.py", "@autotest()\ndef test_x():\n    return torch.relu(random_tensor())\n")
	saved := write("saved.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"a\", seed=1)\nx = tensor((2,), torch.float32, uniform(0.0, 1.0, key=1))\ny = torch.tanh(x)\n")
	marked := write("marked.py", "@profile(torch.relu)\ndef profile_x(test_case):\n    torch.relu(torch.ones(2))\n")
	list := write("margins.jsonl", `{"op":"a","part":"value","dtype":"float32","erring":[""],"count":1,"max":0.25,"join":1,"bins":[-352,1]}`)
	for _, c := range []struct{ args, want string }{
		// numbers that mean nothing
		{"graph run -n -3", "at least 1"},
		{"run -n 0", "at least 1"},
		{"run -j 0", "at least 1"},
		{"run --maxfail 0", "at least 1"},
		{"run --durations 0", "at least 1"},
		{"run --seed -1", "not negative"},
		{"run --set known.clean=-1", "known.clean=-1: want a whole number, at least 1"},
		{"run --set power=-1", "power=-1: want a whole number, at least 0"},
		{"run --set shrink.runs=x", "shrink.runs=x: want a whole number, at least 0"},
		{"run --set shrink.time=0s", "shrink.time=0s: want a positive duration"},
		{"run --set timeout=-1s", "timeout=-1s: want a positive duration"},
		{"run --set growth=much", "growth=much: want a size such as 32MB"},
		{"run --set tensor.max=0", "want a size such as 32MB"},
		{"run --set oracle=sometimes", "want off, on-mismatch or always"},
		{"run --set exceptions=", "want finding, rejection or strict"},
		{"run --set known.strict=maybe", "want true or false"},
		{"run --set findings=", "want a path or none"},
		{"run --set powers=1", "there is no setting \"powers\"; is it power?"},
		{"run --dtype int32", "want float16, bfloat16, float32 or float64"},
		{"run --tolerance 1,-1", "not negative"},
		{"ops run relu -n 0", "at least 1"},
		{"ops run relu -j 0", "at least 1"},
		{"ops cover run relu --out x -n 0", "at least 1"},
		{"ops gradcheck -n 0", "at least 1"},
		{"ops gradcheck -j 0", "at least 1"},
		{"selftest -n 0", "at least 1"},
		{"selftest -j 0", "at least 1"},
		{"selftest --prove -1", "at least 0"},
		{"conform gen x.py --out y -j 0", "at least 1"},
		{"conform gen x.py --out y --timeout 0s", "a positive duration"},
		{"conform gen x.py --out y --memory 0", "a size such as 32MB"},
		{"conform gen x.py --out y --truth half", "want "},
		{"conform run -j 0", "at least 1"},
		{"conform run --timeout 0s", "a positive duration"},
		{"conform run --compat other", "want diopi"},
		{"conform run --failure-debug-level 3", "want 0, 1 or 2"},
		{"conform run --tolerance loose", "want classes, config, both, autotest, exact, default or two numbers"},
		{"conform gen x.py --out y --stand-ins some", "want refused, always or never"},
		{"graph show " + test + " --case -1", "at least 0"},
		{"graph show " + test + " --debug 4", "want -1, 0, 1, 2 or 3"},
		{"graph show " + test + " --debug-passes 4", "want 0, 1, 2 or 3"},
		{"margins " + list + " --suggest --safety 0", "from 1 to"},
		{"profile " + test + " --count 0", "at least 1"},
		{"profile " + test + " --threads -1", "at least 0"},
		{"profile " + test + " --compare nosuch.json", "no such file"},
		{"profile " + test + " --reference native", "no function is marked"},
		{"profile " + test + " --reference recorded", "recorded cannot be measured: it holds results"},
		{"profile " + marked + " --reference native --python python3", "--python python3 has no effect"},
		{"bench cases -n 0", "at least 1"},
		{"bench cases --count 0", "at least 1"},
		{"bench cases -j 0", "at least 1"},
		{"bench draw -n 0", "at least 1"},
		{"bench kernels --count 0", "at least 1"},
		{"bench kernels --threads -1", "at least 0"},
		{"bench graph --count 0", "at least 1"},
		{"bench graph --threads -1", "at least 0"},
		{"bench compare --count 0", "at least 1"},
		{"bench conform --sample -1", "at least 0"},
		{"bench conform -j 0", "at least 1"},
		{"bench conform --limit 0", "a size such as 32MB"},
		// what is not here
		{"run " + test + " --reference native --device cuda", "--device cuda: native has no such device here"},
		{"run " + test + " --reference native --set oracle=always --candidate nosuch", "unknown backend"},
		{"run --reference recorded --set oracle=always", "a recorded reference cannot be asked"},
		// flags without what they are about
		{"run " + test + " --reference native --python python3", "--python python3 has no effect"},
		{"run " + test + " --reference native --import no_such", "--import no_such has no effect"},
		{"run " + saved + " --reference native -n 5", "-n has no effect"},
		{"run " + saved + " --reference native --dtype float64", "--dtype has no effect"},
		{"run " + saved + " --reference native --set tensor.max=1MB", "tensor.max has no effect"},
		{"run --reference recorded --dtype float64", "--dtype has no effect"},
		{"run --collect-only --junit x.xml", "--junit has no effect with --collect-only"},
		{"run --collect-only --record x", "--record has no effect with --collect-only"},
		{"run --collect-only --candidate native", "--candidate has no effect with --collect-only"},
		{"run --collect-only --tolerance exact", "--tolerance has no effect with --collect-only"},
		{"run --for 0s", "a positive duration"},
		{"run --for 3s -n 4", "--number has no effect with --for"},
		{"run --shapes some", "want few or any"},
		{"run " + saved + " --reference native --shapes few", "--shapes has no effect"},
		{"run --collect-only --for 3s", "--for has no effect with --collect-only"},
		{"bench subjects --tests 0", "at least 1"},
		{"run --lf --ff", "--lf has no effect with --ff"},
		{"run -x --maxfail 3", "--maxfail has no effect with --exitfirst"},
		{"run --report pdf=x", "want FORMAT=FILE, the format badge, gitlab, json, markdown, sarif"},
		{"run --report json=/no/such/x", "there is no directory"},
		{"run --collect-only --report json=x", "--report has no effect with --collect-only"},
		{"serve --listen nothing", "want HOST:PORT"},
		{"serve --listen 0.0.0.0:0", "give a --token or a --client-ca, or listen at 127.0.0.1"},
		{"serve --listen 0.0.0.0:0 --token short", "want at least 16"},
		{"run --json -v", "--verbose has no effect with --json"},
		{"run --json --durations 3", "--durations has no effect with --json"},
		{"run -q -v", "--verbose has no effect with --quiet"},
		{"kernel k.py::f --against torch.relu --gradgrad --no-grad", "--no-grad has no effect with --gradgrad"},
		{"kernel k.py::f --against torch.relu --gradgrad --grad", "--grad has no effect with --gradgrad"},
		{"kernel k.py::f --against torch.relu -q --time", "--time has no effect with --quiet"},
		{"run --junit=", "--junit is empty"},
		{"run --python=", "--python is empty"},
		{"ops run relu --device cpu", "unknown flag: --device"},
		{"ops run relu --set tensor.max=1MB", "does not use the setting tensor.max"},
		{"ops cover show --json --reasons", "--reasons has no effect with --json"},
		{"ops gradcheck --json -v", "--verbose has no effect with --json"},
		{"graph run --dtype float32", "unknown flag: --dtype"},
		{"graph show " + test + "::test_x --dot --debug 3", "--debug has no effect with --dot"},
		{"graph show " + test + "::test_x --dot --debug-passes 3", "--debug-passes has no effect with --dot"},
		{"run --collect-only -s", "--no-capture has no effect with --collect-only"},
		{"graph show " + test + "::test_x --without nosuch", "nosuch"},
		{"graph show " + saved + " --seed 3", "--seed has no effect"},
		{"bench graph --without nosuch", "nosuch"},
		{"bench graph --seed 1", "unknown flag: --seed"},
		{"bench compare --size 1KiB", "from 4KiB to 16GiB"},
		// graph modes that are not there
		{"graph run --reference native --candidate native:graph --check-graph", "--check-graph has no effect on native:graph: it runs every case in the mode graph already"},
		{"run " + test + " --reference native --candidate recorded --check-graph", "--check-graph: recorded has no graph mode"},
		// ranks
		{"run --reference native --ranks 0", "--ranks 0: not a number of ranks up to 64, nor a hierarchy such as 2x2"},
		{"run --reference native --candidate recorded --ranks 2", "--ranks has no effect: native, which runs over ranks, is no candidate"},
		{"graph show " + saved + " --sbp B", "--sbp needs --ranks"},
		{"graph show " + saved + " --ranks 2y", "want a number of ranks, or a hierarchy such as 2x2"},
		{"graph show " + saved + " --ranks 2 --dot", "--dot has no effect with --ranks"},
		{"graph show " + saved + " --ranks 2x2 --bandwidth 1", "--bandwidth: 1 numbers for 2 dimensions of ranks"},
		{"graph show " + saved + " --ranks 2x2 --sbp [B,B,B]", "--sbp [B, B, B]: 3 entries for 2 dimensions of ranks"},
		// given twice
		{"run --reference native --candidate native --candidate native", "--candidate native is given twice"},
		{"run --dtype float32 --dtype float32", "each once"},
		// arguments
		{"ops list x", "plumb ops list takes flags only, not \"x\""},
		{"bench kernels x", "plumb bench kernels takes flags only"},
		{"graph show", "plumb graph show needs one test, as FILE::TEST"},
		{"repro a b", "plumb repro takes one finding"},
		{"help nosuch", "there is no command or topic \"nosuch\""},
		{"help ops nosuch", "there is no command or topic \"ops nosuch\""},
		// files and folders
		{"run --junit " + dir, "is a directory; name a file in it"},
		{"run --record " + dir + "/no/such", "there is no directory " + dir + "/no"},
		{"run --known " + dir, "--known " + dir},
		{"run --reference native --set findings=" + test, "is a file; name a directory"},
		{"run " + test + " --reference native --set margins=" + dir, "--set margins: open " + dir},
		{"run " + test + " --python " + dir + " --reference torch", "name a Python that has torch with --python or $PLUMB_PYTHON"},
		{"ops cover run relu --out " + dir, "--out " + dir},
		{"ops cover show --from " + dir, "--from " + dir},
		{"repro --findings " + test, "is a file; name a directory"},
		{"repro x --zip " + dir, "--zip " + dir},
		{"known --file " + dir, "--file " + dir},
		{"run --html " + dir, "--html " + dir},
		{"run --color sometimes", "want auto, always or never"},
		{"run --collect-only --html page.html", "--html has no effect with --collect-only"},
		{"explain", "needs an ID, a test or an operator"},
		{"explain rellu --reference native", "no operator (is it relu?)"},
		{"docs man", "needs a folder"},
		{"tour now", "takes flags only"},
		{"conform run --html " + dir, "--html " + dir},
		{"conform run --summary " + dir, "--summary " + dir},
		{"conform run --baseline " + test, "--baseline " + test},
		{"conform run --device-config " + dir, "--device-config " + dir},
		{"conform run --store " + dir, "--store " + dir},
		{"conform gen x.py --out " + test, "--out " + test},
		{"conform history --store " + dir + "/none.db", "--store " + dir},
		{"conform run --filter-dtype nosuch", "no dtype is named nosuch"},
		{"conform run --model-file " + test, "--model-file needs --model"},
		{"conform list --model-file " + test, "--model-file needs --model or --models"},
		{"conform run --json --failure-debug-level 1", "--failure-debug-level has no effect with --json"},
		{"conform run --timeout 3s", "--timeout has no effect"},
		{"conform gen --out y --from " + dir + " --seed 3", "--seed has no effect with --from"},
		{"conform gen x.py --out y --from " + dir, "--from " + dir + " has the config: leave x.py out"},
		{"conform gen --out y --from " + dir, "is no baseline"},
		{"conform run --before " + test, "--before needs --html or --markdown or --summary"},
		{"conform run --model-configs " + dir, "--model-configs needs --model"},
		{"conform expand x.py --dropped --diff " + test, "--diff has no effect with --dropped"},
		{"conform expand x.py --model-file " + test, "--model-file needs --model"},
		{"run " + test + " --reference native --set timeout=3s", "--set timeout has no effect"},
		{"run " + test + " --reference native --set growth=1GB", "--set growth has no effect"},
		{"run " + test + " --reference native --set shrink.runs=0 --set shrink.time=3s", "--set shrink.time has no effect with --set shrink.runs=0"},
		{"run " + test + " --reference native --known none --set known.clean=4", "--set known.clean has no effect with --known none"},
		{"run --collect-only --seed 3", "--seed has no effect with --collect-only"},
		{"run --collect-only --set power=1", "--set has no effect with --collect-only"},
		{"run --collect-only --device cuda", "--device has no effect with --collect-only"},
		{"selftest --json -v", "--verbose has no effect with --json"},
		{"selftest --set power=1", "does not use the setting power"},
		{"selftest --reference native --python python3", "--python python3 has no effect"},
		{"margins " + list + " --safety 5", "--safety needs --suggest"},
		{"repro --run", "--run needs a finding"},
		{"repro --zip x.zip", "--zip needs a finding"},
		{"repro x --zip x.zip --run", "--run has no effect with --zip"},
		{"repro x --python python3", "--python needs --run"},
		{"repro x --run --after " + test, "--after needs --as plumb"},
		{"repro x --run --plumb y", "--plumb needs --as native"},
		{"repro x --as nosuch", "want torch, native, plumb or torch_candidate"},
		{"repro x --run --as native --python python3", "--python needs --as torch or --as plumb"},
		{"conform run --json -v", "--verbose has no effect with --json"},
		{"conform run --nhwc-min-dim 4", "--nhwc-min-dim needs --nhwc"},
		{"conform run --forward --backward", "--backward has no effect with --forward"},
		{"conform run --python python3", "--python python3 has no effect"},
		{"conform gen " + test + " --out y --reference native --python python3", "--python python3 has no effect"},
		{"conform list --python python3", "--python needs --candidate"},
		{"version --python python3", "--python needs --blas"},
		{"campaign run --unit 0", "at least 1"},
		{"campaign run --set timeout=3s --reference native", "--set timeout has no effect"},
		{"campaign run --set power=1", "does not use the setting power"},
		{"campaign run --candidate native --candidate native", "--candidate native is given twice"},
		{"campaign status a b", "plumb campaign status takes one campaign"},
		{"campaign status --store " + dir + "/none.db", "--store " + dir},
		{"campaign serve --lease 0s", "a positive duration"},
		{"campaign serve --nats nats://127.0.0.1:1 --listen 127.0.0.1:2", "--listen has no effect with --nats"},
		{"campaign serve --tls-cert " + test, "--tls-cert needs --tls-key"},
		{"campaign serve --ca " + test, "--ca needs --nats"},
		{"worker --give-up 0s", "a positive duration"},
		{"worker --join nats://192.0.2.1:4222", "is not loopback: it needs tls://"},
		{"db export last --format xml", "want csv, jsonl or parquet"},
		{"db check --store " + dir, "--store " + dir},
		{"config nosuch", "there is no command \"nosuch\" with flags"},
		{"bench campaign --kills 0", "at least 1"},
		{"bench campaign --rows 0", "at least 1"},
		{"bench campaign --workers 0", "at least 1"},
		{"bench campaign --lanes 1", "at least 2"},
		{"bench campaign --lanes 2 --rows 9", "--rows has no effect with --lanes"},
		{"bench campaign --lanes 99999", "--lanes 99999: this machine has "},
	} {
		if got := refusal(t, strings.Fields(c.args)...); !strings.Contains(got, c.want) {
			t.Errorf("plumb %s: %q, want %q in it", c.args, got, c.want)
		}
	}
}

// TestEveryFlagRefusesNonsense: a flag that is not free text takes no other.
func TestEveryFlagRefusesNonsense(t *testing.T) {
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		shown, most := 0, 30
		switch cmd.CommandPath() { // what they are told are promises, modes and reports, in groups
		case "plumb run", "plumb ops run":
			most = 35
		case "plumb kernel", "plumb conform run":
			most = 34
		case "plumb campaign serve": // what a campaign is, who may come, and what is written
			most = 36
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				shown++
			}
			switch f.Value.Type() {
			case "string", "strings", "stringSlice", "stringArray", "file", "folder":
				return
			}
			if err := f.Value.Set("no such value"); err == nil {
				t.Errorf("%s --%s takes any text", cmd.CommandPath(), f.Name)
			}
			if strings.HasPrefix(f.Value.Type(), "int") && f.Value.Set("-1") == nil {
				t.Errorf("%s --%s takes -1", cmd.CommandPath(), f.Name)
			}
		})
		if shown > most {
			t.Errorf("%s --help shows %d flags", cmd.CommandPath(), shown)
		}
	})
}

// TestEveryCommandHasAnExample: help shows how each is called.
func TestEveryCommandHasAnExample(t *testing.T) {
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && !cmd.Hidden && cmd.Deprecated == "" && cmd.Example == "" && cmd.Name() != "help" {
			t.Errorf("%s --help has no example", cmd.CommandPath())
		}
	})
}

// TestCommandsSayWhatArgumentsTheyTake: none takes arguments that it ignores.
func TestCommandsSayWhatArgumentsTheyTake(t *testing.T) {
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Args == nil && !strings.ContainsAny(cmd.Use, "…|") {
			t.Errorf("%s takes any argument", cmd.CommandPath())
		}
	})
}

// TestSignalsEndCommands: SIGINT and SIGTERM end a command that reads what
// never comes, and one that computes.
func TestSignalsEndCommands(t *testing.T) {
	slow(t)
	if runtime.GOOS != "linux" {
		t.Skip("needs FIFOs")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	plumb := filepath.Join(dir, "plumb")
	if err := os.Symlink(exe, plumb); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := exec.Command(plumb, "--help").Run(); err != nil {
		t.Fatal(err)
	}
	listens := 500*time.Millisecond + 4*time.Since(begun) // two processes start
	for _, args := range [][]string{
		{"repro", fifo},
		{"ops", "gradcheck", "-n", "100000", "conv*"},
		{"run", "--reference", "native", "-n", "100000"},
	} {
		for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			cmd := exec.Command(plumb, args...)
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			time.Sleep(listens)
			_ = cmd.Process.Signal(sig)
			select {
			case <-ended:
				if code := cmd.ProcessState.ExitCode(); code != exitFault {
					t.Errorf("plumb %v after %v ends with %d", args, sig, code)
				}
			case <-time.After(time.Minute):
				_ = cmd.Process.Kill()
				t.Errorf("plumb %v goes on after %v", args, sig)
			}
		}
	}
}

// TestWhatIsNoFileIsRefused: a FIFO, a device and a folder are no test files.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if runtime.GOOS == "linux" {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"run %s --reference native", "graph show %s", "margins %s", "ops cover show --from %s", "conform expand %s", "run --reference native --known %s"} {
			if got := refusal(t, strings.Fields(strings.ReplaceAll(command, "%s", fifo))...); !strings.Contains(got, "is a FIFO") {
				t.Errorf("%s: %s", command, got)
			}
		}
		if got := refusal(t, "run", "/dev/zero", "--reference", "native"); !strings.Contains(got, "is not a regular file") {
			t.Error(got)
		}
	}
	large := filepath.Join(dir, "large.py")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<30); err != nil {
		t.Fatal(err)
	}
	if got := refusal(t, "run", large, "--reference", "native"); !strings.Contains(got, "is larger than 256 MiB") {
		t.Error(got)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Skip(err)
	}
	if got := refusal(t, "run", loop, "--reference", "native"); !strings.Contains(got, "open "+loop) {
		t.Error(got)
	}
}
