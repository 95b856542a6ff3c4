//! System calls, made directly: the C library would change the credentials of all threads, and
//! hide what the kernel says.

use super::row::{ALICE, BOB, STAFF, User};

/// The result of a call, or its errno.
pub type Answer = Result<i64, i32>;

/// An argument: a number, or the address of something that outlives the call.
pub trait Argument {
    fn raw(&self) -> i64;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Argument for $number {
            fn raw(&self) -> i64 {
                *self as i64
            }
        }
    )*};
}
numbers!(i32, u32, i64, u64, usize);

impl Argument for std::ffi::CString {
    fn raw(&self) -> i64 {
        self.as_ptr() as i64
    }
}

impl<T> Argument for [T] {
    fn raw(&self) -> i64 {
        self.as_ptr() as i64
    }
}

impl<T> Argument for Vec<T> {
    fn raw(&self) -> i64 {
        self.as_ptr() as i64
    }
}

/// The address of something that the kernel fills.
pub fn room<T: ?Sized>(place: &mut T) -> i64 {
    std::ptr::from_mut(place).cast::<u8>() as i64
}

/// Makes a call; see `sys!`.
pub fn call(number: i64, arguments: &[i64]) -> Answer {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: addresses among the arguments are of values that the caller holds until after the
    // call, with the room that the call needs.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        -1 => Err(last_error()),
        answer => Ok(answer),
    }
}

/// `sys!(SYS_mkdirat, AT_FDCWD, path, mode)`.
macro_rules! sys {
    ($number:ident $(, $argument:expr)* $(,)?) => {{
        #[allow(unused_imports)]
        use $crate::posix::system::Argument as _;
        $crate::posix::system::call(libc::$number, &[$(($argument).raw()),*])
    }};
}
pub(super) use sys;

fn last_error() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Gives this thread a directory, an umask and descriptors of its own, and no others' descriptors.
pub fn detach() {
    sys!(SYS_unshare, libc::CLONE_FS).expect("own directory and umask");
    let unshare = 2; // CLOSE_RANGE_UNSHARE
    sys!(SYS_close_range, 3, u32::MAX, unshare).expect("own descriptors");
}

/// Calls as a user, in this thread alone.
pub fn acting_as<T>(user: User, action: impl FnOnce() -> T) -> T {
    let (number, groups) = match user {
        User::Root => return action(),
        User::Alice => (ALICE, vec![ALICE, STAFF]),
        User::Bob => (BOB, vec![BOB]),
    };
    sys!(SYS_setgroups, groups.len(), groups).expect("groups");
    sys!(SYS_setresgid, number, number, number).expect("a group");
    // The saved user stays root, to come back; nothing here asks for it.
    sys!(SYS_setresuid, number, number, 0).expect("a user");
    let outcome = action();
    sys!(SYS_setresuid, 0, 0, 0).expect("root again");
    sys!(SYS_setresgid, 0, 0, 0).expect("root's group again");
    sys!(SYS_setgroups, 1, vec![0u32]).expect("root's groups again");
    outcome
}

/// The name of an errno.
pub fn errno_name(errno: i32) -> String {
    let name = NAMES.iter().find(|(number, _)| *number == errno);
    name.map_or(format!("errno {errno}"), |(_, name)| (*name).to_owned())
}

macro_rules! names {
    ($($name:ident)*) => {
        &[$((libc::$name, stringify!($name))),*]
    };
}
const NAMES: &[(i32, &str)] = names!(
    EPERM ENOENT EINTR EIO ENXIO E2BIG ENOEXEC EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV
    ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE
    ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA EOVERFLOW EOPNOTSUPP ESTALE
    ECONNREFUSED EADDRINUSE EPROTOTYPE
);
