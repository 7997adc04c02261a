package kernel

import (
	"os"

	"golang.org/x/sys/unix"
)

// readTracefs reads a file of tracefs through an instance that is attached
// nowhere, for machines that have not mounted it. It needs root.
func readTracefs(name string) ([]byte, error) {
	fsfd, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fsfd)
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return nil, err
	}
	mnt, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(mnt)
	fd, err := unix.Openat(mnt, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	b := make([]byte, 64)
	n, err := f.Read(b)
	return b[:n], err
}
