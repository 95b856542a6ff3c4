//! Names of items that are not held here.

use std::path::PathBuf;

use rustix::io::Errno;

use super::fixture::{Fixture, ibip, rep, split};
use crate::fuse::namespace::{Options, WorldEntry};

fn fixture(fallback: bool, world: Option<WorldEntry>) -> Fixture {
    Fixture::with(Options {
        world,
        fallback,
        portable_names: true,
        ..Options::default()
    })
}

#[test]
fn only_an_option_shows_other_archives() {
    let fixture = Fixture::new();
    fixture.mint(None);
    for path in [".world", "8JMKD3MGP8W", "x.org"] {
        assert_eq!(fixture.describe(path), Err(Errno::NOENT), "{path}");
    }
}

#[test]
fn their_items_are_in_a_directory_that_nobody_can_list() {
    let fixture = self::fixture(false, Some(WorldEntry::Directory));
    fixture.mint(None);
    assert_eq!(fixture.describe(".world"), Ok("directory".to_owned()));
    let attr = fixture.find(".world").expect("found").attr;
    assert_eq!(attr.permissions, 0o111);
    assert_eq!(fixture.lines(".world").err(), Some(Errno::ACCESS));
    assert!(
        !fixture
            .list("")
            .expect("listed")
            .contains(&".world".to_owned())
    );
    // Until the process that knows them is there, it is not said that they do not exist.
    let inside = fixture.describe(".world/8JMKD3MGP8W");
    assert_eq!(inside, Err(Errno::HOSTUNREACH));
    assert_eq!(fixture.mkdir(".world", "x.org").err(), Some(Errno::PERM));
    assert_eq!(fixture.describe("x.org"), Err(Errno::NOENT));
    let place = Some(WorldEntry::Link(PathBuf::from("/run/x")));
    let linked = self::fixture(false, place);
    assert_eq!(linked.describe(".world"), Ok("-> /run/x".to_owned()));
}

#[test]
fn with_the_fallback_names_of_items_lead_there() {
    let fixture = fixture(true, Some(WorldEntry::Directory));
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    let ((year, _), (prefix, _)) = (split(&rep), split(&ibip));
    let link = |climb: &str, path: &str| Ok(format!("-> {climb}/.world/{path}"));
    let directory = || Ok("directory".to_owned());
    for (path, expected) in [
        ("x.org".to_owned(), directory()),
        ("x.org/y/2009".to_owned(), directory()),
        (
            "x.org/y/2009/02.16.17.46".to_owned(),
            link("../../..", "x.org/y/2009/02.16.17.46"),
        ),
        ("x.org/y/2009/02.30.17.46".to_owned(), Err(Errno::NOENT)),
        ("8JMKD3MGP8W".to_owned(), directory()),
        (
            "8JMKD3MGP8W/34PGRBS".to_owned(),
            link("..", "8JMKD3MGP8W/34PGRBS"),
        ),
        (
            "8JMKD3MGP8W/34PGRBS=GetLastEdition".to_owned(),
            link("..", "8JMKD3MGP8W/34PGRBS!"),
        ),
        (
            format!("{year}/02.16.17.46:(bibtex)"),
            link("../../..", &format!("{year}/02.16.17.46:(bibtex)")),
        ),
        (
            format!("{prefix}/34PGRBS"),
            link("..", &format!("{prefix}/34PGRBS")),
        ),
        (rep.clone(), directory()),
        (ibip.clone(), directory()),
        // The item is here, and has no translation.
        (format!("{rep}+(pt)"), Err(Errno::NOENT)),
        (format!("{ibip}=GetTranslation(pt)"), Err(Errno::NOENT)),
        (format!("{rep}/x"), Err(Errno::NOENT)),
        (".git".to_owned(), Err(Errno::NOENT)),
        (".mint/x".to_owned(), Err(Errno::NOENT)),
    ] {
        assert_eq!(fixture.describe(&path), expected, "{path}");
    }
    assert_eq!(fixture.lines("x.org").err(), Some(Errno::ACCESS));
    // With `.` and `..`.
    assert_eq!(fixture.list("").expect("listed").len(), 3);
}
