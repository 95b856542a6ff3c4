//! The table, a room to each chapter.

pub mod attributes;
pub mod content;
pub mod extended;
pub mod making;
pub mod opening;
pub mod owners;
pub mod permissions;
pub mod read_only;
pub mod removing;
pub mod renaming;
pub mod setid;
pub mod sharing;
pub mod space;
pub mod sticky;
pub mod times;

use super::row::{Row, row};

/// Every file type that mknod and its like can make.
const KINDS: [&str; 7] = ["reg", "dir", "link", "fifo", "socket", "char", "block"];

/// The step that makes a name of a type, open to all.
fn make(kind: &str, name: &str) -> String {
    match kind {
        "reg" => format!("open {name} O_CREAT|O_RDWR 0666"),
        "dir" => format!("mkdir {name} 0777"),
        "full" => format!("mkdir {name} 0777; mkdir {name}/below 0777"),
        // To nowhere, or to a file that is there.
        "link" => format!("symlink nowhere {name}"),
        "linked" => format!("open {name}-target O_CREAT 0666; symlink {name}-target {name}"),
        "none" => String::new(),
        other => format!("mknod {name} {other} 0666"),
    }
}

/// Writes the expected answer as the end of its step.
fn answers(expected: &str) -> String {
    match expected {
        "ok" => String::new(),
        other => format!(" => {other}"),
    }
}

/// Whether the kernel keeps users from linking to files that are not theirs.
fn links_are_protected() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/fs/protected_hardlinks");
    setting.is_ok_and(|text| text.trim() == "1")
}
