package record

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// startService starts the service program and waits until it has set itself up.
func startService(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "RECORD_TEST_PROGRAM=service")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the service says %q", line)
	}
	return cmd
}

func TestAttach(t *testing.T) {
	needRoot(t)
	cmd := startService(t)
	out := &events{}
	foot, err := Run(context.Background(), Options{
		PID: cmd.Process.Pid, For: 1500 * time.Millisecond, Method: trace.MethodRoot, sink: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := out.list[0]; e.Kind != trace.KindExec || e.A != 0 || !strings.Contains(e.Name, "/") {
		t.Errorf("first event %+v", e)
	}
	var mapped, resident, faults uint64
	for _, e := range out.list {
		switch {
		case e.Kind == trace.KindMapAt && e.A == arena && e.B == arena+1024*pg:
			mapped++
		case e.Kind == trace.KindResident && e.A >= arena && e.A < arenaEnd:
			resident += e.B
			if mm.Access(e.C)&mm.Write == 0 {
				t.Errorf("a written page is told as only read: %+v", e)
			}
		case e.Kind == trace.KindFault && e.A >= arena && e.A < arenaEnd:
			faults++
		}
	}
	// The 16 pages may lie in one folio of the host's choice, larger than they are.
	if mapped != 1 || resident < 16 || faults == 0 || resident+faults < 1024-512 {
		t.Errorf("%d maps, %d pages present, %d faults; want the map, 16 and the rest of 1024", mapped, resident, faults)
	}
	if !strings.Contains(strings.Join(foot.Notes, "\n"), "page faults and") || foot.Interrupted || foot.Lost != 0 {
		t.Errorf("footer %+v", foot)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the service did not survive: %v", err)
	}
}

func TestAttachToNothing(t *testing.T) {
	needRoot(t)
	_, err := Run(context.Background(), Options{PID: 1 << 22, For: time.Second, Method: trace.MethodRoot, sink: &events{}})
	if err == nil || !strings.Contains(err.Error(), "4194304") {
		t.Errorf("error %v, want one that names the process", err)
	}
}
