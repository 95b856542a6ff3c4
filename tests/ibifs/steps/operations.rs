//! The changes that are stopped at each of their steps: how each is made through the mount, and how
//! one sees that it has been made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, ErrorKind, Write};
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::process::Command;

use rustix::fs::XattrFlags;

use super::fixture::Fixture;

/// A change through the mount.
#[derive(Debug)]
pub struct Operation {
    /// The name of the operation in a complaint.
    pub name: &'static str,
    /// Makes it, or goes on with it where it was stopped.
    pub make: fn(&Fixture) -> io::Result<()>,
    /// Whether it has been made.
    pub is_made: fn(&Fixture) -> bool,
    /// Whether all is as it was before, where that is more than not made.
    pub is_as_before: Option<fn(&Fixture) -> bool>,
    /// Whether it is made as a whole or not at all.
    pub is_whole: bool,
    /// The code of the finding that an error may leave for `ibifs fsck --repair`.
    pub may_leave: Option<&'static str>,
    /// Whether it goes on where the disk is full.
    pub goes_on_if_full: bool,
    /// Whether the sign that it was made ends with the mount.
    pub label_ends: bool,
}

/// `mkdir .mint/NAME`.
pub const MINT: Operation = Operation {
    name: "mint",
    make: |fixture| fs::create_dir(fixture.mounted(".mint/new")),
    is_made: |fixture| fixture.mounted(".mint/new").is_dir(),
    is_as_before: None,
    is_whole: true,
    may_leave: None,
    goes_on_if_full: false,
    label_ends: true,
};

/// `ibifs mint --count`.
pub const MINT_SEVERAL: Operation = Operation {
    name: "mint several items",
    make: |fixture| succeeds(fixture, &["mint", "M", "--count", "3"]),
    // Beside them are the Archive's own and the three of the fixture.
    is_made: |fixture| {
        let year = fs::read_dir(fixture.item(1).with_file_name(""));
        year.is_ok_and(|year| year.count() >= 7)
    },
    is_whole: false,
    label_ends: false,
    ..MINT
};

/// `mkdir '<ibi>+(pt)'`.
pub const MINT_TRANSLATION: Operation = Operation {
    name: "mint a translation",
    make: |fixture| fs::create_dir(beside(fixture, 1, "+(pt)")),
    is_made: |fixture| beside(fixture, 1, "+(pt)").is_dir(),
    is_as_before: None,
    is_whole: true,
    may_leave: None,
    goes_on_if_full: false,
    label_ends: false,
};

/// A relation where there was none.
pub const RELATE: Operation = Operation {
    name: "set a relation",
    make: |fixture| relate(fixture, 2, "metadata", 3),
    is_made: |fixture| leads_to(fixture, 2, ":", 3),
    is_as_before: Some(|fixture| fs::read_link(beside(fixture, 2, ":")).is_err()),
    is_whole: true,
    may_leave: None,
    goes_on_if_full: false,
    label_ends: false,
};

/// A relation in the place of another.
pub const RELATE_ANEW: Operation = Operation {
    name: "replace a relation",
    make: |fixture| relate(fixture, 1, "nextedition", 3),
    is_made: |fixture| leads_to(fixture, 1, "!", 3),
    is_as_before: Some(|fixture| leads_to(fixture, 1, "!", 2)),
    is_whole: true,
    may_leave: None,
    goes_on_if_full: false,
    label_ends: false,
};

/// A relation taken back.
pub const UNRELATE: Operation = Operation {
    name: "remove a relation",
    make: |fixture| {
        rustix::fs::removexattr(fixture.item(1), "user.ibi.nextedition").map_err(Error::from)
    },
    is_made: |fixture| leads_to(fixture, 1, "!", 1),
    is_as_before: Some(|fixture| leads_to(fixture, 1, "!", 2)),
    is_whole: true,
    may_leave: None,
    goes_on_if_full: false,
    label_ends: false,
};

/// A sidecar replaced as rsync and editors do it.
pub const RENAME_SIDECAR: Operation = Operation {
    name: "rename onto a sidecar",
    make: |fixture| {
        let beside = fixture.item(3).join("..ibi.AbCd12");
        write(&beside, &with_language(fixture)?)?;
        fs::rename(&beside, fixture.item(3).join(".ibi"))
    },
    is_made: says_language,
    is_as_before: None,
    is_whole: false,
    may_leave: None,
    goes_on_if_full: false,
    label_ends: false,
};

/// A sidecar written over as cp does it: a crash may leave half of it.
pub const WRITE_SIDECAR: Operation = Operation {
    name: "write over a sidecar",
    make: |fixture| write(&fixture.item(3).join(".ibi"), &with_language(fixture)?),
    is_made: says_language,
    is_as_before: None,
    is_whole: false,
    may_leave: Some("broken-sidecar"),
    goes_on_if_full: false,
    label_ends: false,
};

/// The same while another process has it open as well, as a process that is being forked has, and closes it
/// first: the result of its close is ignored.
pub const WRITE_SHARED_SIDECAR: Operation = Operation {
    name: "write over a shared sidecar",
    make: |fixture| {
        let file = written(&fixture.item(3).join(".ibi"), &with_language(fixture)?)?;
        drop(file.try_clone()?);
        close(file)
    },
    ..WRITE_SIDECAR
};

/// `rm -r` of an item.
pub const REMOVE: Operation = Operation {
    name: "remove an item",
    make: |fixture| {
        let item = fixture.item(1);
        ignore(fs::remove_file(item.join("doc/file")), ErrorKind::NotFound)?;
        ignore(fs::remove_dir(item.join("doc")), ErrorKind::NotFound)?;
        fs::remove_dir(item)
    },
    is_made: |fixture| !fixture.item(1).exists(),
    is_as_before: None,
    is_whole: false,
    may_leave: Some("removed-target"),
    goes_on_if_full: true,
    label_ends: false,
};

/// `mkdir .mint/NAME; rmdir .mint/NAME`: the mint is taken back.
pub const UNMINT: Operation = Operation {
    name: "take a mint back",
    make: |fixture| {
        let label = fixture.mounted(".mint/new");
        ignore(fs::create_dir(&label), ErrorKind::AlreadyExists)?;
        fs::remove_dir(label)
    },
    is_made: |fixture| {
        let mut look = Command::new("grep");
        look.args(["-rq", "^unminted"]);
        let found = look.arg(fixture.store().join("deleted")).status();
        found.is_ok_and(|status| status.success())
    },
    is_whole: false,
    label_ends: false,
    ..MINT
};

/// An item of another Archive copied in by its rep.
pub const COPY_BY_REP: Operation = Operation {
    name: "copy in by rep",
    make: |fixture| {
        let item = fixture.mounted(ELSEWHERE);
        for above in [
            "sid.inpe.br",
            "sid.inpe.br/mtc-m18@80",
            "sid.inpe.br/mtc-m18@80/2009",
        ] {
            ignore(
                fs::create_dir(fixture.mounted(above)),
                ErrorKind::AlreadyExists,
            )?;
        }
        ignore(fs::create_dir(&item), ErrorKind::AlreadyExists)?;
        write(&item.join("file"), b"file\n")?;
        write(&item.join(".ibi"), SIDECAR.as_bytes())
    },
    is_made: is_copied_in,
    is_as_before: None,
    is_whole: false,
    may_leave: Some("broken-sidecar"),
    goes_on_if_full: false,
    label_ends: false,
};

/// The same by its IBIp: it moves to its place by its rep as soon as that is known.
pub const COPY_BY_IBIP: Operation = Operation {
    name: "copy in by IBIp",
    make: |fixture| {
        let prefix = fixture.mounted("8JMKD3MGP8W");
        let item = prefix.join("35MMLL8");
        ignore(fs::create_dir(&prefix), ErrorKind::AlreadyExists)?;
        ignore(fs::create_dir(&item), ErrorKind::AlreadyExists)?;
        write(&item.join("file"), b"file\n")?;
        write(&item.join(".ibi"), SIDECAR.as_bytes())
    },
    is_made: is_copied_in,
    is_as_before: None,
    is_whole: false,
    // The item has moved, and the index learns of it at the next start.
    may_leave: Some("broken-sidecar"),
    goes_on_if_full: false,
    label_ends: false,
};

/// The same by a program that works in the store itself.
pub const WORK: Operation = Operation {
    name: "work in the root",
    make: |fixture| {
        let item = format!("M/{ELSEWHERE}");
        let script = format!(
            "mkdir -p {item} && echo file > {item}/file && printf %s '{SIDECAR}' > {item}/.ibi"
        );
        succeeds(fixture, &["work", "M", "--", "sh", "-c", &script])
    },
    ..COPY_BY_REP
};

const ELSEWHERE: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43";
const SIDECAR: &str = "ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}\n\
    ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17}\n\
    ibi.metadata {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05}\n";

fn succeeds(fixture: &Fixture, arguments: &[&str]) -> io::Result<()> {
    let done = fixture.run(arguments);
    if done.status.success() {
        Ok(())
    } else {
        Err(Error::other(String::from_utf8_lossy(&done.stderr)))
    }
}

fn is_copied_in(fixture: &Fixture) -> bool {
    let by = |name: &str| fs::read_to_string(fixture.mounted(name).join("file")).ok();
    let whole = Some("file\n".to_owned());
    // By its IBIp it is known as soon as its sidecar is.
    by(ELSEWHERE) == whole
        && by("8JMKD3MGP8W/35MMLL8") == whole
        && fixture.store().join("col").join(ELSEWHERE).is_dir()
        && fs::read_link(fixture.mounted(format!("{ELSEWHERE}:"))).is_ok()
}

/// A name beside an item.
fn beside(fixture: &Fixture, number: usize, modifier: &str) -> std::path::PathBuf {
    fixture.mounted(format!("{}{modifier}", fixture.rep(number)))
}

fn relate(fixture: &Fixture, number: usize, relation: &str, target: usize) -> io::Result<()> {
    let attribute = format!("user.ibi.{relation}");
    let target = fixture.rep(target).as_bytes();
    rustix::fs::setxattr(fixture.item(number), attribute, target, XattrFlags::empty())?;
    Ok(())
}

fn leads_to(fixture: &Fixture, number: usize, modifier: &str, target: usize) -> bool {
    fs::read_link(beside(fixture, number, modifier))
        .is_ok_and(|path| path.ends_with(fixture.rep(target)))
}

fn with_language(fixture: &Fixture) -> io::Result<Vec<u8>> {
    let before = fixture
        .environment()
        .root()
        .join("before/col")
        .join(fixture.rep(3));
    let mut bytes = fs::read(before.join(".ibi"))?;
    bytes.extend_from_slice(b"language pt\n");
    Ok(bytes)
}

fn says_language(fixture: &Fixture) -> bool {
    let mut value = [0; 64];
    let printed = rustix::fs::getxattr(fixture.item(3), "user.ibi.language", &mut value);
    printed.is_ok_and(|length| value[..length] == *b"pt")
}

/// Writes a whole file, and learns what its close says.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    close(written(path, bytes)?)
}

fn written(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor is ours and used no more.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn ignore(outcome: io::Result<()>, kind: ErrorKind) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == kind => Ok(()),
        other => other,
    }
}
