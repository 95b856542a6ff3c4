//! The database of a resolver: inclusion, keys, migration, refused files.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::place::connect;
use super::schema::MIGRATIONS;
use super::*;
use ibifs_formats::query::Query;
use ibifs_os::testing::TemporaryDirectory;
use ibifs_sql::database;
use ibifs_sql::engine::Postgres;
use ibifs_sql::index_url::IndexUrl;

/// Makes a database private, since one that others may read is refused.
fn private(path: &Path) {
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).expect("a mode");
}

/// A place for a registry: a file in a directory of its own, or a new database of the server in which
/// `IBIFS_TEST_REGISTRY` names a database, as a user who may make others.
pub(super) struct TestRegistry {
    directory: TemporaryDirectory,
    place: RegistryPlace,
}

impl TestRegistry {
    pub(super) fn new() -> TestRegistry {
        let directory = TemporaryDirectory::new();
        let place = match std::env::var("IBIFS_TEST_REGISTRY") {
            Ok(url) => RegistryPlace::Server(new_database(&url)),
            Err(_) => RegistryPlace::File(directory.join("resolver.sqlite3")),
        };
        TestRegistry { directory, place }
    }

    /// The same in a file, whatever the environment says.
    fn in_a_file() -> TestRegistry {
        let directory = TemporaryDirectory::new();
        let place = RegistryPlace::File(directory.join("resolver.sqlite3"));
        TestRegistry { directory, place }
    }

    pub(super) fn open(&self) -> Registry {
        Registry::open(&self.place).expect("a registry")
    }

    /// Whether it is in a server.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.place, RegistryPlace::Server(_))
    }
}

fn new_database(url: &str) -> IndexUrl {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("registry_{}_{number}", std::process::id());
    let known = IndexUrl::parse(url).expect(url);
    let server = Postgres::connect(&known, Duration::from_secs(60)).expect("a server");
    let create = format!("CREATE DATABASE {name} TEMPLATE template0");
    server.batch(&create).expect("a database");
    let (server, _) = url.rsplit_once('/').expect(url);
    IndexUrl::parse(&format!("{server}/{name}")).expect("a URL")
}

fn open_file(path: &Path) -> Result<Registry, RegistryError> {
    Registry::open(&RegistryPlace::File(path.to_owned()))
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
    let place = TestRegistry::new();
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
    let place = TestRegistry::new();
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
    let place = TestRegistry::in_a_file();
    let directory = OwnedFd::from(place.directory.opened());
    let name = OsStr::new("resolver.sqlite3");
    let mut connection = connect(&directory, name).expect("a database");
    database::migrate(&mut connection, &MIGRATIONS[..1]).expect("the first schema");
    let insert = "INSERT INTO archive (rep, secret, registered_at) VALUES (?1, 'x', ?2)";
    let row = (SERVICE, now().to_rfc3339());
    connection.execute(insert, row).expect("a row");
    drop(connection);
    private(&place.directory.join("resolver.sqlite3"));
    let registry = place.open();
    assert_eq!(registry.archives().expect("read").len(), 1);
    #[cfg(feature = "registration-2009")]
    {
        let document = Ibi::parse(SERVICE).expect("an identifier");
        assert_eq!(registry.registered_document(&document).expect("read"), None);
    }
}

#[test]
fn what_is_no_database_of_ours_is_refused() {
    let place = TestRegistry::in_a_file();
    let at = |name: &str| place.directory.join(name);
    std::fs::write(at("text"), "no database, but a text that is long enough").expect("a file");
    std::fs::set_permissions(at("text"), Permissions::from_mode(0o644)).expect("a mode");
    std::os::unix::fs::symlink("text", at("link")).expect("a link");
    std::fs::create_dir(at("directory")).expect("a directory");
    let refused = |name: &str| {
        let error = open_file(&at(name)).expect_err(name);
        error.to_string()
    };
    assert!(refused("text").contains("chmod 600"), "{}", refused("text"));
    private(&at("text"));
    assert!(refused("text").contains("not a database"));
    assert!(refused("link").contains("a link"));
    assert!(refused("directory").contains("is not a file"));
    assert!(refused("none/there").contains("No such file"));
    let registry = open_file(&at("new")).expect("a registry");
    let mark = "PRAGMA user_version = 99";
    registry.lock().execute(mark, &[]).expect("a version");
    drop(registry);
    assert!(refused("new").contains("a newer ibifs"));
    assert_eq!(
        open_file(Path::new("/")).expect_err("no name").to_string(),
        RegistryError::NoName.to_string()
    );
}

/// Registries of several resolvers, all at once.
#[test]
fn what_is_registered_at_once_is_there_once() {
    let place = TestRegistry::new();
    let key = key("1234567890");
    let registries: Vec<Registry> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..4).map(|_| scope.spawn(|| place.open())).collect();
        let opened = opening.into_iter();
        opened.map(|it| it.join().expect("opened")).collect()
    });
    let rep = |number: usize| format!("sid.inpe.br/mtc-m18@80/2008/03.17.15.{:02}", number + 10);
    std::thread::scope(|scope| {
        for registry in &registries {
            scope.spawn(|| {
                for number in 0..8 {
                    let service = rep(number);
                    let registered = registry.register(&names(&service), &key, &now());
                    registered.expect("registered");
                    // Another one may have put another hash of the key in the place of the one that was compared.
                    match registry.include(&inclusion(&service, "a", "1234567890"), &now()) {
                        Ok(()) | Err(RegistryError::WrongKey(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    for registry in &registries {
        let found = registry.archives().expect("read");
        let mut services: Vec<_> = found.iter().map(|it| it.service.clone()).collect();
        services.sort_by_key(|service| service.preferred());
        assert_eq!(
            services,
            (0..8).map(|it| names(&rep(it))).collect::<Vec<_>>()
        );
    }
}

/// Another process registers the Archive again while the key of a request is compared.
#[test]
fn a_key_that_is_replaced_meanwhile_includes_nothing() {
    let place = TestRegistry::new();
    let (registry, other) = (place.open(), place.open());
    let register = |registry: &Registry, text: &str| {
        let registered = registry.register(&names(SERVICE), &key(text), &now());
        registered.expect("registered");
    };
    register(&registry, "1234567890");
    let asked = inclusion(SERVICE, "localhost:1", "1234567890");
    let checked = registry.checked(&asked).expect("the key");
    register(&other, "1234567890");
    for done in [
        registry.put_included(checked.clone(), &asked, &now()),
        registry.put_excluded(checked, &asked),
    ] {
        assert!(matches!(done, Err(RegistryError::WrongKey(_))));
    }
    registry.include(&asked, &now()).expect("included");
}

/// A resolver reads again what it has read when another one has changed it, and only then.
#[test]
fn a_version_rises_with_what_is_read() {
    let place = TestRegistry::new();
    let (registry, other) = (place.open(), place.open());
    let version = || registry.version().expect("read");
    let before = version();
    other
        .register(&names(SERVICE), &key("1234567890"), &now())
        .expect("registered");
    let registered = version();
    assert_ne!(registered, before);
    other.key(false).expect("a key");
    let with_key = version();
    assert_ne!(with_key, registered);
    if place.is_shared() {
        // Otherwise resolvers would sign one after the other for ever.
        other.to_publish(&now()).expect("signed");
        other.key(false).expect("the same key");
        let prefix = ("p".to_owned(), "a".to_owned());
        other.remember(&[prefix], &now()).expect("written");
        assert_eq!(version(), with_key);
    }
    other.unregister(&names(SERVICE)).expect("removed");
    assert_ne!(version(), with_key);
}
