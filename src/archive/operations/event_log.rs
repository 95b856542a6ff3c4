//! A line in the log for each mint, removal, restoration, copy that arrives, transfer, claim and cancellation: what happened to which
//! item, by whom. The form is documented in ibifs(1), LOG, and does not change.

use std::fmt;

use super::Actor;
use crate::formats::item::Names;

/// An event of an item.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// It was minted.
    Mint,
    /// It was removed.
    Remove,
    /// Its files may not change any more, from an instant on.
    AnnounceSeal,
    /// Its files may not change any more.
    Seal,
    /// They may again, for this reason.
    Unseal(&'a str),
    /// A removed item has come back.
    Restore,
    /// A copy, or some files of it, has come from this Archive.
    Receive(&'a Names),
    /// The original went to this Archive.
    Give(&'a Names),
    /// The original came from this Archive.
    Take(&'a Names),
    /// The original was claimed, which had been removed at this Archive.
    Claim(&'a Names),
    /// The transfer of the original to this Archive was cancelled.
    Cancel(&'a Names),
}

impl fmt::Display for EventOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Event::Unseal(reason) = self.0 {
            write!(f, "unseal {} ({reason:?})", self.1.preferred())?;
            return by(f, self.2);
        }
        let (word, preposition, other) = match self.0 {
            Event::Seal | Event::Unseal(_) => ("seal", "", None),
            Event::AnnounceSeal => ("announce-seal", "", None),
            Event::Mint => ("mint", "", None),
            Event::Remove => ("remove", "", None),
            Event::Restore => ("restore", "", None),
            Event::Receive(from) => ("receive", "from", Some(from)),
            Event::Give(to) => ("give", "to", Some(to)),
            Event::Take(from) => ("take", "from", Some(from)),
            Event::Claim(from) => ("claim", "from", Some(from)),
            Event::Cancel(to) => ("cancel", "to", Some(to)),
        };
        write!(f, "{word} {}", self.1.preferred())?;
        if let Some(other) = other {
            write!(f, " {preposition} {}", other.preferred())?;
        }
        by(f, self.2)
    }
}

fn by(f: &mut fmt::Formatter<'_>, actor: &dyn Actor) -> fmt::Result {
    match actor.owner() {
        Some((uid, _)) => write!(f, " by uid {uid}"),
        None => f.write_str(" by peer"),
    }
}

struct EventOf<'a>(Event<'a>, &'a Names, &'a dyn Actor);

/// Logs what a user did with an item.
pub fn log_event(event: Event<'_>, names: &Names, by: &dyn Actor) {
    log::info!(target: "ibifs::events", "{}", EventOf(event, names, by));
}

#[cfg(test)]
mod tests {
    use super::super::{OwnerOnDisk, Stranger};
    use super::*;
    use ibi::Ibi;

    #[test]
    fn the_form_of_a_line() {
        let names = |text: &str| Names::from(Ibi::parse(text).expect("an identifier"));
        let (item, other) = (names("8JMKD3MGP8W/34PGRBS"), names("8JMKD3MGP8W/34PGRBK"));
        let root = OwnerOnDisk {
            uid: 0,
            gid: Some(0),
        };
        for (event, by, expected) in [
            (
                Event::Mint,
                &root as &dyn Actor,
                "mint 8JMKD3MGP8W/34PGRBS by uid 0",
            ),
            (
                Event::AnnounceSeal,
                &root,
                "announce-seal 8JMKD3MGP8W/34PGRBS by uid 0",
            ),
            (
                Event::Unseal("a typo"),
                &root,
                "unseal 8JMKD3MGP8W/34PGRBS (\"a typo\") by uid 0",
            ),
            (
                Event::Take(&other),
                &Stranger,
                "take 8JMKD3MGP8W/34PGRBS from 8JMKD3MGP8W/34PGRBK by peer",
            ),
            (
                Event::Give(&other),
                &root,
                "give 8JMKD3MGP8W/34PGRBS to 8JMKD3MGP8W/34PGRBK by uid 0",
            ),
            (
                Event::Cancel(&other),
                &root,
                "cancel 8JMKD3MGP8W/34PGRBS to 8JMKD3MGP8W/34PGRBK by uid 0",
            ),
        ] {
            assert_eq!(EventOf(event, &item, by).to_string(), expected);
        }
    }
}
