//! The names below a level of the Archive that the public may see, in steps of limited work: an Archive has a
//! million items. The root has the levels of reps, and the prefixes of items without a rep; so each item is met once.

use super::Site;
use crate::archive::ArchiveError;
use crate::archive::store::{ItemId, key_after_level, key_after_prefix, level_bounds};
use crate::archive::tree::{Published, shown_to_declare};
use crate::formats::entry::EntryStat;
use crate::formats::item::Names;
use crate::formats::tree_name::LevelPath;
use ibi::ibip::prefix_key;

/// The number of items that are read from the index at a time.
const PAGE: usize = 256;
/// The number of components of a level whose members are items.
const YEAR: usize = 3;
/// The most items below a level of which one has to be public, so that the level is listed. A level with more items is
/// listed in any case: to look at a million hidden ones would take too long.
const MOST_LOOKED_AT: usize = 1000;

/// A member of a level.
pub(super) enum Member {
    /// A level of reps, or a prefix.
    Level(LevelPath, EntryStat),
    /// An item, its name below the level, and its directory.
    Item(Names, String, Box<Published>),
}

/// A part that remains to be looked at.
enum Part {
    /// The names below a level of so many components, as far as they follow a key and come before another.
    Reps {
        depth: usize,
        after: String,
        end: String,
    },
    /// The prefixes of items without a rep, after a key.
    Prefixes(String),
    /// The items with a prefix, after a key.
    Items {
        prefix: String,
        without_rep: bool,
        after: Option<String>,
    },
    Over,
}

/// The members of a level, in the order of the index.
pub(super) struct Members {
    part: Part,
    /// The number of items that it has looked at.
    pub(super) looked_at: usize,
    /// The last item that was looked at, if its name is not shown.
    hidden: Option<ItemId>,
}

impl Members {
    /// All members of a level.
    pub(super) fn of(site: &Site, path: &LevelPath) -> Result<Members, ArchiveError> {
        let part = match path {
            LevelPath::Root | LevelPath::Rep(_) => {
                let (after, end) = level_bounds(path.as_str());
                let depth = depth(path.as_str());
                Part::Reps { depth, after, end }
            }
            LevelPath::Prefix(prefix) => Part::Items {
                without_rep: site.archive.store().has_items_without_rep(prefix)?,
                prefix: prefix.clone(),
                after: None,
            },
        };
        Ok(Members {
            part,
            looked_at: 0,
            hidden: None,
        })
    }

    /// The members after a place. None if it is not a place of this level.
    pub(super) fn after(
        site: &Site,
        path: &LevelPath,
        place: &str,
    ) -> Result<Option<Members>, ArchiveError> {
        let mut members = Members::of(site, path)?;
        let store = site.archive.store();
        let Some((kind, rest)) = place.split_at_checked(1) else {
            return Ok(None);
        };
        let id = || rest.parse().ok().map(ItemId);
        match (kind, &mut members.part) {
            ("l", Part::Reps { after, end, .. }) => {
                if !(after.as_str()..end.as_str()).contains(&rest) {
                    return Ok(None);
                }
                *after = rest.to_owned();
            }
            ("i", Part::Reps { depth, after, end }) => {
                let key = match id() {
                    Some(id) => store.rep_key(id)?,
                    None => None,
                };
                let key = key.filter(|key| *after < *key && *key < *end);
                let Some(key) = key else {
                    return Ok(None);
                };
                *after = after_member(*depth, key);
            }
            ("p", Part::Reps { depth: 0, .. }) => {
                members.part = Part::Prefixes(rest.to_owned());
            }
            ("q", Part::Reps { depth: 0, .. }) => {
                let key = match id() {
                    Some(id) => store.ibip_key(id)?,
                    None => None,
                };
                let Some(after) = key.as_deref().and_then(key_after_prefix) else {
                    return Ok(None);
                };
                members.part = Part::Prefixes(after);
            }
            ("l" | "i", Part::Items { prefix, after, .. }) => {
                let key = match (kind, id()) {
                    ("l", _) => Some(rest.to_owned()),
                    (_, Some(id)) => store.ibip_key(id)?,
                    (_, None) => None,
                };
                let first = format!("{}/", prefix_key(prefix));
                *after = key.filter(|key| key.starts_with(&first));
                if after.is_none() {
                    return Ok(None);
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(members))
    }

    /// The place after what has been looked at. It has no name that the public may not see.
    pub(super) fn place(&self) -> String {
        match (&self.part, self.hidden) {
            (Part::Prefixes(_), Some(ItemId(id))) => format!("q{id}"),
            (_, Some(ItemId(id))) => format!("i{id}"),
            (Part::Prefixes(after), None) => format!("p{after}"),
            (Part::Reps { after, .. }, None) => format!("l{after}"),
            (Part::Items { after, .. }, None) => {
                format!("l{}", after.as_deref().unwrap_or_default())
            }
            (Part::Over, None) => String::new(),
        }
    }

    /// Looks at the next items, and passes on the members that the public may see. Returns false after the last one.
    pub(super) fn next(
        &mut self,
        site: &Site,
        mut visit: impl FnMut(Member),
    ) -> Result<bool, ArchiveError> {
        self.part = match std::mem::replace(&mut self.part, Part::Over) {
            Part::Reps { depth, after, end } if depth < YEAR => {
                self.next_level(site, (depth, after, end), &mut visit)?
            }
            Part::Reps { depth, after, end } => {
                self.items_of_year(site, (depth, after, end), &mut visit)?
            }
            Part::Prefixes(after) => self.next_prefix(site, &after, &mut visit)?,
            Part::Items {
                prefix,
                without_rep,
                after,
            } => self.items_of_prefix(site, prefix, without_rep, after, &mut visit)?,
            Part::Over => return Ok(false),
        };
        Ok(!matches!(self.part, Part::Over))
    }

    /// The next level below one of so many components.
    fn next_level(
        &mut self,
        site: &Site,
        (depth, after, end): (usize, String, String),
        visit: &mut impl FnMut(Member),
    ) -> Result<Part, ArchiveError> {
        let rows = site.archive.store().rep_page(&after, &end, 1)?;
        self.hidden = None;
        let Some(row) = rows.into_iter().next() else {
            return Ok(match depth {
                0 => Part::Prefixes(String::new()),
                _ => Part::Over,
            });
        };
        self.hidden = Some(row.item);
        if let Some(rep) = row.names.as_ref().and_then(Names::rep) {
            let path = rep.components().get(..=depth).unwrap_or_default().join("/");
            if let Some(LevelPath::Rep(path)) = LevelPath::parse(&path)
                && let Some(stat) = self.stat(site, &path)?
            {
                self.hidden = None;
                visit(Member::Level(LevelPath::Rep(path), stat));
            }
        }
        self.looked_at += 1;
        let after = after_member(depth, row.key);
        Ok(Part::Reps { depth, after, end })
    }

    /// Returns what is known of a level of reps, if it is listed.
    fn stat(&mut self, site: &Site, path: &str) -> Result<Option<EntryStat>, ArchiveError> {
        let path = LevelPath::Rep(path.to_owned());
        let (stat, count) = visible(site, &path, false)?;
        self.looked_at += count;
        Ok(stat)
    }

    fn items_of_year(
        &mut self,
        site: &Site,
        (depth, after, end): (usize, String, String),
        visit: &mut impl FnMut(Member),
    ) -> Result<Part, ArchiveError> {
        let rows = site.archive.store().rep_page(&after, &end, PAGE)?;
        self.looked_at += rows.len();
        for row in &rows {
            self.hidden = Some(row.item);
            if let Some(names) = &row.names
                && let Some(rep) = names.rep()
                && let Some(name) = rep.components().get(depth)
                && let Some(found) = site.public().visible_item(names)?
            {
                self.hidden = None;
                let name = (*name).to_owned();
                visit(Member::Item(names.clone(), name, Box::new(found)));
            }
        }
        Ok(match rows.into_iter().next_back() {
            Some(row) => Part::Reps {
                depth,
                after: row.key,
                end,
            },
            None => Part::Over,
        })
    }

    fn next_prefix(
        &mut self,
        site: &Site,
        after: &str,
        visit: &mut impl FnMut(Member),
    ) -> Result<Part, ArchiveError> {
        self.hidden = None;
        let Some(found) = site.archive.store().prefix_after(true, after)? else {
            return Ok(Part::Over);
        };
        self.hidden = Some(found.item);
        if let Some(path @ LevelPath::Prefix(_)) = LevelPath::parse(&found.prefix) {
            let (stat, count) = visible(site, &path, true)?;
            self.looked_at += count;
            if let Some(stat) = stat {
                self.hidden = None;
                visit(Member::Level(path, stat));
            }
        }
        self.looked_at += 1;
        Ok(Part::Prefixes(found.after))
    }

    fn items_of_prefix(
        &mut self,
        site: &Site,
        prefix: String,
        without_rep: bool,
        after: Option<String>,
        visit: &mut impl FnMut(Member),
    ) -> Result<Part, ArchiveError> {
        let store = site.archive.store();
        let rows = store.prefix_page(&prefix, without_rep, after.as_deref(), PAGE)?;
        self.looked_at += rows.len();
        for row in &rows {
            self.hidden = Some(row.item);
            if let Some(ibip) = row.names.ibip()
                && let Some(found) = site.public().visible_item(&row.names)?
            {
                self.hidden = None;
                let name = ibip.suffix().to_owned();
                visit(Member::Item(row.names.clone(), name, Box::new(found)));
            }
        }
        Ok(match rows.into_iter().next_back() {
            Some(row) => Part::Items {
                prefix,
                without_rep,
                after: Some(row.key),
            },
            None => Part::Over,
        })
    }
}

fn depth(path: &str) -> usize {
    if path.is_empty() {
        0
    } else {
        path.split('/').count()
    }
}

/// The place after a name below a level of so many components, by the key of an item below that name.
fn after_member(depth: usize, key: String) -> String {
    if depth < YEAR {
        key_after_level(&key, depth + 1).unwrap_or(key)
    } else {
        key
    }
}

/// Returns what is known of a level, if it is listed, or found: a prefix is listed for its items without a rep, and
/// found for all of them. Also returns how many items were looked at.
pub(super) fn visible(
    site: &Site,
    path: &LevelPath,
    is_listed: bool,
) -> Result<(Option<EntryStat>, usize), ArchiveError> {
    let directory = match path {
        // The directory has the spelling that is recorded.
        LevelPath::Rep(path) => match site.archive.store().spelling_of_level(path)? {
            Some(recorded) => recorded,
            None => return Ok((None, 1)),
        },
        // The mount shows a prefix with the times and permissions of the root.
        LevelPath::Root | LevelPath::Prefix(_) => String::new(),
    };
    let Some(mut stat) = site.public().visible_level(&directory)? else {
        return Ok((None, 1));
    };
    if path.has_items() {
        stat.mode = shown_to_declare(stat.mode);
    }
    let (is_shown, count) = match path {
        LevelPath::Root => (true, 0),
        LevelPath::Rep(path) => is_level_shown(site, path)?,
        LevelPath::Prefix(prefix) => is_prefix_shown(site, prefix, is_listed)?,
    };
    Ok((is_shown.then_some(stat), count + 1))
}

fn is_level_shown(site: &Site, level: &str) -> Result<(bool, usize), ArchiveError> {
    let (start, end) = level_bounds(level);
    let mut after = start;
    any_public(site, |most| {
        let rows = site.archive.store().rep_page(&after, &end, most)?;
        if let Some(row) = rows.last() {
            after.clone_from(&row.key);
        }
        Ok(rows.into_iter().map(|row| row.names).collect())
    })
}

fn is_prefix_shown(
    site: &Site,
    prefix: &str,
    without_rep: bool,
) -> Result<(bool, usize), ArchiveError> {
    let mut after: Option<String> = None;
    any_public(site, |most| {
        let store = site.archive.store();
        let rows = store.prefix_page(prefix, without_rep, after.as_deref(), most)?;
        if let Some(row) = rows.last() {
            after = Some(row.key.clone());
        }
        Ok(rows.into_iter().map(|row| Some(row.names)).collect())
    })
}

/// Whether one of the items is public that `next` returns, so many at a time, and how many were looked at.
fn any_public(
    site: &Site,
    mut next: impl FnMut(usize) -> Result<Vec<Option<Names>>, ArchiveError>,
) -> Result<(bool, usize), ArchiveError> {
    // The first item is nearly always public.
    let (mut count, mut most) = (0, 1);
    loop {
        let items = next(most)?;
        for names in items.iter().flatten() {
            if site.public().visible_item(names)?.is_some() {
                return Ok((true, count + 1));
            }
        }
        count += items.len();
        if items.len() < most {
            return Ok((false, count));
        }
        if count > MOST_LOOKED_AT {
            return Ok((true, count));
        }
        most = MOST_LOOKED_AT / 10;
    }
}
