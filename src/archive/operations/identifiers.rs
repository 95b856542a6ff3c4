//! The paths and aliases that are identifiers.

use crate::archive::tree::Area;
use crate::formats::item::Names;
use ibi::{AliasPair, Ibi, Ibip, Rep};

/// Whether an alias is also an IBIp in base 27. IBIps are names of the items that have them. One in base 53
/// may be either: an item has one IBIp, and may have had another before.
pub(super) fn is_ibip(alias: &AliasPair) -> bool {
    Ibip::parse(alias.as_str()).is_ok_and(|ibip| ibip.legacy().is_none())
}

/// The alias that an IBIp in base 53 is, if an item has another IBIp now.
pub(super) fn as_alias(ibip: &Ibip) -> Option<AliasPair> {
    let legacy = ibip.legacy()?;
    AliasPair::parse(legacy.as_str()).ok()
}

/// The names that a path in the tree gives an item, if an item can be at that path.
pub(super) fn names_at(area: Area, path: &str) -> Option<Names> {
    let ibi = match area {
        Area::Col => Ibi::Rep(Rep::parse(path).ok()?),
        Area::Ibip => match Ibi::parse(path) {
            Ok(ibi @ Ibi::Ibip(_)) => ibi,
            _ => return None,
        },
    };
    Some(Names::from(ibi))
}
