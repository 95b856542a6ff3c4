//! A filesystem of its own in a file, for what must not happen to the machine's: it is filled,
//! remounted read-only, and cut off.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The filesystem that a disk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ext4 with a journal.
    Ext4,
    /// XFS, of at least 300 MiB.
    Xfs,
}

/// An image file and the directory where it is mounted. Dropped, it is unmounted.
#[derive(Debug)]
pub struct Disk {
    format: Format,
    image: PathBuf,
    directory: PathBuf,
}

impl Disk {
    /// Makes `name.img` and the directory `name` below a directory, and mounts the one at the other.
    #[track_caller]
    pub fn new(below: &Path, name: &str, format: Format, mebibytes: u64) -> Disk {
        Disk::made_with(below, name, format, mebibytes, &[])
    }

    /// The same, with further options for the program that makes the filesystem.
    #[track_caller]
    pub fn made_with(
        below: &Path,
        name: &str,
        format: Format,
        mebibytes: u64,
        options: &[&str],
    ) -> Disk {
        let disk = Disk {
            format,
            image: below.join(format!("{name}.img")),
            directory: below.join(name),
        };
        std::fs::create_dir(&disk.directory).expect("a mount point");
        let file = std::fs::File::create(&disk.image).expect("an image");
        file.set_len(mebibytes << 20).expect("a sparse file");
        let make: &[&str] = match format {
            Format::Ext4 => &["mkfs.ext4", "-q", "-F"],
            Format::Xfs => &["mkfs.xfs", "-q", "-f"],
        };
        let mut command = Command::new(make[0]);
        run(command.args(&make[1..]).args(options).arg(&disk.image));
        disk.mount();
        disk
    }

    /// The directory where it is mounted.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Mounts it, again after [`Disk::unmount`].
    #[track_caller]
    pub fn mount(&self) {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]);
        run(mount.arg(&self.image).arg(&self.directory));
    }

    /// Unmounts it, as soon as no process uses it any more. A mount namespace that another process has made
    /// meanwhile may have it still: mounted again, it would be the same filesystem, cut off as it is.
    #[track_caller]
    pub fn unmount(&self) {
        retry(|| run_or_complain(Command::new("umount").arg(&self.directory)).map(drop));
        retry(|| {
            let loops = run_or_complain(Command::new("losetup").arg("-j").arg(&self.image))?;
            if loops.is_empty() {
                Ok(())
            } else {
                Err(format!("still in use: {loops}"))
            }
        });
    }

    /// Remounts it with other options, such as `ro`.
    #[track_caller]
    pub fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{options}")]);
        run(mount.arg(&self.directory));
    }

    /// Cuts the power: from now on nothing reaches the disk, and whatever was not synced before is
    /// lost, the journal's unwritten part included.
    #[track_caller]
    pub fn cut(&self) {
        // EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are the same number; so is "without the log".
        const GOING_DOWN: libc::Ioctl = 0x8004_587D_u32 as libc::Ioctl;
        let without_log: u32 = 2;
        let directory = std::fs::File::open(&self.directory).expect("the disk's root");
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&directory);
        // SAFETY: the request reads one u32, which lives until the call returns.
        let done = unsafe { libc::ioctl(descriptor, GOING_DOWN, &raw const without_log) };
        assert_eq!(
            done,
            0,
            "{:?}: {}",
            self.format,
            std::io::Error::last_os_error()
        );
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(&self.directory)
            .output();
    }
}

/// Tries until it is done, for two minutes: tests that have a namespace take some time.
#[track_caller]
fn retry(mut attempt: impl FnMut() -> Result<(), String>) {
    let started = Instant::now();
    while let Err(complaint) = attempt() {
        assert!(started.elapsed() < Duration::from_secs(120), "{complaint}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn run(command: &mut Command) {
    run_or_complain(command).unwrap_or_else(|complaint| panic!("{complaint}"));
}

/// Runs a tool, and returns its output or its complaint.
#[track_caller]
fn run_or_complain(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("the tool is there");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}
