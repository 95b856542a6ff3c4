//! Paths of the disk of a record's author, which bibliographic programs put into it: never part of a record, so
//! that no output has them.

/// Whether a field holds the files of the program that wrote it.
pub(super) fn is_local_field(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let known = [
        "file",
        "files",
        "pdf",
        "localfile",
        "local-url",
        "local-file",
        "attachment",
        "attachments",
    ];
    known.contains(&&*name) || name.starts_with("bdsk-file")
}

/// Whether a value is the path of a file on a disk, or a URL of one.
pub(super) fn is_local_path(value: &str) -> bool {
    let value = value.trim_start().to_ascii_lowercase();
    let homes = [
        "file:",
        "~/",
        "\\\\",
        "/home/",
        "/users/",
        "/root/",
        "/tmp/",
        "/mnt/",
        "/media/",
        "/volumes/",
        "/private/",
    ];
    let is_drive = value
        .as_bytes()
        .first()
        .is_some_and(u8::is_ascii_alphabetic)
        && value
            .get(1..3)
            .is_some_and(|sign| sign == ":\\" || sign == ":/")
        && !value.contains("://");
    is_drive || homes.iter().any(|home| value.starts_with(home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_disks_are_recognized() {
        for path in [
            "file:///home/a/x.pdf",
            "C:\\Users\\a\\x.pdf",
            "\\\\server\\x",
            "/home/a/x.pdf",
            "c:/x.pdf",
        ] {
            assert!(is_local_path(path), "{path}");
        }
        for text in [
            "http://a.b/home/",
            "é:/",
            "a",
            "",
            "/example.org/x",
            "the path /home/a",
            "s3://a",
        ] {
            assert!(!is_local_path(text), "{text}");
        }
    }
}
