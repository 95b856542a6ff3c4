//! Memory of this process that is free, but not the system's again.
//!
//! The allocator of the C library keeps what was freed for later requests. That a mount has listed a million
//! items and the kernel has forgotten them leaves hundreds of MiB, which may not be needed again for months.

/// Gives free memory back to the system. This takes some milliseconds for each 100 MiB, in which other threads
/// may wait for memory: call it when nothing has happened for a while.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointer. Other allocators give back what they free by themselves.
    unsafe {
        libc::malloc_trim(0);
    }
}
