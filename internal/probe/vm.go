package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// qemuFor names QEMU's program for an architecture of Go's.
func qemuFor(arch string) string {
	switch arch {
	case "amd64":
		return "qemu-system-x86_64"
	case "arm64":
		return "qemu-system-aarch64"
	case "riscv64", "ppc64", "s390x", "loongarch64":
		return "qemu-system-" + arch
	}
	return ""
}

func qemu(h Host) Check {
	name := qemuFor(h.Facts.Arch)
	if name == "" {
		return unknown("which program emulates "+h.Facts.Arch+" is not known", "")
	}
	path, err := h.LookPath(name)
	if err != nil {
		return no(name+" is not in PATH", "install your system's package of QEMU")
	}
	return yes(path)
}

// kernelImage looks for an image that a virtual machine could boot. On some
// distributions images in /boot can be read by root only.
func kernelImage(h Host) Check {
	entries, err := fs.ReadDir(h.FS, "boot")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return no("/boot: "+err.Error(), "give an image with a path of your own")
	}
	var readable, closed []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "vmlinuz") && !strings.HasPrefix(e.Name(), "Image") {
			continue
		}
		f, err := h.FS.Open("boot/" + e.Name())
		if err != nil {
			closed = append(closed, "/boot/"+e.Name())
			continue
		}
		f.Close()
		readable = append(readable, "/boot/"+e.Name())
	}
	slices.Sort(readable)
	switch {
	case len(readable) > 0:
		return yes(strings.Join(readable, " "))
	case len(closed) > 0:
		return no(closed[0]+" cannot be read", "sudo chmod a+r "+closed[0])
	}
	return no("no image in /boot", "install a kernel package, or give an image with a path of your own")
}

func kvm(h Host) Check {
	err := h.KVM()
	switch {
	case err == nil:
		return yes("/dev/kvm makes virtual machines")
	case errors.Is(err, fs.ErrNotExist):
		return no("no /dev/kvm: guests run, but emulated, which is far slower", "")
	case errors.Is(err, fs.ErrPermission):
		return no("/dev/kvm may not be opened: guests are emulated", "sudo usermod -aG kvm $USER, then log in again")
	}
	return no(fmt.Sprintf("/dev/kvm is there but does not work: %v", err), "")
}
