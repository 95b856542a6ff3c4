//! The directories above items as a mount of one Archive shows them: as that Archive lists them.

use std::sync::Arc;

use crate::formats::entry::EntryStat;
use crate::formats::level::{LevelName, NameKind};
use crate::formats::tree_name::LevelPath;
use crate::world::error::ForeignError;
use crate::world::mount::nodes::{ForeignNode, ForeignNodeKind, ForeignView};
use crate::world::remote::levels::{Levels, ListingSays, RemoteListing};

/// The level that a node is.
pub(crate) fn path_of(kind: &ForeignNodeKind) -> Option<&LevelPath> {
    match kind {
        ForeignNodeKind::Level(path) => Some(path),
        _ => None,
    }
}

/// Tells what a name below a level is, from what is known. None if the Archive has to be asked.
pub(crate) fn lookup_now(
    levels: &Arc<Levels>,
    parent: &ForeignNode,
    kind: &ForeignNodeKind,
) -> Option<Result<ForeignNodeKind, ForeignError>> {
    let path = path_of(kind)?;
    if levels.held(path).is_some()
        && let Some(known) = levels.now(path)
    {
        return Some(known.map(|listing| spelled(kind, &listing.path)));
    }
    let above = match levels.now(path_of(&parent.kind)?)? {
        Ok(above) => above,
        Err(trouble) => return Some(Err(trouble)),
    };
    match above.level(path.name()) {
        ListingSays::There(found) => {
            let found = above.path.below(&found.name)?;
            Some(Ok(spelled(kind, &found)))
        }
        // A prefix whose items all have a rep is not listed.
        ListingSays::Missing if matches!(path, LevelPath::Prefix(_)) => levels
            .now(path)
            .map(|known| known.map(|listing| spelled(kind, &listing.path))),
        ListingSays::Missing => Some(Err(ForeignError::Missing)),
        ListingSays::Nothing => None,
    }
}

/// Tells what a name below a level is, as the Archive says.
pub(crate) async fn lookup(
    levels: &Arc<Levels>,
    kind: ForeignNodeKind,
) -> Result<ForeignNodeKind, ForeignError> {
    match path_of(&kind) {
        Some(path) => {
            let listing = levels.find(path).await?;
            Ok(spelled(&kind, &listing.path))
        }
        None => Ok(kind),
    }
}

/// The node of a level, or a link to it if it is recorded in another spelling.
fn spelled(kind: &ForeignNodeKind, recorded: &LevelPath) -> ForeignNodeKind {
    let is_recorded = path_of(kind).is_some_and(|path| path.name() == recorded.name());
    if is_recorded {
        kind.clone()
    } else {
        ForeignNodeKind::Link(recorded.name().as_bytes().to_vec())
    }
}

/// Returns what is known of a level.
pub(crate) fn stat(levels: &Levels, kind: &ForeignNodeKind) -> Option<EntryStat> {
    let path = path_of(kind)?;
    if let Some(listing) = levels.held(path) {
        return Some(listing.stat);
    }
    let above = match path.as_str().rsplit_once('/') {
        Some((above, _)) => LevelPath::parse(above)?,
        None => LevelPath::Root,
    };
    match levels.held(&above)?.level(path.name()) {
        ListingSays::There(LevelName {
            kind: NameKind::Level(stat),
            ..
        }) => Some(*stat),
        _ => None,
    }
}

/// The node of a name in a listing. None if it can be none.
pub(crate) fn node_of(listing: &RemoteListing, name: &LevelName) -> Option<ForeignNodeKind> {
    match name.kind {
        NameKind::Level(_) => listing.path.below(&name.name).map(ForeignNodeKind::Level),
        NameKind::Item => {
            let view = ForeignView::below(&listing.path);
            Some(ForeignNodeKind::Unseen(
                listing.path.item_key(&name.name)?,
                view,
            ))
        }
    }
}
