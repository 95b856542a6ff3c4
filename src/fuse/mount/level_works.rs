//! The question of `ibifs work`: a program is about to change a level of the tree in the store itself.
//!
//! The daemon answers processes that can write in the level: they could change it as well without asking. It takes in what
//! they leave for the owners of the files (`archive/operations/work.rs`), also if the asking process is killed.

use super::conversation::{Asked, Conversation};
use crate::archive::{ArchiveError, LevelWork, Taken};
use crate::formats::question::Line;
use ibi::message;
use ibi::message::Localize;

/// Answers a question for a level, such as `col/example.org`: first that it may change, and when the command has ended or
/// written anything, what was taken in.
pub(super) fn answer(asked: &Asked, level: &str, to: &mut Conversation<'_>) -> std::io::Result<()> {
    if !asked.takes_work {
        let why = message!("the mount is read-only, or its store is on several hosts");
        return to.fail(&why);
    }
    let peer = *to.peer.caller();
    let work = match asked.changes.archive().keeper().begin_work(level, &peer) {
        Ok(work) => work,
        Err(error) => return to.fail(&error.message()),
    };
    log::info!("{level} is worked in beside the mount, by uid {}", peer.uid);
    if to.send_now(&Line::new("ready")).is_ok() {
        to.wait_for_end()?;
    }
    if to.is_ending() {
        return Ok(());
    }
    let ended = end(asked, work, to);
    if to.is_ending() {
        // It was stopped before its end.
        return Ok(());
    }
    // The process that asked may be gone.
    match ended {
        Ok(()) => to.send_now(&Line::new("done")),
        Err(error) => {
            log::error!("{level} is read again at the next start: {error}");
            to.fail(&error.message())
        }
    }
}

fn end(asked: &Asked, work: LevelWork, to: &mut Conversation<'_>) -> Result<(), ArchiveError> {
    let mut count = (0, 0, 0);
    let peer = *to.peer.caller();
    let keeper = asked.changes.archive().keeper();
    keeper.end_work(work, &peer, &mut |taken, read| {
        asked.changes.took(taken);
        for outcome in taken {
            match outcome {
                Taken::Arrived(_) => count.0 += 1,
                Taken::Changed(_) => count.1 += 1,
                Taken::Removed(_) => count.2 += 1,
                Taken::Refused(path, why) => {
                    log::warn!("{path} is refused: {why}");
                    let refused = Line::new("refused").with("path", path);
                    let _ = to.send(&refused.with("why", why));
                }
            }
        }
        let _ = to.send_now(&Line::new("read").with("count", read));
        !to.is_ending()
    })?;
    let (arrived, changed, removed) = count;
    log::info!("taken in: {arrived} items arrived, {changed} changed, {removed} removed");
    Ok(())
}
