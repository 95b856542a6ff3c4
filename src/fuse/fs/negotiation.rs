//! The agreement with the kernel when a mount begins.

use fuser::{InitFlags, KernelConfig};

use super::data_path::Reason;

/// The largest read or write, in bytes. A larger request costs each thread's buffer and saves nothing.
const LARGEST_TRANSFER: u32 = 1 << 20;

/// The features that are asked for.
fn wanted() -> InitFlags {
    InitFlags::FUSE_POSIX_ACL
        | InitFlags::FUSE_DONT_MASK
        | InitFlags::FUSE_ATOMIC_O_TRUNC
        | InitFlags::FUSE_PARALLEL_DIROPS
        | InitFlags::FUSE_CACHE_SYMLINKS
        | InitFlags::FUSE_HAS_IOCTL_DIR
        // Attributes with a listing, for processes that use them: see `readdirplus`.
        | InitFlags::FUSE_DO_READDIRPLUS
        | InitFlags::FUSE_READDIRPLUS_AUTO
        // A cached listing that was read while it changed is recognized by the directory's time.
        | InitFlags::FUSE_AUTO_INVAL_DATA
        // Otherwise the kernel asks before each write whether there is a capability to remove. What it
        // leaves to us instead is done in `inside`, and by `backing` for passthrough.
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2
}

/// Agrees on features. Fails with the reason if the kernel has no passthrough.
pub(super) fn negotiate(config: &mut KernelConfig) -> Result<(), Reason> {
    let wanted = wanted();
    if let Err(missing) = config.add_capabilities(wanted) {
        log::info!("this kernel's FUSE lacks {missing:?}");
        let _ = config.add_capabilities(wanted & !missing);
    }
    let _ = config.set_max_write(LARGEST_TRANSFER);
    let _ = config.set_max_readahead(LARGEST_TRANSFER);
    let is_offered = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
        && config.set_max_stack_depth(1).is_ok();
    if is_offered {
        Ok(())
    } else {
        Err(Reason::OldKernel)
    }
}
