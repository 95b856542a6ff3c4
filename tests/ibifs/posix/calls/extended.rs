//! Extended attributes and access control lists.

use std::ffi::CString;

use super::words::{Words, bytes};
use super::{Bench, Outcome, done};
use crate::posix::snapshot::attribute_names;
use crate::posix::system::{Answer, room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    let path = || words.path(bench, 1);
    let file = || bench.file(words, 1);
    let name = || CString::new(words.bytes(2)).expect("no NUL");
    let value = || words.bytes(3);
    let flags = words.get(4).map_or(0, |word| match word {
        "create" => libc::XATTR_CREATE,
        "replace" => libc::XATTR_REPLACE,
        _ => libc::XATTR_CREATE | libc::XATTR_REPLACE,
    });
    Some(match words.name() {
        "setx" => done(sys!(
            SYS_setxattr,
            path(),
            name(),
            value(),
            value().len(),
            flags
        )),
        "lsetx" => done(sys!(
            SYS_lsetxattr,
            path(),
            name(),
            value(),
            value().len(),
            flags
        )),
        "fsetx" => done(sys!(
            SYS_fsetxattr,
            file(),
            name(),
            value(),
            value().len(),
            flags
        )),
        "getx" => reading(words, |buffer| {
            sys!(SYS_getxattr, path(), name(), room(buffer), buffer.len())
        }),
        "lgetx" => reading(words, |buffer| {
            sys!(SYS_lgetxattr, path(), name(), room(buffer), buffer.len())
        }),
        "fgetx" => reading(words, |buffer| {
            sys!(SYS_fgetxattr, file(), name(), room(buffer), buffer.len())
        }),
        "rmx" => done(sys!(SYS_removexattr, path(), name())),
        "lrmx" => done(sys!(SYS_lremovexattr, path(), name())),
        "frmx" => done(sys!(SYS_fremovexattr, file(), name())),
        // `listx f SIZE` asks with so much room, and says how much is filled.
        "listx" => match words.get(2) {
            Some(_) => {
                let mut buffer = vec![0u8; words.number(2) as usize];
                let length = buffer.len();
                sys!(SYS_listxattr, path(), room(&mut buffer[..]), length)
                    .map(|count| count.to_string())
            }
            None => attribute_names(&path()).map(|names| {
                let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
                names.join(",")
            }),
        },
        "setacl" => done(set_list(&path(), c"system.posix_acl_access", words)),
        "setdefault" => done(set_list(&path(), c"system.posix_acl_default", words)),
        "getacl" => get_list(&path(), c"system.posix_acl_access"),
        "getdefault" => get_list(&path(), c"system.posix_acl_default"),
        _ => return None,
    })
}

/// A value: short as it is, long by its length.
fn reading(words: &Words<'_>, read: impl FnOnce(&mut [u8]) -> Answer) -> Outcome {
    let room = words.get(3).map_or(65536, |_| words.number(3));
    let mut buffer = vec![0u8; room as usize];
    let count = read(&mut buffer)? as usize;
    Ok(match buffer.get(..count) {
        Some(value) if count < 60 => format!("'{}'", String::from_utf8_lossy(value)),
        _ => format!("{count} bytes"),
    })
}

/// `u::rwx,u:alice:r--,g::r-x,g:staff:rw-,m::rwx,o::---` as the kernel keeps it.
fn set_list(path: &CString, attribute: &std::ffi::CStr, words: &Words<'_>) -> Answer {
    let mut value = 2u32.to_le_bytes().to_vec();
    for entry in words.word(2).split(',') {
        let [tag, who, bits] = entry.split(':').collect::<Vec<_>>()[..] else {
            panic!("no ACL entry: {entry}");
        };
        let tag: u16 = match (tag, who.is_empty()) {
            ("u", true) => 1,
            ("u", false) => 2,
            ("g", true) => 4,
            ("g", false) => 8,
            ("m", _) => 16,
            _ => 32,
        };
        let bits = (0..3).fold(0u16, |sum, at| {
            sum | match bytes(bits)[at] {
                b'-' => 0,
                _ => 4 >> at,
            }
        });
        let who: u32 = match who {
            "" => u32::MAX,
            "alice" => crate::posix::row::ALICE,
            "bob" => crate::posix::row::BOB,
            _ => crate::posix::row::STAFF,
        };
        value.extend(tag.to_le_bytes());
        value.extend(bits.to_le_bytes());
        value.extend(who.to_le_bytes());
    }
    let (path, attribute) = (path.clone(), attribute.to_owned());
    sys!(SYS_setxattr, path, attribute, value, value.len(), 0)
}

fn get_list(path: &CString, attribute: &std::ffi::CStr) -> Outcome {
    let mut value = [0u8; 1024];
    let (path, attribute) = (path.clone(), attribute.to_owned());
    let count = sys!(SYS_getxattr, path, attribute, room(&mut value), 1024)? as usize;
    let entries = value[4..count].chunks(8).map(|entry| {
        let tag = ["u", "u:", "g", "g:", "m", "o"][entry[0].trailing_zeros() as usize];
        let who = if tag.ends_with(':') {
            u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]).to_string()
        } else {
            ":".to_owned()
        };
        let bits: String = ["r", "w", "x"]
            .iter()
            .enumerate()
            .map(|(at, letter)| match entry[2] & (4 >> at) {
                0 => "-",
                _ => letter,
            })
            .collect();
        format!("{tag}{who}:{bits}")
    });
    Ok(entries.collect::<Vec<_>>().join(","))
}
