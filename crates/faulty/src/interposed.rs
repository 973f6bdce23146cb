// SPDX-License-Identifier: PostgreSQL
//! The libc functions that a plan may make fail. Each has the name and arguments of the libc function.

use crate::plan::{judge, Call, CallVerdict};
use crate::unsynced;
use libc::{
    c_char, c_int, c_long, c_uint, c_void, iovec, mode_t, off64_t, size_t, ssize_t, AT_FDCWD,
};
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Makes the linker include this module, because nothing else refers to its functions before libc is searched.
pub fn link() {
    black_box([
        open as *const (),
        open64 as *const (),
        openat as *const (),
        openat64 as *const (),
        read as *const (),
        pread as *const (),
        pread64 as *const (),
        readv as *const (),
        write as *const (),
        pwrite as *const (),
        pwrite64 as *const (),
        writev as *const (),
        fsync as *const (),
        fdatasync as *const (),
        ftruncate as *const (),
        ftruncate64 as *const (),
        rename as *const (),
        renameat as *const (),
        link_ as *const (),
        linkat as *const (),
        unlink as *const (),
        unlinkat as *const (),
        rmdir as *const (),
        mkdir as *const (),
        mkdirat as *const (),
        mmap as *const (),
        mmap64 as *const (),
        statvfs as *const (),
        statvfs64 as *const (),
        fstatvfs as *const (),
        fstatvfs64 as *const (),
    ]);
}

fn set_errno(errno: c_int) {
    // SAFETY: libc returns the address of this thread's errno, which is always valid.
    unsafe { *libc::__errno_location() = errno };
}

fn failed(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

fn is_standard(fd: c_int) -> bool {
    (0..=2).contains(&fd)
}

/// Makes the real call.
macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: the caller of the interposed function guarantees that the arguments, which are passed on, are valid.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

/// Makes the call unless the plan makes it fail.
macro_rules! unless_faulty {
    ($name:literal, $kind:expr, $changes:expr, $call:expr) => {
        match judge($name, $kind, $changes, 0) {
            CallVerdict::Fail(errno) => failed(errno) as _,
            _ => $call as _,
        }
    };
}

fn opened(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    let changes =
        flags & (libc::O_CREAT | libc::O_TRUNC) != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
    let fd: c_int = unless_faulty!(
        "open",
        Call::Open,
        changes,
        call!(SYS_openat, directory, path, flags | libc::O_LARGEFILE, mode)
    );
    if fd >= 0 && flags & libc::O_TRUNC != 0 {
        unsynced::truncated(fd, 0);
    }
    fd
}

// `open` is variadic. On the supported platforms (x86-64 and arm64 Linux), a third argument is passed like an
// ordinary one, and if there is none, the kernel ignores whatever is in its place.

/// See open(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(AT_FDCWD, path, flags, mode)
}

/// See open(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(AT_FDCWD, path, flags, mode)
}

/// See openat(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn openat(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    opened(directory, path, flags, mode)
}

/// See openat(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn openat64(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    opened(directory, path, flags, mode)
}

/// See read(2).
///
/// # Safety
/// `to` must have space for `length` bytes.
#[no_mangle]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, length: size_t) -> ssize_t {
    if is_standard(fd) {
        return call!(SYS_read, fd, to, length) as ssize_t;
    }
    unless_faulty!("read", Call::Read, false, call!(SYS_read, fd, to, length))
}

/// See pread(2).
///
/// # Safety
/// `to` must have space for `length` bytes.
#[no_mangle]
pub unsafe extern "C" fn pread(fd: c_int, to: *mut c_void, length: size_t, at: off64_t) -> ssize_t {
    unless_faulty!("pread", Call::Read, false, call!(SYS_pread64, fd, to, length, at))
}

/// See pread(2).
///
/// # Safety
/// `to` must have space for `length` bytes.
#[no_mangle]
pub unsafe extern "C" fn pread64(
    fd: c_int,
    to: *mut c_void,
    length: size_t,
    at: off64_t,
) -> ssize_t {
    unless_faulty!("pread", Call::Read, false, call!(SYS_pread64, fd, to, length, at))
}

/// See readv(2).
///
/// # Safety
/// Each of the `count` vectors must have space for its length.
#[no_mangle]
pub unsafe extern "C" fn readv(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
    unless_faulty!("readv", Call::Read, false, call!(SYS_readv, fd, vectors, count))
}

/// Writes as much as the plan allows. `make` writes this many bytes.
fn written(
    name: &'static str,
    fd: c_int,
    length: size_t,
    make: impl Fn(size_t) -> c_long,
) -> ssize_t {
    if is_standard(fd) {
        return make(length) as ssize_t;
    }
    match judge(name, Call::Write, true, length) {
        CallVerdict::Fail(errno) => failed(errno) as ssize_t,
        CallVerdict::Make => {
            unsynced::written(fd);
            make(length) as ssize_t
        }
        CallVerdict::Part { bytes, then } => {
            unsynced::written(fd);
            let done = make(bytes) as ssize_t;
            match then {
                Some(errno) => failed(errno) as ssize_t,
                None => done,
            }
        }
    }
}

/// See write(2).
///
/// # Safety
/// `from` must have `length` bytes.
#[no_mangle]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, length: size_t) -> ssize_t {
    written("write", fd, length, |length| call!(SYS_write, fd, from, length))
}

/// See pwrite(2).
///
/// # Safety
/// `from` must have `length` bytes.
#[no_mangle]
pub unsafe extern "C" fn pwrite(
    fd: c_int,
    from: *const c_void,
    length: size_t,
    at: off64_t,
) -> ssize_t {
    written("pwrite", fd, length, |length| call!(SYS_pwrite64, fd, from, length, at))
}

/// See pwrite(2).
///
/// # Safety
/// `from` must have `length` bytes.
#[no_mangle]
pub unsafe extern "C" fn pwrite64(
    fd: c_int,
    from: *const c_void,
    length: size_t,
    at: off64_t,
) -> ssize_t {
    written("pwrite", fd, length, |length| call!(SYS_pwrite64, fd, from, length, at))
}

/// See writev(2). One vector is written at a time, which the manual permits.
///
/// # Safety
/// Each of the `count` vectors must have the bytes of its length.
#[no_mangle]
pub unsafe extern "C" fn writev(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
    if is_standard(fd) {
        return call!(SYS_writev, fd, vectors, count) as ssize_t;
    }
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: `vectors` has `count` elements.
        let vector = unsafe { &*vectors.add(at) };
        if vector.iov_len > 0 {
            return written("writev", fd, vector.iov_len, |length| {
                call!(SYS_write, fd, vector.iov_base, length)
            });
        }
    }
    0
}

/// See fsync(2).
///
/// # Safety
/// As any function that takes a descriptor.
#[no_mangle]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    let done = unless_faulty!("fsync", Call::Sync, true, call!(SYS_fsync, fd));
    if done == 0 {
        unsynced::synced(fd);
    }
    done
}

/// See fdatasync(2).
///
/// # Safety
/// As any function that takes a descriptor.
#[no_mangle]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    let done = unless_faulty!("fdatasync", Call::Sync, true, call!(SYS_fdatasync, fd));
    if done == 0 {
        unsynced::synced(fd);
    }
    done
}

fn truncated(fd: c_int, length: off64_t) -> c_int {
    let done = unless_faulty!("ftruncate", Call::Truncate, true, call!(SYS_ftruncate, fd, length));
    if done == 0 {
        unsynced::truncated(fd, length);
    }
    done
}

/// See ftruncate(2).
///
/// # Safety
/// As any function that takes a descriptor.
#[no_mangle]
pub unsafe extern "C" fn ftruncate(fd: c_int, length: off64_t) -> c_int {
    truncated(fd, length)
}

/// See ftruncate(2).
///
/// # Safety
/// As any function that takes a descriptor.
#[no_mangle]
pub unsafe extern "C" fn ftruncate64(fd: c_int, length: off64_t) -> c_int {
    truncated(fd, length)
}

/// See rename(2).
///
/// # Safety
/// Both must be null-terminated strings.
#[no_mangle]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    unless_faulty!(
        "rename",
        Call::Rename,
        true,
        call!(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)
    )
}

/// See renameat(2).
///
/// # Safety
/// Both must be null-terminated strings.
#[no_mangle]
pub unsafe extern "C" fn renameat(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
) -> c_int {
    unless_faulty!(
        "renameat",
        Call::Rename,
        true,
        call!(SYS_renameat2, from_directory, from, to_directory, to, 0)
    )
}

/// See link(2).
///
/// # Safety
/// Both must be null-terminated strings.
#[export_name = "link"]
pub unsafe extern "C" fn link_(from: *const c_char, to: *const c_char) -> c_int {
    unless_faulty!("link", Call::Rename, true, call!(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0))
}

/// See linkat(2).
///
/// # Safety
/// Both must be null-terminated strings.
#[no_mangle]
pub unsafe extern "C" fn linkat(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    unless_faulty!(
        "linkat",
        Call::Rename,
        true,
        call!(SYS_linkat, from_directory, from, to_directory, to, flags)
    )
}

/// See unlink(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    unless_faulty!("unlink", Call::Remove, true, call!(SYS_unlinkat, AT_FDCWD, path, 0))
}

/// See unlinkat(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    unless_faulty!("unlinkat", Call::Remove, true, call!(SYS_unlinkat, directory, path, flags))
}

/// See rmdir(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    unless_faulty!(
        "rmdir",
        Call::Remove,
        true,
        call!(SYS_unlinkat, AT_FDCWD, path, libc::AT_REMOVEDIR)
    )
}

/// See mkdir(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    unless_faulty!("mkdir", Call::MakeDirectory, true, call!(SYS_mkdirat, AT_FDCWD, path, mode))
}

/// See mkdirat(2).
///
/// # Safety
/// `path` must be a null-terminated string.
#[no_mangle]
pub unsafe extern "C" fn mkdirat(directory: c_int, path: *const c_char, mode: mode_t) -> c_int {
    unless_faulty!("mkdirat", Call::MakeDirectory, true, call!(SYS_mkdirat, directory, path, mode))
}

fn mapped(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    at: off64_t,
) -> *mut c_void {
    match judge("mmap", Call::Map, false, 0) {
        CallVerdict::Fail(errno) => {
            set_errno(errno);
            libc::MAP_FAILED
        }
        _ => call!(SYS_mmap, address, length, protection, flags, fd, at) as *mut c_void,
    }
}

/// See mmap(2).
///
/// # Safety
/// The manual says which addresses are safe.
#[no_mangle]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    at: off64_t,
) -> *mut c_void {
    mapped(address, length, protection, flags, fd, at)
}

/// See mmap(2).
///
/// # Safety
/// The manual says which addresses are safe.
#[no_mangle]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    at: off64_t,
) -> *mut c_void {
    mapped(address, length, protection, flags, fd, at)
}

/// Defines functions whose results libc assembles; the real function is the next one of that name.
macro_rules! pass_on {
    ($name:ident, $text:literal, $first:ty, $result:ty) => {
        /// See statvfs(3).
        ///
        /// # Safety
        /// A path must be a null-terminated string, and `into` must have space for the result.
        #[no_mangle]
        pub unsafe extern "C" fn $name(of: $first, into: *mut $result) -> c_int {
            type Real = unsafe extern "C" fn($first, *mut $result) -> c_int;
            static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            if let CallVerdict::Fail(errno) = judge(stringify!($name), Call::Space, false, 0) {
                return failed(errno);
            }
            let mut real = REAL.load(Ordering::Relaxed);
            if real.is_null() {
                // SAFETY: the name is null-terminated.
                real = unsafe { libc::dlsym(libc::RTLD_NEXT, $text.as_ptr()) };
                REAL.store(real, Ordering::Relaxed);
            }
            // SAFETY: every libc has these functions, with this type.
            let real: Option<Real> = unsafe { std::mem::transmute(real) };
            match real {
                // SAFETY: the caller guarantees that the arguments are valid.
                Some(real) => unsafe { real(of, into) },
                None => failed(libc::ENOSYS),
            }
        }
    };
}

pass_on!(statvfs, c"statvfs", *const c_char, libc::statvfs);
pass_on!(statvfs64, c"statvfs64", *const c_char, libc::statvfs64);
pass_on!(fstatvfs, c"fstatvfs", c_int, libc::statvfs);
pass_on!(fstatvfs64, c"fstatvfs64", c_int, libc::statvfs64);
