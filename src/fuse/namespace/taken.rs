//! Items that a program has changed in the store, beside the mount, and that were taken in: what the kernel knows of them
//! is invalidated.

use std::collections::BTreeSet;

use rustix::fs::AtFlags;

use super::Namespace;
use super::invalidation::{Invalidate, Stale};
use crate::archive::{Archive, Taken};
use crate::fuse::inode::{NodeId, NodeKind, ROOT};

impl Namespace {
    /// The Archive of this tree.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Invalidates the names of items that were taken in, above the items, and the attributes of those that have changed.
    pub fn took(&self, cache: &dyn Invalidate, taken: &[Taken]) {
        let mut stale = Vec::new();
        let mut above = BTreeSet::new();
        for outcome in taken {
            let names = match outcome {
                Taken::Arrived(names) | Taken::Removed(names) => names,
                Taken::Changed(names) => {
                    let known = self.known_directory_of(names);
                    stale.extend(known.into_iter().map(Stale::Listing));
                    names
                }
                Taken::Refused(..) => continue,
            };
            if let Some(rep) = names.rep()
                && let Some((level, name)) = rep.as_str().rsplit_once('/')
            {
                above.insert(level.to_owned());
                let years = self.known_level(level);
                stale.extend(years.into_iter().map(|it| Stale::Name(it, name.into())));
            }
            if let Some((prefix, suffix)) = names.ibip().and_then(|it| it.as_str().split_once('/'))
            {
                let kind = NodeKind::Prefix(prefix.to_owned());
                let number = self.nodes.id_of_virtual(&kind);
                if self.nodes.get(number).is_some() {
                    stale.push(Stale::Name(number, suffix.into()));
                    stale.push(Stale::Listing(number));
                } else if above.insert(prefix.to_owned()) {
                    stale.push(Stale::Name(ROOT, prefix.into()));
                }
            }
        }
        let levels = above.iter().filter(|it| it.contains('/'));
        levels.for_each(|level| self.add_levels(level, &mut stale));
        stale.push(Stale::Listing(ROOT));
        cache.invalidate(stale);
    }

    /// The numbers by which the kernel knows a level of reps.
    fn known_level(&self, path: &str) -> Vec<NodeId> {
        match rustix::fs::statat(&self.collection, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => self.nodes.in_all_views(stat.st_dev, stat.st_ino),
            Err(_) => Vec::new(),
        }
    }

    /// Adds the listings of the levels that the kernel knows, down to one, and the name of the first that it does not know:
    /// it may remember that there is none.
    fn add_levels(&self, path: &str, stale: &mut Vec<Stale>) {
        let mut parents = vec![self.nodes.get(ROOT).map_or(ROOT, |root| root.id)];
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let level = path.get(..end).unwrap_or(path);
            let name = level.rsplit_once('/').map_or(level, |(_, name)| name);
            let known = self.known_level(level);
            if known.is_empty() {
                let unknown = |parent: NodeId| Stale::Name(parent, name.into());
                stale.extend(parents.into_iter().map(unknown));
                return;
            }
            stale.extend(known.iter().map(|it| Stale::Listing(*it)));
            parents = known;
        }
    }
}
