//! The database of a resolver: inclusion, keys, migration, refused files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::formats::query::Query;
use crate::os::testing::TemporaryDirectory;

/// Makes a database private, since one that others may read is refused.
fn private(path: &Path) {
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).expect("a mode");
}

pub(super) struct RegistryDirectory(TemporaryDirectory);

impl RegistryDirectory {
    pub(super) fn new() -> RegistryDirectory {
        RegistryDirectory(TemporaryDirectory::new())
    }

    pub(super) fn open(&self) -> Registry {
        Registry::open(&self.0.join("resolver.sqlite3")).expect("a registry")
    }
}

fn names(text: &str) -> Names {
    let forms = text.split(' ').map(|form| Ibi::parse(form).expect(form));
    Names::collect(forms).expect(text)
}

fn key(text: &str) -> ArchiveKey {
    ArchiveKey::parse(text).expect(text)
}

fn inclusion(service: &str, address: &str, key: &str) -> Inclusion {
    let query = format!(
        "archiveaddress={address}&archiveserviceibi={service}&archiveip=::1&archiveprotocol=HTTP\
         &archiveplatformversion=1&archiveadmemailaddress=a@b&registrationkey={key}"
    );
    Inclusion::of(&Query::parse(&query).expect("a query")).expect("an inclusion")
}

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";

fn now() -> Timestamp {
    Timestamp::from_unix(1_427_244_889, 0)
}

#[test]
fn who_has_the_key_is_included_and_excluded() {
    let place = RegistryDirectory::new();
    let registry = place.open();
    registry
        .register(&names(SERVICE), &key("1234567890"), &now())
        .expect("registered");
    let asked = inclusion(SERVICE, "localhost:1", "1234567890");
    let wrong = inclusion(SERVICE, "localhost:2", "1234567891");
    let unknown = inclusion(
        "iconet.com.br/banon/2009/09.09.22.01",
        "localhost:3",
        "1234567890",
    );
    let refused = |asked: &Inclusion| registry.include(asked, &now()).expect_err("refused");
    assert!(matches!(refused(&wrong), RegistryError::WrongKey(_)));
    assert!(matches!(refused(&unknown), RegistryError::NotRegistered(_)));
    let address = |registry: &Registry| {
        let found = registry.archives().expect("read").remove(0).included;
        found.map(|included| included.url.short())
    };
    assert_eq!(address(&registry), None);
    registry.include(&asked, &now()).expect("included");
    assert!(registry.exclude(&wrong).is_err());
    assert_eq!(address(&registry).as_deref(), Some("localhost:1"));
    drop(registry);
    let registry = place.open();
    assert_eq!(address(&registry).as_deref(), Some("localhost:1"));
    registry.exclude(&asked).expect("excluded");
    assert_eq!(address(&registry), None);
}

#[test]
fn who_is_registered_again_has_another_key() {
    let place = RegistryDirectory::new();
    let registry = place.open();
    registry
        .register(&names(SERVICE), &key("1234567890"), &now())
        .expect("registered");
    let both = names(&format!("{SERVICE} 8JMKD3MGP8W/34PGRBS"));
    registry
        .register(&both, &key("9876543210"), &now())
        .expect("registered again");
    let found = registry.archives().expect("read");
    assert_eq!(
        found.iter().map(|found| &found.service).collect::<Vec<_>>(),
        [&both]
    );
    assert!(
        registry
            .include(&inclusion(SERVICE, "a", "1234567890"), &now())
            .is_err()
    );
    let by_ibip = inclusion("8JMKD3MGP8W/34PGRBS", "a", "9876543210");
    registry.include(&by_ibip, &now()).expect("included");
    let other = names(&format!("{SERVICE} 8JMKD3MGP8W/35MMLL8"));
    assert!(matches!(
        registry.register(&other, &key("1234567890"), &now()),
        Err(RegistryError::TwoArchives(_))
    ));
    registry.unregister(&names(SERVICE)).expect("forgotten");
    assert_eq!(registry.archives().expect("read"), []);
    assert!(registry.unregister(&names(SERVICE)).is_err());
}

#[test]
fn a_database_of_the_first_schema_is_brought_up_to_date() {
    let place = RegistryDirectory::new();
    let directory = OwnedFd::from(place.0.opened());
    let name = OsStr::new("resolver.sqlite3");
    let mut connection = connect(&directory, name).expect("a database");
    database::migrate(&mut connection, &MIGRATIONS[..1]).expect("the first schema");
    let insert = "INSERT INTO archive (rep, secret, registered_at) VALUES (?1, 'x', ?2)";
    let row = params![SERVICE, now().to_rfc3339()];
    connection.execute(insert, row).expect("a row");
    drop(connection);
    private(&place.0.join("resolver.sqlite3"));
    let registry = place.open();
    assert_eq!(registry.archives().expect("read").len(), 1);
    let document = Ibi::parse(SERVICE).expect("an identifier");
    assert_eq!(registry.registered_document(&document).expect("read"), None);
}

#[test]
fn what_is_no_database_of_ours_is_refused() {
    let place = RegistryDirectory::new();
    let at = |name: &str| place.0.join(name);
    std::fs::write(at("text"), "no database, but a text that is long enough").expect("a file");
    std::fs::set_permissions(at("text"), Permissions::from_mode(0o644)).expect("a mode");
    std::os::unix::fs::symlink("text", at("link")).expect("a link");
    std::fs::create_dir(at("directory")).expect("a directory");
    let refused = |name: &str| {
        let error = Registry::open(&at(name)).expect_err(name);
        error.to_string()
    };
    assert!(refused("text").contains("chmod 600"), "{}", refused("text"));
    private(&at("text"));
    assert!(refused("text").contains("not a database"));
    assert!(refused("link").contains("a link"));
    assert!(refused("directory").contains("is not a file"));
    assert!(refused("none/there").contains("No such file"));
    let registry = Registry::open(&at("new")).expect("a registry");
    registry
        .lock()
        .pragma_update(None, "user_version", 99)
        .expect("a version");
    drop(registry);
    assert!(refused("new").contains("a newer ibifs"));
    assert_eq!(
        Registry::open(Path::new("/"))
            .expect_err("no name")
            .to_string(),
        RegistryError::NoName.to_string()
    );
}
