//! Mount options: parsing of `-o`, and the flags for the kernel.

use std::path::Path;

use fuser::Session;
use rustix::mount::MountFlags;

use super::MountError;
use super::attach::Attachment;
use super::error::OPTION_NAMES;
use super::world_options::WorldOptions;
use crate::fuse::fs::Ibifs;
use crate::fuse::namespace::FALLBACK;
use crate::os::access_times::AccessTimes;
use ibi::relation::Language;

/// Options of fstab(5) that concern mount(8) and systemd, or that always apply. They are accepted and
/// ignored.
const PASSED_OVER: [&str; 23] = [
    "defaults",
    "default_permissions",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "nouser",
    "users",
    "owner",
    "nousers",
    "noowner",
    "group",
    "nogroup",
    "comment",
    "iversion",
    "noiversion",
    "nomand",
    "silent",
    "loud",
    // The source and the type in the table of mounts are how ibifs itself finds a mount.
    "fsname",
    "subtype",
    // An option of fuse(8) before version 3.
    "nonempty",
];

/// Options of mount(8) with the flags of the kernel that each sets, and those that it clears.
const FLAGS: [(&str, MountFlags, MountFlags); 23] = {
    use MountFlags as F;
    const NONE: MountFlags = F::empty();
    [
        ("ro", F::RDONLY, NONE),
        ("rw", NONE, F::RDONLY),
        ("suid", NONE, F::NOSUID),
        ("nosuid", F::NOSUID, NONE),
        ("dev", NONE, F::NODEV),
        ("nodev", F::NODEV, NONE),
        ("exec", NONE, F::NOEXEC),
        ("noexec", F::NOEXEC, NONE),
        ("atime", NONE, F::NOATIME),
        ("noatime", F::NOATIME, F::RELATIME.union(F::STRICTATIME)),
        ("relatime", F::RELATIME, F::NOATIME.union(F::STRICTATIME)),
        ("norelatime", NONE, F::RELATIME),
        ("strictatime", F::STRICTATIME, F::NOATIME.union(F::RELATIME)),
        ("nostrictatime", NONE, F::STRICTATIME),
        ("diratime", NONE, F::NODIRATIME),
        ("nodiratime", F::NODIRATIME, NONE),
        ("lazytime", F::LAZYTIME, NONE),
        ("nolazytime", NONE, F::LAZYTIME),
        ("symfollow", NONE, F::NOSYMFOLLOW),
        ("nosymfollow", F::NOSYMFOLLOW, NONE),
        ("sync", F::SYNCHRONOUS, NONE),
        ("async", NONE, F::SYNCHRONOUS),
        ("dirsync", F::DIRSYNC, NONE),
    ]
};

/// Whether an option is for other programs.
fn is_passed_over(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    PASSED_OVER.contains(&name) || name.starts_with("x-") || name.starts_with("X-")
}

/// The options of a mount.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The languages that `+` prefers.
    pub languages: Vec<Language>,
    /// Whether listings show all names.
    pub list_all: bool,
    /// Whether modifiers answer to names that every filesystem can carry.
    pub portable_names: bool,
    /// Whether the kernel may read and write files without the daemon.
    pub passthrough: bool,
    /// Whether a worker thread may be bound to the processor of the thread that it serves.
    pub placement: bool,
    /// Whether other users may access the mount. The default for root is yes, as with any filesystem. Each
    /// access is checked with the caller's credentials.
    pub allow_other: bool,
    /// The log level, if given.
    pub log: Option<log::LevelFilter>,
    /// The items of other Archives that are shown.
    pub world: WorldOptions,
    /// Whether other hosts may have the store mounted, too.
    pub shared: bool,
    /// The flags for the kernel.
    flags: MountFlags,
}

impl Settings {
    /// Parses the values of `-o`. The default languages are the user's own, from LANGUAGE, LC_ALL,
    /// LC_MESSAGES and LANG as `variable` returns them.
    pub fn parse(
        texts: &[String],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, MountError> {
        let mut settings = Settings {
            languages: Vec::new(),
            list_all: false,
            portable_names: false,
            passthrough: true,
            placement: true,
            allow_other: rustix::process::geteuid().is_root(),
            log: None,
            world: WorldOptions::default(),
            shared: false,
            flags: MountFlags::NOSUID | MountFlags::NODEV,
        };
        // `lang=pt-BR,pt,en`, `world=URL,URL`: a word that is a value and not an option continues the list.
        let mut in_languages = false;
        let mut in_world = false;
        for word in texts.iter().flat_map(|text| text.split(',')) {
            if word.is_empty() {
                continue;
            }
            if is_passed_over(word) {
                (in_languages, in_world) = (false, false);
                continue;
            }
            if in_languages
                && !OPTION_NAMES.contains(&word)
                && let Ok(language) = Language::parse(word)
            {
                settings.languages.push(language);
                continue;
            }
            if in_world
                && !OPTION_NAMES.contains(&word)
                && settings.world.take_world(word).is_some()
            {
                continue;
            }
            in_languages = word.starts_with("lang=");
            in_world = word.starts_with("world=");
            settings.take(word)?;
        }
        if settings.languages.is_empty() {
            settings.languages = languages_of_user(variable);
        }
        Ok(settings)
    }

    fn take(&mut self, word: &str) -> Result<(), MountError> {
        let refuse = || MountError::Option {
            text: word.to_owned(),
        };
        match word.split_once('=') {
            Some(("lang", list)) => {
                for language in list.split(':').filter(|part| !part.is_empty()) {
                    let language = Language::parse(language).map_err(|_| refuse())?;
                    self.languages.push(language);
                }
            }
            Some(("list", "all")) => self.list_all = true,
            Some(("list", "items")) => self.list_all = false,
            Some(("log", level @ ("error" | "warn" | "info" | "debug"))) => {
                self.log = level.parse().ok();
            }
            Some(("passthrough", "yes")) => self.passthrough = true,
            Some(("passthrough", "no")) => self.passthrough = false,
            Some(("placement", "yes")) => self.placement = true,
            Some(("placement", "no")) => self.placement = false,
            Some(("allow_other", "yes")) => self.allow_other = true,
            Some(("allow_other", "no")) => self.allow_other = false,
            Some((name, value)) => self.world.take(name, value).ok_or_else(refuse)?,
            None => match word {
                "allow_other" => self.allow_other = true,
                "world-allow-private" => self.world.allows_private = true,
                "portable-names" => self.portable_names = true,
                // mount(8) takes the first for itself.
                "shared" | "shared-store" => self.shared = true,
                // As with mount(8), the last of two options that exclude each other applies.
                _ => {
                    let known = FLAGS.iter().find(|(name, ..)| *name == word);
                    let (_, set, cleared) = known.ok_or_else(refuse)?;
                    self.flags = (self.flags - *cleared) | *set;
                }
            },
        }
        Ok(())
    }
}

impl Settings {
    /// Mounts the file system of a store.
    pub(super) fn attach(
        &self,
        filesystem: Ibifs,
        store: &Path,
        mount_point: &Path,
    ) -> Result<Session<Ibifs>, MountError> {
        let attachment = Attachment {
            source: store,
            subtype: "ibifs",
            flags: self.flags,
            allow_other: self.allow_other,
            threads: crate::fuse::fs::threads(),
        };
        attachment.attach(filesystem, mount_point)
    }

    /// Checks that a mount may get these flags: one in which names that do not exist lead somewhere stays read-only.
    pub fn check_remount(&self, mount_point: &Path) -> Result<(), MountError> {
        let fallback = rustix::fs::getxattr(mount_point, FALLBACK, &mut [0; 8][..]);
        if fallback.is_ok() && !self.is_read_only() {
            return Err(MountError::Fallback);
        }
        Ok(())
    }

    /// Changes the kernel's flags of a mount, such as read-only.
    pub fn remount(&self, mount_point: &Path) -> std::io::Result<()> {
        rustix::mount::mount_remount(mount_point, self.flags, "")?;
        Ok(())
    }

    /// Checks that the options can be together.
    pub(super) fn check(&self) -> Result<(), MountError> {
        self.world.check(self.is_read_only())
    }

    /// Whether the mount is read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(MountFlags::RDONLY)
    }

    /// Returns what reading does to times of access in a store.
    pub(super) fn access_times(&self, store: &Path) -> AccessTimes {
        if self.flags.contains(MountFlags::NOATIME) {
            AccessTimes::not_kept(store)
        } else {
            AccessTimes::kept()
        }
    }

    /// The flags for the kernel.
    #[must_use]
    pub fn flags(&self) -> MountFlags {
        self.flags
    }
}

fn languages_of_user(variable: impl Fn(&str) -> Option<String>) -> Vec<Language> {
    let first = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let list = variable("LANGUAGE").unwrap_or_default();
    let mut languages = Vec::new();
    for locale in list.split(':').chain(first.as_deref()) {
        // As in gettext: if there is no text in fr_FR, any other French is used.
        let exact = Language::from_locale(locale);
        let any_country = exact.map(|language| language.without_country());
        for language in [exact, any_country].into_iter().flatten() {
            if !languages.contains(&language) {
                languages.push(language);
            }
        }
    }
    languages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn settings(texts: &[&str], environment: &[(&str, &str)]) -> Result<Settings, MountError> {
        let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
        Settings::parse(&texts, |name| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    fn languages(texts: &[&str], environment: &[(&str, &str)]) -> String {
        let languages = settings(texts, environment)
            .expect("good options")
            .languages;
        languages
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn the_words_of_completion_are_options() {
        let words: Vec<String> = super::super::option_words().collect();
        for word in &words {
            assert!(settings(&[word], &[]).is_ok(), "{word}");
        }
        for word in [
            "ro",
            "list=all",
            "log=debug",
            "allow_other",
            "portable-names",
        ] {
            assert!(words.iter().any(|it| it == word), "{word}");
        }
        let has_values = |name: &&str| words.iter().any(|it| it.starts_with(*name));
        // The values of these are the user's.
        let is_free = |name: &&str| name.starts_with("world-") && name.ends_with('=');
        assert!(
            OPTION_NAMES
                .iter()
                .all(|name| is_free(name) || has_values(name))
        );
    }

    #[test]
    fn languages_come_from_the_option_or_the_environment() {
        assert_eq!(languages(&["lang=pt-BR,pt,en"], &[]), "pt-BR pt en");
        assert_eq!(languages(&["lang=pt,ro"], &[]), "pt");
        assert_eq!(languages(&["lang=pt:ro,allow_other"], &[]), "pt ro");
        assert_eq!(
            languages(&[], &[("LANGUAGE", "pt_BR:en"), ("LANG", "en_US.UTF-8")]),
            "pt-BR pt en en-US"
        );
        assert_eq!(languages(&[], &[("LANG", "C.UTF-8")]), "");
        assert_eq!(
            languages(&["ro"], &[("LC_ALL", "fr_FR"), ("LANG", "en_US")]),
            "fr-FR fr"
        );
    }

    #[test]
    fn the_last_of_two_options_counts() {
        let flags = |text: &str| {
            let always = MountFlags::NOSUID | MountFlags::NODEV;
            settings(&[text], &[]).expect("good options").flags - always
        };
        for (given, expected) in [
            ("noatime,relatime", MountFlags::RELATIME),
            ("relatime,strictatime,noatime", MountFlags::NOATIME),
            ("noatime,strictatime", MountFlags::STRICTATIME),
            (
                "strictatime,nostrictatime,relatime,norelatime",
                MountFlags::empty(),
            ),
            (
                "lazytime,nolazytime,symfollow,nosymfollow",
                MountFlags::NOSYMFOLLOW,
            ),
            (
                "dirsync,sync,async,ro",
                MountFlags::DIRSYNC | MountFlags::RDONLY,
            ),
            ("noexec,exec,ro,rw,nodiratime", MountFlags::NODIRATIME),
        ] {
            assert_eq!(flags(given), expected, "{given}");
        }
        let both = settings(&["suid,dev"], &[]).expect("good options").flags;
        assert_eq!(both, MountFlags::empty());
    }

    #[test]
    fn other_archives_are_named_by_their_urls() {
        let given = "ro,world=https://a.org,https://b.org/r,fallback,noatime,world=http://c.org";
        let world = settings(&[given, "world-archive=http://d.org:8080"], &[])
            .expect("good options")
            .world;
        let urls = |urls: &[crate::formats::base_url::BaseUrl]| -> Vec<String> {
            urls.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            urls(&world.resolvers),
            ["https://a.org", "https://b.org/r", "http://c.org"]
        );
        assert_eq!(urls(&world.archives), ["http://d.org:8080"]);
        assert!(world.fallback && !world.allows_private);
        let cache = settings(&["world=fallback,world-cache=/c,world-cache-size=1G"], &[]);
        let cache = cache.expect("good options").world;
        assert_eq!(cache.cache.as_deref(), Some(Path::new("/c")));
        assert_eq!(cache.cache_size.as_deref(), Some("1G"));
        for refused in [
            "world=",
            "world=urlib.net",
            "world=ftp://a.org",
            "world-cache=",
        ] {
            assert!(settings(&[refused], &[]).is_err(), "{refused}");
        }
        // A URL alone continues no other list.
        assert!(settings(&["ro,https://a.org"], &[]).is_err());
    }

    #[test]
    fn what_needs_another_option_is_refused_without() {
        for (given, refused) in [
            ("ro,world=http://a.org,fallback", None),
            ("world=http://a.org", None),
            ("world-archive=http://a.org", None),
            ("ro", None),
            (
                "world=http://a.org,fallback",
                Some("world=fallback needs 'ro'"),
            ),
            (
                "ro,world=http://a.org,fallback,rw",
                Some("world=fallback needs 'ro'"),
            ),
            ("ro,world=fallback", Some("world=fallback needs world=URL")),
            ("world-cache=/c", Some("world-cache= needs world=URL")),
            (
                "world-cache-size=1G",
                Some("world-cache-size= needs world=URL"),
            ),
            (
                "world-allow-private",
                Some("world-allow-private needs world=URL"),
            ),
        ] {
            let checked = settings(&[given], &[]).expect("options").check();
            let error = checked.err().map(|error| error.to_string());
            assert!(
                match (&error, refused) {
                    (Some(error), Some(refused)) => error.starts_with(refused),
                    (None, None) => true,
                    _ => false,
                },
                "{given}: {error:?}"
            );
        }
    }

    #[test]
    fn an_option_draws_nothing_on_the_terminal() {
        let error = settings(&["lst=\u{1b}[2J\n"], &[]).expect_err("no such option");
        assert!(
            error
                .to_string()
                .starts_with("unknown mount option 'lst=\\u{1b}[2J\\n'; the options are lang=,")
        );
    }

    #[test]
    fn an_unknown_option_is_named_with_those_there_are() {
        let error = settings(&["lang=pt,lst=all"], &[]).expect_err("no such option");
        assert!(
            error
                .to_string()
                .starts_with("unknown mount option 'lst=all'; the options are lang=, list=,")
        );
        assert!(
            settings(&["list=all,ro,rw,suid"], &[])
                .expect("good")
                .list_all
        );
    }
}
