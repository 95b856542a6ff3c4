//! The directories above items as a mount of one Archive shows them: as that Archive lists them.

use std::sync::Arc;

use crate::formats::level::{LevelName, LevelPath, LevelStat, NameKind};
use crate::world::mount::nodes::{Node, NodeKind, View};
use crate::world::remote::levels::{Levels, Listing, Said};
use crate::world::trouble::Trouble;

/// The level that a node is.
pub(crate) fn path_of(kind: &NodeKind) -> Option<LevelPath> {
    match kind {
        NodeKind::Root => Some(LevelPath::Root),
        NodeKind::Level(path) => Some(LevelPath::Rep(path.clone())),
        NodeKind::Prefix(prefix) => Some(LevelPath::Prefix(prefix.clone())),
        _ => None,
    }
}

/// Tells what a name below a level is, from what is known. None if the Archive has to be asked.
pub(crate) fn lookup_now(
    levels: &Arc<Levels>,
    parent: &Node,
    kind: &NodeKind,
) -> Option<Result<NodeKind, Trouble>> {
    let path = path_of(kind)?;
    if levels.held(&path).is_some()
        && let Some(known) = levels.now(&path)
    {
        return Some(known.map(|listing| spelled(kind, &listing.path)));
    }
    let above = match levels.now(&path_of(&parent.kind)?)? {
        Ok(above) => above,
        Err(trouble) => return Some(Err(trouble)),
    };
    match above.level(path.name()) {
        Said::There(found) => {
            let found = above.path.below(&found.name)?;
            Some(Ok(spelled(kind, &found)))
        }
        // A prefix whose items all have a rep is not listed.
        Said::Missing if matches!(path, LevelPath::Prefix(_)) => levels
            .now(&path)
            .map(|known| known.map(|listing| spelled(kind, &listing.path))),
        Said::Missing => Some(Err(Trouble::Missing)),
        Said::Nothing => None,
    }
}

/// Tells what a name below a level is, as the Archive says.
pub(crate) async fn lookup(levels: &Arc<Levels>, kind: NodeKind) -> Result<NodeKind, Trouble> {
    match path_of(&kind) {
        Some(path) => {
            let listing = levels.find(&path).await?;
            Ok(spelled(&kind, &listing.path))
        }
        None => Ok(kind),
    }
}

/// The node of a level, or a link to it if it is recorded in another spelling.
fn spelled(kind: &NodeKind, recorded: &LevelPath) -> NodeKind {
    let is_recorded = path_of(kind).is_some_and(|path| path.name() == recorded.name());
    if is_recorded {
        kind.clone()
    } else {
        NodeKind::Link(recorded.name().as_bytes().to_vec())
    }
}

/// Returns what is known of a level.
pub(crate) fn stat(levels: &Levels, kind: &NodeKind) -> Option<LevelStat> {
    let path = path_of(kind)?;
    if let Some(listing) = levels.held(&path) {
        return Some(listing.stat);
    }
    let above = match path.as_str().rsplit_once('/') {
        Some((above, _)) => LevelPath::parse(above)?,
        None => LevelPath::Root,
    };
    match levels.held(&above)?.level(path.name()) {
        Said::There(LevelName {
            kind: NameKind::Level(stat),
            ..
        }) => Some(*stat),
        _ => None,
    }
}

/// The node of a name in a listing. None if it can be none.
pub(crate) fn node_of(listing: &Listing, name: &LevelName) -> Option<NodeKind> {
    match name.kind {
        NameKind::Level(_) => Some(match listing.path.below(&name.name)? {
            LevelPath::Prefix(prefix) => NodeKind::Prefix(prefix),
            LevelPath::Rep(path) => NodeKind::Level(path),
            LevelPath::Root => return None,
        }),
        NameKind::Item => {
            let view = match listing.path {
                LevelPath::Prefix(_) => View::Ibip,
                _ => View::Rep,
            };
            Some(NodeKind::Unseen(listing.path.item_key(&name.name)?, view))
        }
    }
}
