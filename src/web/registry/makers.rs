//! Who makes the identifiers of a prefix: what an Archive makes is no actor's.
//!
//! An Archive has the host and the address of the identifier of its service, those at which it asks to be
//! included, and those of the identifiers of which it has said that it holds the original. They stay its
//! own while it is registered, included or not. Ports do not count: `@80`, `.80` and none are written for
//! one, and an Archive moves from one to another.

use std::net::IpAddr;

use rusqlite::{Connection, OptionalExtension, params};

use super::{ArchiveId, Inclusion, Registry, RegistryError};
use crate::archive::database;
use crate::formats::item::Names;
use ibi::{Ibi, RepPrefix, Timestamp};

/// So many makers are noted for one Archive by what it answers.
const MOST_NOTED: i64 = 100_000;

/// What the identifiers of one maker have in common, however they are spelled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Maker(String);

impl Maker {
    /// Who has made an identifier, by its prefix.
    #[must_use]
    pub fn of(ibi: &Ibi) -> Maker {
        match ibi {
            Ibi::Rep(rep) => Maker::of_host(&rep.host()),
            Ibi::Ibip(ibip) => Maker::of_address(ibip.address()),
        }
    }

    pub(super) fn of_host(host: &str) -> Maker {
        let host = host.strip_suffix('.').unwrap_or(host);
        Maker(host.to_ascii_lowercase())
    }

    pub(super) fn of_address(address: IpAddr) -> Maker {
        Maker(address.to_canonical().to_string())
    }

    /// The makers of the prefixes of an item's names.
    fn of_names(names: &Names) -> Vec<Maker> {
        let rep = names.rep().cloned().map(Ibi::from);
        let ibip = names.ibip().cloned().map(Ibi::from);
        rep.iter().chain(&ibip).map(Maker::of).collect()
    }
}

impl Registry {
    /// Whether the prefix of an identifier is that of an Archive that is registered.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn is_of_an_archive(&self, ibi: &Ibi) -> Result<bool, RegistryError> {
        is_of_an_archive(&self.lock(), &Maker::of(ibi))
    }

    /// Notes that an Archive makes the identifiers of a prefix; tells whether that is new.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn note_maker(
        &self,
        archive: ArchiveId,
        maker: &Maker,
        now: &Timestamp,
    ) -> Result<bool, RegistryError> {
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        let is_new = note(&transaction, archive, maker, now)?;
        transaction.commit()?;
        Ok(is_new)
    }
}

/// Notes the makers of what an Archive says of itself when it asks to be included.
pub(super) fn note_included(
    connection: &Connection,
    archive: ArchiveId,
    inclusion: &Inclusion,
    now: &Timestamp,
) -> Result<(), RegistryError> {
    note(connection, archive, &Maker::of_address(inclusion.ip), now)?;
    let host = inclusion.address.host();
    let maker = match host.parse::<IpAddr>() {
        Ok(address) => Maker::of_address(address),
        // A host that no rep can be built on makes none.
        Err(_) if RepPrefix::from_host(host, 80).is_err() => return Ok(()),
        Err(_) => Maker::of_host(host),
    };
    note(connection, archive, &maker, now)?;
    Ok(())
}

/// Notes the makers of the names of an Archive's service.
pub(super) fn note_service(
    connection: &Connection,
    archive: ArchiveId,
    service: &Names,
    now: &Timestamp,
) -> Result<(), RegistryError> {
    for maker in Maker::of_names(service) {
        note(connection, archive, &maker, now)?;
    }
    Ok(())
}

fn note(
    connection: &Connection,
    archive: ArchiveId,
    maker: &Maker,
    now: &Timestamp,
) -> Result<bool, RegistryError> {
    let count = "SELECT count(*) FROM maker WHERE archive = ?1";
    let count: i64 = connection.query_row(count, [archive.0], |row| row.get(0))?;
    if count >= MOST_NOTED {
        return Ok(false);
    }
    // It may have been unregistered meanwhile.
    let added = connection.execute(
        "INSERT OR IGNORE INTO maker (archive, name, noted_at)
         SELECT id, ?2, ?3 FROM archive WHERE id = ?1",
        params![archive.0, maker.0, now.to_rfc3339()],
    )?;
    Ok(added > 0)
}

/// Whether a maker is an Archive that is registered.
pub(super) fn is_of_an_archive(
    connection: &Connection,
    maker: &Maker,
) -> Result<bool, RegistryError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM maker WHERE name = ?1")?;
    let found = statement.query_row([&maker.0], |_| Ok(())).optional()?;
    if found.is_some() {
        return Ok(true);
    }
    // Those that were registered before makers were noted have their services alone.
    let mut statement = connection.prepare_cached(&format!(
        "{} WHERE id NOT IN (SELECT archive FROM maker)",
        super::SELECT
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (archive, _) = super::registered(row)?;
        let of_service = Maker::of_names(&archive.service);
        let of_address = archive.included.map(|it| Maker::of_host(it.address.host()));
        if of_service.iter().chain(&of_address).any(|it| it == maker) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_maker() {
        let maker = |text: &str| Maker::of(&Ibi::parse(text).expect(text));
        for same in [
            "sid.INPE.br/MTC-m18@80/2009/02.16.17.46",
            "sid.inpe.br/mtc-m18.80/2009/02.16.17.46",
            "sid.inpe.br./mtc-m18@1905/2009/02.16.17.46",
        ] {
            assert_eq!(maker(same), maker("sid.inpe.br/mtc-m18/2020/01.01.01.01"));
        }
        assert_eq!(maker("8jmkd3mgp8w/34pgrbs"), maker("8JMKD3MGP8W/34PGRBR"));
        assert_ne!(maker("LK47B6W/362SFKH"), maker("8JMKD3MGP8W/34PGRBR"));
        let mapped = "::ffff:150.163.34.243".parse().expect("an address");
        assert_eq!(Maker::of_address(mapped), maker("8JMKD3MGP8W/34PGRBR"));
    }
}
