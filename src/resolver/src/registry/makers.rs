//! The makers of identifiers, by prefix. An actor may not register what a registered Archive makes.
//!
//! An Archive makes the identifiers of the host and the address in the identifier of its service, of those at
//! which it asks to be included, and of the prefixes of the originals that it has reported to hold. They
//! belong to it while it is registered, included or not. Ports do not count: `@80`, `.80` and no port mean
//! the same, and an Archive can move to another port.

use std::net::IpAddr;

use super::{ArchiveId, Inclusion, Registry, RegistryError};
use ibi::{Ibi, RepPrefix, Timestamp};
use ibifs_formats::item::Names;
use ibifs_sql::engine::{Connection, params};
use ibifs_sql::error::StoreError;

/// The most makers that are recorded for one Archive.
const MOST_NOTED: i64 = 100_000;

/// The common part of the identifiers of one maker, in a normalized spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentifierMaker(String);

impl IdentifierMaker {
    /// The maker of an identifier, by its prefix.
    #[must_use]
    pub fn of(ibi: &Ibi) -> IdentifierMaker {
        match ibi {
            Ibi::Rep(rep) => IdentifierMaker::of_host(&rep.host()),
            Ibi::Ibip(ibip) => match ibip.maker() {
                Some(maker) => IdentifierMaker::of_address(maker.address()),
                // In base 53 the prefix is all that is known of the maker.
                None => IdentifierMaker(ibip.prefix().to_owned()),
            },
        }
    }

    pub(super) fn of_host(host: &str) -> IdentifierMaker {
        let host = host.strip_suffix('.').unwrap_or(host);
        IdentifierMaker(host.to_ascii_lowercase())
    }

    pub(super) fn of_address(address: IpAddr) -> IdentifierMaker {
        IdentifierMaker(address.to_canonical().to_string())
    }

    /// The makers of the prefixes of an item's names.
    #[must_use]
    pub fn of_names(names: &Names) -> Vec<IdentifierMaker> {
        let rep = names.rep().cloned().map(Ibi::from);
        let ibip = names.ibip().cloned().map(Ibi::from);
        rep.iter().chain(&ibip).map(IdentifierMaker::of).collect()
    }
}

impl Registry {
    /// Whether the prefix of an identifier belongs to a registered Archive.
    ///
    /// # Errors The database cannot be read.
    pub fn is_of_an_archive(&self, ibi: &Ibi) -> Result<bool, RegistryError> {
        Ok(is_of_an_archive(&self.lock(), &IdentifierMaker::of(ibi))?)
    }

    /// The registered Archive that was the first to be recorded as the maker of a prefix.
    ///
    /// # Errors The database cannot be read.
    pub fn first_maker(&self, maker: &IdentifierMaker) -> Result<Option<ArchiveId>, RegistryError> {
        let select = "SELECT archive FROM maker WHERE name = ?1 ORDER BY noted_at, archive LIMIT 1";
        let found = self
            .lock()
            .each(select, params![&maker.0], |row| row.get("archive"))?;
        Ok(found.into_iter().next().map(ArchiveId))
    }

    /// Records that an Archive makes the identifiers of a prefix. Returns whether that is new.
    ///
    /// # Errors The database cannot be written.
    pub fn note_maker(
        &self,
        archive: ArchiveId,
        maker: &IdentifierMaker,
        now: &Timestamp,
    ) -> Result<bool, RegistryError> {
        Ok(self.write(|connection| note(connection, archive, maker, now))?)
    }
}

/// Records the makers that an Archive's request for inclusion names.
pub(super) fn note_included(
    connection: &Connection,
    archive: ArchiveId,
    inclusion: &Inclusion,
    now: &Timestamp,
) -> Result<(), StoreError> {
    note(
        connection,
        archive,
        &IdentifierMaker::of_address(inclusion.ip),
        now,
    )?;
    let host = inclusion.url.host();
    let maker = match host.parse::<IpAddr>() {
        Ok(address) => IdentifierMaker::of_address(address),
        // A host that cannot be part of a rep makes no identifiers.
        Err(_) if RepPrefix::from_host(host, 80).is_err() => return Ok(()),
        Err(_) => IdentifierMaker::of_host(host),
    };
    note(connection, archive, &maker, now)?;
    Ok(())
}

/// Records the makers of the names of an Archive's service.
pub(super) fn note_service(
    connection: &Connection,
    archive: ArchiveId,
    service: &Names,
    now: &Timestamp,
) -> Result<(), StoreError> {
    for maker in IdentifierMaker::of_names(service) {
        note(connection, archive, &maker, now)?;
    }
    Ok(())
}

fn note(
    connection: &Connection,
    archive: ArchiveId,
    maker: &IdentifierMaker,
    now: &Timestamp,
) -> Result<bool, StoreError> {
    let count = "SELECT count(*) FROM maker WHERE archive = ?1";
    let count: i64 = connection.value(count, params![archive.0])?;
    if count >= MOST_NOTED {
        return Ok(false);
    }
    // The Archive may have been unregistered meanwhile.
    connection.exists(
        "INSERT INTO maker (archive, name, noted_at)
         SELECT id, CAST(?2 AS TEXT), CAST(?3 AS TEXT) FROM archive WHERE id = ?1
         ON CONFLICT DO NOTHING RETURNING archive",
        params![archive.0, &maker.0, now.to_rfc3339()],
    )
}

/// Whether a maker belongs to a registered Archive.
pub(super) fn is_of_an_archive(
    connection: &Connection,
    maker: &IdentifierMaker,
) -> Result<bool, StoreError> {
    if connection.exists("SELECT 1 FROM maker WHERE name = ?1", params![&maker.0])? {
        return Ok(true);
    }
    // Archives that were registered before makers were recorded: compare their services and addresses.
    let select = format!(
        "{} WHERE id NOT IN (SELECT archive FROM maker)",
        super::SELECT
    );
    let archives = connection.each(&select, &[], super::registered)?;
    Ok(archives.into_iter().any(|(archive, _)| {
        let of_service = IdentifierMaker::of_names(&archive.service);
        let of_address = archive
            .included
            .map(|it| IdentifierMaker::of_host(it.url.host()));
        of_service.iter().chain(&of_address).any(|it| it == maker)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_maker() {
        let maker = |text: &str| IdentifierMaker::of(&Ibi::parse(text).expect(text));
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
        assert_eq!(
            IdentifierMaker::of_address(mapped),
            maker("8JMKD3MGP8W/34PGRBR")
        );
    }
}
