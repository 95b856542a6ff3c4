//! The formats of files: what is asked of the program, and recorded.

use std::collections::HashMap;

use super::finding::{ScrubCode, ScrubError};
use super::formats::{Unidentified, record_of, recorded_formats};
use super::records::DIRECTORY;
use super::state::Scrub;
use crate::archive::tree::joined;
use crate::formats::fixity::Digest;
use crate::formats::pronom::{self, FORMATS, FormatRecord, Formats};
use crate::os::clock::{Clock, SystemClock};
use crate::os::writing::Durability;

/// The number of files that the program gets at once.
const BATCH: usize = 100;

impl Scrub<'_> {
    /// Has the formats of files identified which had these digests a moment ago, unless they are recorded.
    pub(super) fn formats(
        &mut self,
        item: &str,
        read: Vec<(Vec<u8>, Digest)>,
    ) -> Result<(), ScrubError> {
        let Some(tool) = &self.options.formats else {
            return Ok(());
        };
        let known = record_of(self.tree, item)?;
        for (path, digest) in read {
            let is_known = known
                .get(&path)
                .is_some_and(|it| it.digest == digest && it.tool == tool.version);
            if is_known {
                continue;
            }
            let Ok(file) = self.tree.open_to_read(&joined(item.as_bytes(), &path)) else {
                continue;
            };
            let is_regular = file.metadata().is_ok_and(|it| it.is_file());
            if is_regular {
                self.unidentified.push(Unidentified {
                    item: item.to_owned(),
                    path,
                    digest,
                    file,
                });
            }
        }
        while self.unidentified.len() >= BATCH {
            let rest = self.unidentified.split_off(BATCH);
            let batch = std::mem::replace(&mut self.unidentified, rest);
            self.identify(&batch)?;
        }
        Ok(())
    }

    /// Has those identified that are left at the end.
    pub(super) fn end_formats(&mut self) -> Result<(), ScrubError> {
        let batch = std::mem::take(&mut self.unidentified);
        self.identify(&batch)
    }

    fn identify(&mut self, files: &[Unidentified]) -> Result<(), ScrubError> {
        let (Some(tool), [first, rest @ ..]) = (&self.options.formats, files) else {
            return Ok(());
        };
        let found = match tool.identify(files) {
            Ok(found) => found,
            Err(why) if rest.is_empty() => {
                return self.found(
                    ScrubCode::NotIdentified,
                    &first.item,
                    &first.path,
                    Some(why),
                );
            }
            // One file on which the program fails must not keep it from the others.
            Err(_) => {
                let (one, other) = files.split_at(files.len() / 2);
                self.identify(one)?;
                return self.identify(other);
            }
        };
        let tool = tool.version.clone();
        let day = SystemClock.now().to_rfc3339();
        let day = day.split('T').next().unwrap_or_default();
        let mut new: HashMap<&str, FormatRecord> = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            let Some(puids) = found.get(&number) else {
                self.found(ScrubCode::NotIdentified, &file.item, &file.path, None)?;
                continue;
            };
            let formats = Formats {
                digest: file.digest,
                puids: puids.clone(),
                day: day.to_owned(),
                tool: tool.clone(),
            };
            let record = new.entry(file.item.as_str()).or_default();
            record.insert(file.path.clone(), formats);
            self.tally.identified += 1;
        }
        for (item, new) in new {
            let mut record = recorded_formats(self.tree, item)?;
            record.extend(new);
            let directory = format!("{DIRECTORY}/{item}");
            // If it is lost, the formats are identified again.
            self.tree.write_beside(
                &directory,
                FORMATS,
                &pronom::text(&record),
                Durability::Unsynced,
            )?;
        }
        Ok(())
    }
}
