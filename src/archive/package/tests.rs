//! Packages of an item of an Archive in a temporary directory, exported and imported.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::operations::testing::TestArchive;
use super::rules::Rule;
use super::*;
use crate::os::directory::Directory;
use crate::os::testing::TemporaryDirectory;

struct Fixture {
    archive: TestArchive,
    item: Item,
    directory: TemporaryDirectory,
}

impl Fixture {
    fn new() -> Fixture {
        let archive = TestArchive::new();
        let item = archive.new_item();
        let file = |name: &str| archive.file(&item, name);
        std::fs::create_dir_all(file("doc/empty")).expect("made");
        std::fs::write(file("doc/report: 1"), "text").expect("written");
        std::os::unix::fs::symlink("report: 1", file("doc/link")).expect("made");
        let odd = std::ffi::OsStr::from_bytes(b"doc/caf\xe9");
        std::fs::write(file("").join(odd), "latin").expect("written");
        Fixture {
            item: archive.again(&item),
            archive,
            directory: TemporaryDirectory::new(),
        }
    }

    fn destination(&self) -> PathBuf {
        self.directory.path().join("packages")
    }

    fn export(&self, format: Format) -> ExportOutcome {
        let mut progress = |_, _| ();
        let exporter = Exporter::new(
            format,
            &self.destination(),
            &self.archive.clock,
            &mut progress,
        );
        let mut exporter = exporter.expect("a destination");
        let outcome = exporter.export(&self.archive, &self.item);
        exporter.end().expect("ended");
        outcome.expect("a package")
    }

    /// The one package, opened and verified.
    fn open(&self) -> Result<Package, PackageError> {
        let root = opened(&self.destination());
        let found = find(&root, &self.destination()).expect("found");
        assert_eq!(found.len(), 1, "{found:?}");
        match Found::below(&root, &found[0])? {
            Found::Directory(package) => open(package, &mut |_| ()),
            found => panic!("{found:?}"),
        }
    }

    /// The file of the package whose name ends with `end`.
    fn packaged(&self, end: &str) -> PathBuf {
        let mut waiting = vec![self.destination()];
        while let Some(path) = waiting.pop() {
            for entry in std::fs::read_dir(&path).expect("listed") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    waiting.push(path);
                } else if path.as_os_str().as_bytes().ends_with(end.as_bytes()) {
                    return path;
                }
            }
        }
        panic!("no file that ends with {end}")
    }
}

fn opened(path: &Path) -> OwnedFd {
    Directory::open(path).expect("a directory").into()
}

#[test]
fn a_package_is_verified_and_made_once() {
    for format in [Format::Bagit, Format::Ocfl] {
        let fixture = Fixture::new();
        assert!(
            matches!(fixture.export(format), ExportOutcome::New(_)),
            "{format:?}"
        );
        fixture.open().expect("a sound package");
        if format == Format::Ocfl {
            assert!(matches!(
                fixture.export(format),
                ExportOutcome::Unchanged(_)
            ));
            let file = fixture.archive.file(&fixture.item, "doc/report: 1");
            std::fs::write(file, "edited").expect("written");
            assert!(matches!(
                fixture.export(format),
                ExportOutcome::Version(_, 2)
            ));
            fixture.open().expect("a sound package");
        }
    }
}

#[test]
fn a_package_that_was_changed_is_refused() {
    type Change = fn(&Fixture);
    let edit: Change =
        |fixture| std::fs::write(fixture.packaged("report: 1"), "TEXT").expect("written");
    let remove: Change =
        |fixture| std::fs::remove_file(fixture.packaged("report: 1")).expect("removed");
    let link: Change = |fixture| {
        let path = fixture.packaged("report: 1");
        let other = fixture.directory.path().join("other");
        std::fs::rename(&path, &other).expect("renamed");
        std::os::unix::fs::symlink(other, path).expect("made");
    };
    let add: Change = |fixture| {
        let beside = fixture.packaged("report: 1").with_file_name("stray");
        std::fs::write(beside, "").expect("written");
    };
    for format in [Format::Bagit, Format::Ocfl] {
        for (change, problem, rule) in [
            (edit, Problem::Differs, Rule::E092),
            (remove, Problem::Missing, Rule::E092),
            (link, Problem::NotRegular, Rule::E090),
            (add, Problem::Stray, Rule::E023),
        ] {
            let fixture = Fixture::new();
            fixture.export(format);
            change(&fixture);
            match fixture.open() {
                Err(PackageError::File { problem: found, .. }) => assert_eq!(found, problem),
                Err(PackageError::Object(faults)) => {
                    assert!(faults.iter().any(|fault| fault.rule == rule), "{faults:?}");
                }
                other => panic!("{format:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_package_names_its_item() {
    for format in [Format::Bagit, Format::Ocfl] {
        let fixture = Fixture::new();
        fixture.export(format);
        let package = fixture.open().expect("a sound package");
        assert_eq!(package.names(), Some(&fixture.item.names));
        let paths: Vec<_> = package.entries.iter().map(|it| it.path.clone()).collect();
        for path in [
            &b"doc/empty"[..],
            b"doc/report: 1",
            b"doc/link",
            b"doc/caf\xe9",
        ] {
            assert!(paths.iter().any(|it| it == path), "{path:?}");
        }
    }
}

#[test]
fn a_directory_without_packages_has_none() {
    let directory = TemporaryDirectory::new();
    std::fs::write(directory.path().join("file"), "").expect("written");
    let root = opened(directory.path());
    assert!(find(&root, directory.path()).is_err());
    assert!(open(root, &mut |_| ()).is_err());
}
