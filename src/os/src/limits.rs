//! Limits of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::system_files;

/// Raises the limit on open files of this process as far as the system allows: each node that the kernel
/// knows has a descriptor, and so does each connection. See getrlimit(2), `RLIMIT_NOFILE`.
pub fn raise_descriptor_limit() {
    let known = getrlimit(Resource::Nofile);
    let most = system_files::read_text("/proc/sys/fs/nr_open")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let wanted = [most, known.maximum];
    for limit in wanted.into_iter().flatten() {
        let limits = Rlimit {
            current: Some(limit),
            maximum: Some(limit.max(known.maximum.unwrap_or(limit))),
        };
        if setrlimit(Resource::Nofile, limits).is_ok() {
            return;
        }
    }
}
