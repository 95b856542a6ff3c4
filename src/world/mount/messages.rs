//! Questions to the process of a cache, and its answers: lines of words, percent-encoded.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;

use crate::formats::base_url::BaseUrl;
use crate::world::mount::settings::WorldSettings;
use ibi::Ibi;
use ibi::pairs::{percent_decode, percent_encode};

/// The first line: the form of the messages.
const FORM: &str = "ibifs-world 1";
/// The longest request in bytes.
pub(crate) const LONGEST: u64 = 4 << 20;

/// An action on items in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAction {
    /// They are fetched.
    Fetch,
    /// They are fetched, and stay.
    Pin,
    /// They are removed.
    Drop,
}

/// A question to the process of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessTask {
    /// A mount, there.
    Mount(PathBuf, WorldSettings),
    /// Something with items, by the mount with this number.
    Keep(KeepAction, u64, Vec<Ibi>),
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The files that the asking process sees: the same for those who see the same.
    pub(crate) view: String,
    /// The question.
    pub(crate) asked: ProcessTask,
}

/// The reason why something was not done with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepError {
    /// An Archive or a resolver says that there is no such item, or it is not in the cache.
    Missing,
    /// It takes so many bytes, and only so many more can be in the cache, or be pinned.
    TooLarge(u64, u64),
    /// Another reason.
    Failed(String),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is mounted and usable.
    Ready,
    /// It is no longer mounted.
    Ended,
    /// It was refused.
    Refused(String),
    /// It was refused since the two processes see other files.
    Elsewhere,
    /// So many bytes of so many are there.
    Progress(u64, u64),
    /// It was done with an item of so many files and bytes.
    Item(Ibi, u64, u64),
    /// It was not done with an item.
    ForeignError(Ibi, KeepError),
    /// All has been done.
    Done,
}

fn path_word(path: &Path) -> String {
    percent_encode(path.as_os_str().as_bytes())
}

fn path_of(word: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(percent_decode(word)))
}

fn text_of(word: &str) -> Option<String> {
    String::from_utf8(percent_decode(word)).ok()
}

impl KeepAction {
    fn word(self) -> &'static str {
        match self {
            KeepAction::Fetch => "fetch",
            KeepAction::Pin => "pin",
            KeepAction::Drop => "drop",
        }
    }

    fn parse(word: &str) -> Option<KeepAction> {
        let all = [KeepAction::Fetch, KeepAction::Pin, KeepAction::Drop];
        all.into_iter().find(|action| action.word() == word)
    }
}

impl Question {
    /// The question as it is sent.
    pub(crate) fn written(&self) -> String {
        let mut text = format!("{FORM}\nview {}\n", percent_encode(self.view.as_bytes()));
        let mut add = |name: &str, value: &str| text.push_str(&format!("{name} {value}\n"));
        match &self.asked {
            ProcessTask::Mount(path, settings) => {
                add("mount", &path_word(path));
                for (name, all) in [
                    ("resolver", &settings.resolvers),
                    ("archive", &settings.archives),
                ] {
                    for url in all {
                        add(name, &percent_encode(url.to_string().as_bytes()));
                    }
                }
                add("cache", &path_word(&settings.cache));
                if let Some(limit) = settings.limit {
                    add("limit", &limit.to_string());
                }
                if let Some(file) = &settings.ca_file {
                    add("ca-file", &path_word(file));
                }
                add("listed", &settings.is_listed.to_string());
                add("flags", &settings.flags.bits().to_string());
                add("private", &settings.allows_private.to_string());
                add("others", &settings.allow_other.to_string());
            }
            ProcessTask::Keep(action, mount, items) => {
                add(action.word(), &mount.to_string());
                for item in items {
                    add("item", &percent_encode(item.to_string().as_bytes()));
                }
            }
        }
        text.push_str("end\n");
        text
    }

    /// The question that was sent. None if it is another form, or was cut off.
    pub(crate) fn parse(text: &str) -> Option<Question> {
        let mut lines = text.strip_suffix("end\n")?.lines();
        if lines.next() != Some(FORM) {
            return None;
        }
        let view = text_of(lines.next()?.strip_prefix("view ")?)?;
        let (name, value) = lines.next()?.split_once(' ')?;
        let rest = lines.map(|line| line.split_once(' '));
        let rest = rest.collect::<Option<Vec<_>>>()?;
        if let Some(action) = KeepAction::parse(name) {
            let items = rest.into_iter().map(|(name, item)| {
                let item = text_of(item).filter(|_| name == "item")?;
                Ibi::parse(&item).ok()
            });
            let asked =
                ProcessTask::Keep(action, value.parse().ok()?, items.collect::<Option<_>>()?);
            return Some(Question { view, asked });
        }
        if name != "mount" {
            return None;
        }
        let mount_point = path_of(value);
        let mut settings = WorldSettings {
            resolvers: Vec::new(),
            archives: Vec::new(),
            is_listed: false,
            flags: WorldSettings::FLAGS,
            cache: PathBuf::new(),
            limit: None,
            allows_private: false,
            allow_other: false,
            ca_file: None,
        };
        let url = |value: &str| BaseUrl::parse(&text_of(value)?).ok();
        for (name, value) in rest {
            match name {
                "resolver" => settings.resolvers.push(url(value)?),
                "archive" => settings.archives.push(url(value)?),
                "cache" => settings.cache = path_of(value),
                "limit" => settings.limit = Some(value.parse().ok()?),
                "ca-file" => settings.ca_file = Some(path_of(value)),
                "listed" => settings.is_listed = value.parse().ok()?,
                "flags" => settings.flags |= MountFlags::from_bits(value.parse().ok()?)?,
                "private" => settings.allows_private = value.parse().ok()?,
                "others" => settings.allow_other = value.parse().ok()?,
                _ => return None,
            }
        }
        let asked = ProcessTask::Mount(mount_point, settings);
        Some(Question { view, asked })
    }
}

impl Answer {
    /// The answer as it is sent, a line.
    pub(crate) fn written(&self) -> String {
        let encoded = |text: &str| percent_encode(text.as_bytes());
        let mut line = match self {
            Answer::Ready => "ready".to_owned(),
            Answer::Ended => "ended".to_owned(),
            Answer::Refused(why) => format!("refused {}", encoded(why)),
            Answer::Elsewhere => "elsewhere".to_owned(),
            Answer::Progress(done, all) => format!("progress {done} {all}"),
            Answer::Item(ibi, files, bytes) => {
                format!("item {} {files} {bytes}", encoded(&ibi.to_string()))
            }
            Answer::ForeignError(ibi, error) => {
                let ibi = encoded(&ibi.to_string());
                match error {
                    KeepError::Missing => format!("missing {ibi}"),
                    KeepError::TooLarge(need, room) => format!("large {ibi} {need} {room}"),
                    KeepError::Failed(why) => format!("failed {ibi} {}", encoded(why)),
                }
            }
            Answer::Done => "done".to_owned(),
        };
        line.push('\n');
        line
    }

    /// The answer in a line.
    pub(crate) fn parse(line: &str) -> Option<Answer> {
        let words: Vec<&str> = line.split_terminator('\n').next()?.split(' ').collect();
        let ibi = |word: &str| Ibi::parse(&text_of(word)?).ok();
        let number = |word: &str| word.parse::<u64>().ok();
        Some(match words[..] {
            ["ready"] => Answer::Ready,
            ["ended"] => Answer::Ended,
            ["refused", why] => Answer::Refused(text_of(why)?),
            ["elsewhere"] => Answer::Elsewhere,
            ["progress", done, all] => Answer::Progress(number(done)?, number(all)?),
            ["item", item, files, bytes] => {
                Answer::Item(ibi(item)?, number(files)?, number(bytes)?)
            }
            ["missing", item] => Answer::ForeignError(ibi(item)?, KeepError::Missing),
            ["large", item, need, room] => {
                let error = KeepError::TooLarge(number(need)?, number(room)?);
                Answer::ForeignError(ibi(item)?, error)
            }
            ["failed", item, why] => {
                Answer::ForeignError(ibi(item)?, KeepError::Failed(text_of(why)?))
            }
            ["done"] => Answer::Done,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ibi() -> Ibi {
        Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an identifier")
    }

    #[test]
    fn what_is_written_is_read() {
        let url = |text: &str| BaseUrl::parse(text).expect("a URL");
        let settings = WorldSettings {
            resolvers: vec![url("http://a.org"), url("https://b.org:8080/x")],
            archives: vec![url("http://[::1]:80")],
            is_listed: true,
            flags: WorldSettings::FLAGS | MountFlags::NOEXEC,
            cache: OsString::from_vec(b"/a b\n/\xff".to_vec()).into(),
            limit: Some(64 << 20),
            allows_private: true,
            allow_other: false,
            ca_file: Some("/ca.pem".into()),
        };
        for asked in [
            ProcessTask::Mount("/mnt/a b".into(), settings),
            ProcessTask::Keep(KeepAction::Pin, 7, vec![ibi(), ibi()]),
            ProcessTask::Keep(KeepAction::Drop, 7, Vec::new()),
        ] {
            let view = "mnt:[4026531841] 1".to_owned();
            let question = Question { view, asked };
            let text = question.written();
            assert_eq!(Question::parse(&text), Some(question), "{text}");
            for end in 0..text.len() {
                assert_eq!(Question::parse(&text[..end]), None, "{end}");
            }
        }
        for answer in [
            Answer::Ready,
            Answer::Ended,
            Answer::Refused("a\nb c".to_owned()),
            Answer::Refused(String::new()),
            Answer::Elsewhere,
            Answer::Progress(1, 2),
            Answer::Item(ibi(), 3, 4),
            Answer::ForeignError(ibi(), KeepError::Missing),
            Answer::ForeignError(ibi(), KeepError::TooLarge(5, 6)),
            Answer::ForeignError(ibi(), KeepError::Failed("no answer".to_owned())),
            Answer::Done,
        ] {
            assert_eq!(Answer::parse(&answer.written()), Some(answer));
        }
        for bad in ["", "item x 1 2\n", "progress 1\n", "READY\n"] {
            assert_eq!(Answer::parse(bad), None, "{bad}");
        }
    }
}
