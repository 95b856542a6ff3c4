//! Memory of this process that is free, but not the system's again.
//!
//! The allocator of the C library keeps what was freed for later requests. That a mount has listed a million
//! items and the kernel has forgotten them leaves hundreds of MiB, which may not be needed again for months.

/// Has threads share their free memory, for a process with many threads: call it before there are others. The C library
/// lets eight threads for each processor keep what they have freed, each for itself. In an hour that is what the longest
/// request needs, eight times for each processor.
pub fn share_between_threads() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let most = std::ffi::c_int::try_from(processors.max(2)).unwrap_or(std::ffi::c_int::MAX);
        // SAFETY: takes no pointer.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, most);
        }
    }
}

/// Gives free memory back to the system. This takes some milliseconds for each 100 MiB, in which other threads
/// may wait for memory: call it when nothing has happened for a while.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointer. Other allocators give back what they free by themselves.
    unsafe {
        libc::malloc_trim(0);
    }
}
