//! Names and paths at the levels of identifiers.

use std::ffi::OsStr;

use rustix::io::Errno;

use crate::fuse::inside::ErrnoResult;

/// The name in the root of the items of other Archives.
pub const WORLD: &str = ".world";

/// A name as text. No identifier has a byte outside ASCII: ENOENT for a name that is not UTF-8.
pub(super) fn text(name: &OsStr) -> ErrnoResult<&str> {
    name.to_str().ok_or(Errno::NOENT)
}

/// A target relative to a directory, as a path from the root without `.` and `..`; None if the target is
/// absolute or leaves the tree.
pub(super) fn resolve_dots(directory: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_text_does_not_exist() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(text(OsStr::new("a")), Ok("a"));
        assert_eq!(text(OsStr::from_bytes(b"\xff")), Err(Errno::NOENT));
    }

    #[test]
    fn relative_targets_are_resolved_from_their_directory() {
        for (directory, target, path) in [
            ("a/b/2001", "x", Some("a/b/2001/x")),
            ("a/b/2001", "./x/", Some("a/b/2001/x")),
            ("a/b/2001", "../../../c/d", Some("c/d")),
            ("a/b/2001", "../../..", Some("")),
            ("8JMKD3MGP8W", "../34PGRBS", Some("34PGRBS")),
            ("8JMKD3MGP8W", "../../x", None),
            ("8JMKD3MGP8W", "/x", None),
        ] {
            assert_eq!(resolve_dots(directory, target).as_deref(), path, "{target}");
        }
    }
}
