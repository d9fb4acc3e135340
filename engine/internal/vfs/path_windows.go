package vfs

import (
	"strings"

	"syscall"
)

// longPath is the absolute path with the prefix that takes away the limit of
// 260 characters, and the meaning of names such as NUL or COM1.
func longPath(path string) (string, error) {
	full, err := syscall.FullPath(path)
	switch {
	case err != nil:
		return "", err
	case strings.HasPrefix(full, `\\?\`) || strings.HasPrefix(full, `\\.\`):
		return full, nil
	case strings.HasPrefix(full, `\\`):
		return `\\?\UNC\` + full[2:], nil
	default:
		return `\\?\` + full, nil
	}
}

// shareAll lets others read, write, rename and remove what is open here.
const shareAll = syscall.FILE_SHARE_READ | syscall.FILE_SHARE_WRITE | syscall.FILE_SHARE_DELETE

// Rights that package syscall does not name.
const (
	fileAddFile        = 0x2  // FILE_ADD_FILE: make files in a folder
	fileReadAttributes = 0x80 // FILE_READ_ATTRIBUTES
)

// openHandle opens a file, or a folder too, which the caller has to tell apart.
func openHandle(path string, access, share, create, flags uint32) (syscall.Handle, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return syscall.InvalidHandle, err
	}
	return syscall.CreateFile(name, access, share, nil, create, flags|syscall.FILE_FLAG_BACKUP_SEMANTICS, 0)
}

// information is what the system knows about an open file.
func information(handle syscall.Handle) (syscall.ByHandleFileInformation, error) {
	var info syscall.ByHandleFileInformation
	err := syscall.GetFileInformationByHandle(handle, &info)
	return info, err
}

func has(info syscall.ByHandleFileInformation, attribute uint32) bool {
	return info.FileAttributes&attribute != 0
}

func sizeOf(info syscall.ByHandleFileInformation) int64 {
	return int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow)
}
