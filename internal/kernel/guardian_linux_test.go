package kernel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Guardian()
	if os.Getenv("KERNEL_TEST_CHANGER") != "" {
		os.Exit(changer())
	}
	os.Exit(m.Run())
}

// changer is a process that changes settings as fast as it can until somebody
// ends it, as KERNEL_TEST_CHANGER says: "dir root how".
func changer() int {
	w := strings.Fields(os.Getenv("KERNEL_TEST_CHANGER"))
	s, err := Take(context.Background(), SessionOptions{Command: "changer", dir: w[0], root: w[1]})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.guard.cmd.Process.Pid)
	for i := uint64(0); ; i++ {
		if err := changeAll(s, i); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if w[2] == "panic" && i == 3 {
			panic("as asked")
		}
		if w[2] == "exit" && i == 3 {
			return 0
		}
	}
}

// changeAll is one round of changes to everything there is.
func changeAll(s *Session, i uint64) error {
	base, err := s.Before().Policy(s.Sizes())
	if err != nil {
		return err
	}
	specs := []string{
		"never,max_ptes_none=%d,hugetlb_2m=0", "64k=always,max_ptes_none=%d,hugetlb_2m=8,min_free_kbytes=20000",
		"thp+64k,scan_sleep_ms=%d,hugetlb_2m=3,overcommit_2m=2",
		"default,pages_to_scan=%d,hugetlb_2m=16,min_free_kbytes=90000",
	}
	h, err := ParseHostSettings(base, fmt.Sprintf(specs[i%4], i%500+1), s.Sizes())
	if err != nil {
		return err
	}
	return s.ApplyHost(h)
}

// startChanger starts a changer and returns when it has taken the lock.
func startChanger(t *testing.T, dir, root, how string) (cmd *exec.Cmd, guard int) {
	t.Helper()
	cmd = exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "KERNEL_TEST_CHANGER="+dir+" "+root+" "+how)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if guard, _ = strconv.Atoi(strings.TrimSpace(line)); guard == 0 {
		cmd.Process.Kill()
		t.Fatalf("changer: %q, %v", line, err)
	}
	return cmd, guard
}

// free waits until nobody holds the lock of dir.
func free(t *testing.T, dir string) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	l, err := takeLock(ctx, dir+"/hugelab.lock", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	l.release()
}

// realSettings holds the machine's lock for a test that changes real settings,
// and skips where that is not possible. A test that fails leaves nothing
// behind either.
func realSettings(t *testing.T) Values {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: changes the machine's settings")
	}
	if err := CanChange(); err != nil {
		t.Skip(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	l, err := takeLock(ctx, "/run/hugelab.lock", "a test of settings", nil)
	if err != nil {
		t.Skip(err)
	}
	old, err := ReadValues("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := old.reach("/"); err != nil {
			t.Error(err)
		}
		l.say("")
		l.release()
	})
	return old
}

// rounds is how often a test of kills repeats; HUGELAB_KILLS sets it.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("HUGELAB_KILLS")); err == nil {
		return n
	}
	return few
}

// killAtRandom kills changers at random moments and holds the settings to what
// they were, each time within a second.
func killAtRandom(t *testing.T, root string, n int) {
	old, err := ReadValues(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	var worst time.Duration
	changed := 0
	for i := range n {
		cmd, _ := startChanger(t, dir, root, "loop")
		time.Sleep(time.Duration(rng.IntN(100_000)) * time.Microsecond)
		mid, _ := ReadValues(root)
		if !maps.Equal(mid, old) {
			changed++
		}
		start := time.Now()
		cmd.Process.Kill()
		cmd.Wait()
		free(t, dir)
		took := time.Since(start)
		worst = max(worst, took)
		now, err := ReadValues(root)
		if err != nil || !maps.Equal(now, old) {
			t.Fatalf("kill %d: %v: %s", i, err, cmp.Diff(old, now))
		}
		if took > time.Second {
			t.Errorf("kill %d: back after %v", i, took)
		}
		if _, err := os.Stat(filepath.Join(dir, "hugelab", activeName)); err == nil {
			t.Errorf("kill %d: the journal is still there", i)
		}
	}
	if changed == 0 {
		t.Error("no kill fell on changed settings: the test tests nothing")
	}
	t.Logf("%d kills, %d of them on changed settings: all back, after at most %v", n, changed, worst)
}

func TestKillFake(t *testing.T) { killAtRandom(t, fakeTree(t), 5) }

func TestKillReal(t *testing.T) {
	realSettings(t)
	killAtRandom(t, "/", rounds(5))
}

// killBoth kills hugelab and its guardian; the next to come restores.
func killBoth(t *testing.T, root string, n int) {
	old, err := ReadValues(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	changed := 0
	for i := range n {
		cmd, guard := startChanger(t, dir, root, "loop")
		time.Sleep(time.Duration(rng.IntN(100_000)) * time.Microsecond)
		unix.Kill(guard, unix.SIGKILL)
		cmd.Process.Kill()
		cmd.Wait()
		free(t, dir)
		if mid, _ := ReadValues(root); !maps.Equal(mid, old) {
			changed++
		}
		if _, err := RestoreKept(context.Background(), SessionOptions{dir: dir, root: root}); err != nil {
			t.Fatal(err)
		}
		if now, err := ReadValues(root); err != nil || !maps.Equal(now, old) {
			t.Fatalf("kill %d: %v: %s", i, err, cmp.Diff(old, now))
		}
	}
	if changed == 0 {
		t.Error("no kill left anything changed: the test tests nothing")
	}
	t.Logf("%d kills of both, %d left settings changed: all restored", n, changed)
}

func TestKillBothFake(t *testing.T) { killBoth(t, fakeTree(t), 3) }

func TestKillBothReal(t *testing.T) {
	realSettings(t)
	killBoth(t, "/", rounds(15)/5)
}

// TestEndings: whatever way hugelab ends, the settings come back.
func TestEndings(t *testing.T) {
	for _, how := range []string{"panic", "exit"} {
		root, dir := fakeTree(t), t.TempDir()
		old := readFake(t, root)
		cmd, _ := startChanger(t, dir, root, how)
		cmd.Wait()
		free(t, dir)
		if now := readFake(t, root); !maps.Equal(now, old) {
			t.Errorf("%s: %s", how, cmp.Diff(old, now))
		}
	}
}

// session takes a session on a fake tree.
func session(t *testing.T, dir, root string) *Session {
	t.Helper()
	s, err := Take(context.Background(), SessionOptions{Command: "a test", dir: dir, root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Restore() })
	return s
}

func never(t *testing.T, s *Session) mm.Policy {
	t.Helper()
	p, err := s.Before().Policy(s.Sizes())
	if err == nil {
		p, err = mm.NamedPolicy("never", p, s.Sizes())
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSessionRestores(t *testing.T) {
	root, dir := fakeTree(t), t.TempDir()
	old := readFake(t, root)
	s := session(t, dir, root)
	if err := s.Apply(never(t, s)); err != nil {
		t.Fatal(err)
	}
	now := readFake(t, root)
	if now[thpDir+"/enabled"] != "never" || now[thpDir+"/hugepages-2048kB/enabled"] != "never" {
		t.Errorf("applied: %v", now)
	}
	for range 2 { // the second does nothing
		if err := s.Restore(); err != nil {
			t.Fatal(err)
		}
	}
	if now := readFake(t, root); !maps.Equal(now, old) {
		t.Error(cmp.Diff(old, now))
	}
	free(t, dir)
}

// TestGuardianDies: the parent puts the settings back itself.
func TestGuardianDies(t *testing.T) {
	root, dir := fakeTree(t), t.TempDir()
	old := readFake(t, root)
	s := session(t, dir, root)
	if err := s.Apply(never(t, s)); err != nil {
		t.Fatal(err)
	}
	unix.Kill(s.guard.cmd.Process.Pid, unix.SIGKILL)
	if err := s.Restore(); err != nil {
		t.Fatal(err)
	}
	if now := readFake(t, root); !maps.Equal(now, old) {
		t.Error(cmp.Diff(old, now))
	}
}

// TestKeep: two permanent changes, and one restore that goes back before both.
func TestKeep(t *testing.T) {
	root, dir := fakeTree(t), t.TempDir()
	old := readFake(t, root)
	for _, want := range []Values{{thpDir + "/enabled": "always"}, {minFree: "1000"}} {
		s := session(t, dir, root)
		if err := s.Set(want); err != nil {
			t.Fatal(err)
		}
		if err := s.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	if now := readFake(t, root); now[thpDir+"/enabled"] != "always" || now[minFree] != "1000" {
		t.Errorf("kept: %v", now)
	}
	changes, err := RestoreKept(context.Background(), SessionOptions{dir: dir, root: root})
	if err != nil || len(changes) != 2 {
		t.Errorf("restore: %v, %v", changes, err)
	}
	if now := readFake(t, root); !maps.Equal(now, old) {
		t.Error(cmp.Diff(old, now))
	}
}

// TestApplyUndoes: a file that refuses makes the whole change undone.
func TestApplyUndoes(t *testing.T) {
	root, dir := fakeTree(t), t.TempDir()
	s := session(t, dir, root)
	bad := filepath.Join(root, minFree)
	old := readFake(t, root)
	// min_free_kbytes is written last. A program's own command line refuses
	// writes, also root's.
	if err := errors.Join(os.Remove(bad), os.Symlink("/proc/self/cmdline", bad)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, thpDir, "enabled")
	err := s.Set(Values{thpDir + "/enabled": "always", minFree: "9"})
	if err == nil || !strings.Contains(err.Error(), "min_free_kbytes") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if b, _ := os.ReadFile(file); chosen(string(b)) != old[thpDir+"/enabled"] {
		t.Errorf("enabled is %s after the undo", b)
	}
	if err := errors.Join(os.Remove(bad), os.WriteFile(bad, []byte(old[minFree]), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// TestHeld: a second one is told who holds the lock, and gets it afterwards.
func TestHeld(t *testing.T) {
	root, dir := fakeTree(t), t.TempDir()
	s := session(t, dir, root)
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	told := ""
	o := SessionOptions{dir: dir, root: root, Waiting: func(who string) { told = who }}
	_, err := Take(ctx, o)
	var held *HeldError
	want := fmt.Sprintf("process %d: a test", os.Getpid())
	if !errors.As(err, &held) || held.Holder != want || told != want {
		t.Fatalf("%v, told %q, want %q", err, told, want)
	}
	done := make(chan error, 1)
	go func() {
		second, err := Take(context.Background(), o)
		if err == nil {
			err = second.Restore()
		}
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if err := s.Restore(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestJournalOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	j := newJournal("x\ny", Values{minFree: "1"})
	if err := j.write(dir, keptName); err != nil {
		t.Fatal(err)
	}
	if got, err := loadJournal(dir, keptName); err != nil || got.command != "x y" || got.old[minFree] != "1" {
		t.Errorf("%+v, %v", got, err)
	}
	j.boot = "another"
	if err := j.write(dir, keptName); err != nil {
		t.Fatal(err)
	}
	if j, err := loadJournal(dir, keptName); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%+v, %v", j, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestStart: the command runs after Release only, with huge pages as before
// Take, and at fixed addresses where asked.
func TestStart(t *testing.T) {
	thpOff()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	script := "grep THP_enabled /proc/self/status; cat /proc/self/personality; exit 3"
	s, err := Start(StartOptions{Command: []string{"sh", "-c", script}, Stdout: w, FixedAddresses: true})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(r)
	st, err := s.Wait()
	if err != nil || st.ExitCode() != 3 {
		t.Errorf("%v, %v", st, err)
	}
	got := strings.Fields(string(out))
	if len(got) != 3 || got[1] != fmt.Sprint(1-min(thpWasOff, 1)) || !strings.HasPrefix(got[2], "0004") {
		t.Errorf("got %q", got)
	}
	var se *StartError
	_, err = Start(StartOptions{Command: []string{"/nonexistent/x"}})
	if !errors.As(err, &se) || se.Code != 127 {
		t.Errorf("%v", err)
	}
}
