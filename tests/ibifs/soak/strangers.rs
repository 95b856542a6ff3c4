//! A stranger who asks for what takes long, as a user of the mount and as a client over HTTP: what another user and another
//! client wait for meanwhile, attack by attack.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Waits, mint, waits};
use crate::attackers::web::connect_from;
use crate::http::served::Served;
use crate::support::{TcpProxy, TestEnv, User, switch};

/// The longest time that another user may have to wait.
const IN_MOUNT: Duration = Duration::from_millis(200);
const OVER_HTTP: Duration = Duration::from_secs(1);
/// After this time a request to mint is refused.
const MINTING: Duration = Duration::from_secs(10);

/// The addresses of the hostile client and of the other one.
const HOSTILE: &str = "127.0.0.2";
const OTHER: &str = "127.0.0.3";

fn hostile() -> User {
    User::new(1001, 1001, &[])
}

fn victim() -> User {
    User::new(1002, 1002, &[])
}

/// An Archive that is mounted and served.
struct Archive {
    mount: PathBuf,
    served: Served,
    /// The items in which the victim writes, and reads over HTTP.
    written: String,
    read: String,
}

impl Archive {
    fn new(env: &TestEnv, name: &str) -> Archive {
        env.sh(&format!("chmod 1777 {name}"));
        let mount = env.root().join(name);
        let [written, read] = ["written", "read"].map(|label| mint(&mount, &victim(), label));
        env.sh(&format!(
            "echo text > {name}/{read}/doc/text.txt; echo 'title: sea' > {name}/{read}:"
        ));
        let served = Served::start(env, &format!("{name}.store"));
        env.sh(&format!(
            "for _ in $(seq 500); do curl -sf -o /dev/null '{}/search?q=sea' && break; sleep .02; done",
            served.url
        ));
        Archive {
            mount,
            served,
            written,
            read,
        }
    }

    /// Reads over HTTP, until it is over.
    fn read(&self, is_over: &AtomicBool) -> Waits {
        let read = &self.read;
        let requests = [
            ("first page", "/".to_owned()),
            ("item", format!("/{read}")),
            ("description", format!("/{read}:(bibtex)")),
            ("file", format!("/col/{read}/doc/text.txt")),
            ("search", "/search?q=sea".to_owned()),
            ("zip file", format!("/archive.cgi/{read}")),
        ];
        let mut waits = Waits::default();
        while !is_over.load(Ordering::Relaxed) {
            for (what, path) in &requests {
                let mut status = None;
                waits.timed(what, || status = get(OTHER, &self.served, path));
                let is_answered = status.is_some_and(|status| [200, 302, 303].contains(&status));
                assert!(is_answered, "{path}: {status:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        waits
    }

    /// Mints and removes, until it is over.
    fn mint(&self, is_over: &AtomicBool) -> Waits {
        let mut waits = Waits::default();
        while !is_over.load(Ordering::Relaxed) {
            let label = format!("v{}", waits.each.len());
            let made = self.mount.join(".mint").join(&label);
            waits.timed("mint", || std::fs::create_dir(&made).expect("minted"));
            remove_item(&self.mount, &label);
            std::thread::sleep(Duration::from_millis(20));
        }
        waits
    }
}

/// Removes what has just been minted.
fn remove_item(mount: &Path, label: &str) {
    if let Ok(item) = std::fs::read_link(mount.join(format!(".mint/.{label}"))) {
        let _ = std::fs::remove_dir(mount.join(".mint").join(label));
        let _ = std::fs::remove_dir_all(mount.join(".mint").join(item));
    }
}

/// Asks from an address, reads the whole answer, and returns its status if there is one.
fn get(source: &str, served: &Served, path: &str) -> Option<u16> {
    let mut stream = connect_from(source, served);
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

/// The stores and programs with which the attacks are made.
struct Scene {
    env: TestEnv,
    /// The Archive that is attacked, and one that is left alone.
    archives: [Archive; 2],
    /// Root's item, of which the stranger's many items claim something.
    claimed: String,
    claimants: usize,
    /// Items of the stranger.
    theirs: Vec<String>,
}

impl Scene {
    fn new(claimants: usize) -> Scene {
        let env = TestEnv::new().with_a().with_b();
        // The index of the attacked Archive is that of many items, which search, site map and claims have in common.
        env.sh(&format!(
            r#"chmod 755 .; ibifs mint A | head -n 1 > claimed; ibifs umount A
            python3 - <<'END'
import os
claimed = open("claimed").read().strip()
service = open("A.store/col/" + claimed + "/.ibi").read().split("\n")[1]
for i in range({claimants}):
    at = "A.store/col/" + ("x.org/y/2020/%02d.%02d.%02d.%02d" % (1 + i // 40320, 1 + i // 1440 % 28, i // 60 % 24, i % 60))
    os.makedirs(at)
    open(at + "/.ibi", "w").write("ibi {{rep %s}}\n%s\nibi.editionof {{rep %s}}\nibi.metadataof {{rep %s}}\n" % (at[12:], service, claimed, claimed))
    open(at + "/.ibi.metadata", "w").write("title: a%d b%d c%d sea\n" % (i, i, i % 97))
    os.chown(at + "/.ibi", 1001, 1001)
END
            ibifs reindex A.store > /dev/null; ibifs mount A.store A; chmod 1777 A"#
        ));
        let claimed = env.sh("cat claimed");
        let mount = env.root().join("A");
        let theirs: Vec<_> = (0..4)
            .map(|number| mint(&mount, &hostile(), &format!("theirs{number}")))
            .collect();
        env.sh(&format!("truncate -s 300M A/{}/doc/long", theirs[0]));
        let archives = ["A", "B"].map(|name| Archive::new(&env, name));
        let claims = env.sh(&format!(
            "ibifs show --json A/{claimed} | jq '(.claims | length) + .other_claims'"
        ));
        assert_eq!(claims, (2 * claimants).to_string());
        Scene {
            env,
            archives,
            claimed,
            claimants,
            theirs,
        }
    }

    fn mount(&self) -> &Path {
        &self.archives[0].mount
    }

    /// Asks as the hostile client, and closes the connection when it is over.
    fn get(&self, is_over: &AtomicBool, path: &str) {
        let mut stream = connect_from(HOSTILE, &self.archives[0].served);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let _ = write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
        let mut some = [0; 4096];
        while !is_over.load(Ordering::Relaxed) {
            match stream.read(&mut some) {
                Ok(0) => break,
                Err(error) if error.kind() != ErrorKind::WouldBlock => break,
                _ => {}
            }
        }
    }

    fn item(&self, number: usize) -> String {
        let number = number % self.claimants;
        let (day, hour, minute) = (number / 1440 % 28 + 1, number / 60 % 24, number % 60);
        let month = 1 + number / 40_320;
        format!("x.org/y/2020/{month:02}.{day:02}.{hour:02}.{minute:02}")
    }

    /// Measures the waiting times of users who do not attack, while this attack runs.
    fn under(&self, attack: &Attack, time: Duration) -> Round {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let is_over = &is_over;
            for thread in 0..attack.threads {
                scope.spawn(move || {
                    hostile().run(|| {
                        let turns = (0..).take_while(|_| !is_over.load(Ordering::Relaxed));
                        turns.for_each(|turn| (attack.act)(self, is_over, thread, turn));
                    });
                });
            }
            std::thread::sleep(Duration::from_millis(100));
            let in_mount = self.archives.each_ref().map(|archive| {
                let own = archive.mount.join(&archive.written).join("doc");
                scope.spawn(move || victim().run(|| waits(&own, &archive.mount, is_over)))
            });
            let over_http = self
                .archives
                .each_ref()
                .map(|archive| scope.spawn(move || archive.read(is_over)));
            let minting = self
                .archives
                .each_ref()
                .map(|archive| scope.spawn(move || victim().run(|| archive.mint(is_over))));
            std::thread::sleep(time);
            is_over.store(true, Ordering::Relaxed);
            Round {
                in_mount: in_mount.map(|thread| thread.join().expect("no panic")),
                over_http: over_http.map(|thread| thread.join().expect("no panic")),
                minting: minting.map(|thread| thread.join().expect("no panic")),
            }
        })
    }
}

/// The waiting times under an attack: in the Archive that was attacked, and in the other one.
struct Round {
    in_mount: [Waits; 2],
    over_http: [Waits; 2],
    minting: [Waits; 2],
}

/// Something that a stranger does over and over in so many threads.
struct Attack {
    name: &'static str,
    threads: usize,
    act: fn(&Scene, &AtomicBool, usize, usize),
}

const ATTACKS: [Attack; 10] = [
    Attack {
        name: "nothing",
        threads: 0,
        act: |_, _, _, _| {},
    },
    Attack {
        name: "links of an item that many claim",
        threads: 4,
        act: |scene, _, _, _| {
            for modifier in ["!", "+(pt)"] {
                let link = format!("{}{modifier}", scene.claimed);
                let _ = std::fs::read_link(scene.mount().join(link));
            }
        },
    },
    Attack {
        name: "mints",
        threads: 32,
        act: |scene, _, thread, turn| {
            let label = format!("m{thread}-{turn}");
            let _ = std::fs::create_dir(scene.mount().join(".mint").join(&label));
            remove_item(scene.mount(), &label);
        },
    },
    Attack {
        name: "levels",
        threads: 4,
        act: |scene, is_over, thread, _| {
            let level = |number: usize| scene.mount().join(format!("l{thread}-{number}.org"));
            let made = (0..500).take_while(|_| !is_over.load(Ordering::Relaxed));
            let made = made
                .filter(|number| std::fs::create_dir(level(*number)).is_ok())
                .count();
            drop(std::fs::read_dir(scene.mount()).map(Iterator::count));
            (0..made).for_each(|number| drop(std::fs::remove_dir(level(number))));
        },
    },
    Attack {
        name: "languages",
        threads: 4,
        act: |scene, _, thread, turn| {
            let item = scene.mount().join(&scene.theirs[thread]);
            let (language, flags) = (["pt", "en"][turn % 2], rustix::fs::XattrFlags::empty());
            let _ = rustix::fs::setxattr(item, "user.ibi.language", language.as_bytes(), flags);
        },
    },
    Attack {
        name: "pages of an item that many claim",
        threads: 64,
        act: |scene, is_over, _, turn| {
            let modifier = ["", "!", ":(bibtex)", "+(pt)"][turn % 4];
            scene.get(is_over, &format!("/{}{modifier}", scene.claimed));
        },
    },
    Attack {
        name: "lists for crawlers",
        threads: 64,
        act: |scene, is_over, _, turn| {
            scene.get(is_over, ["/sitemap-0.xml", "/resourcelist-0.xml"][turn % 2]);
        },
    },
    Attack {
        name: "pages",
        threads: 64,
        act: |scene, is_over, thread, turn| match turn % 8 {
            0 => scene.get(is_over, "/"),
            _ => scene.get(is_over, &format!("/{}", scene.item(thread * 7919 + turn))),
        },
    },
    Attack {
        name: "zip files",
        threads: 64,
        act: |scene, is_over, _, turn| {
            let mut stream = connect_from(HOSTILE, &scene.archives[0].served);
            let path = format!("{}{}", scene.theirs[0], ["", "?bag"][turn % 2]);
            let _ = write!(
                stream,
                "GET /archive.cgi/{path} HTTP/1.0\r\nHost: x\r\n\r\n"
            );
            let mut some = [0; 4096];
            while !is_over.load(Ordering::Relaxed) && stream.read(&mut some).is_ok_and(|n| n > 0) {
                std::thread::sleep(Duration::from_millis(100));
            }
        },
    },
    Attack {
        name: "searches",
        threads: 64,
        act: |scene, is_over, _, _| {
            let words = (1..10).flat_map(|number| ["a", "b", "c"].map(|l| format!("{l}{number}*")));
            scene.get(
                is_over,
                &format!("/search?q={}", words.collect::<Vec<_>>().join("+")),
            );
        },
    },
];

/// Each attack for a second (`IBIFS_TEST_SOAK` for that long in all) on a mount and a service with items that claim to be
/// related to one: another user waits less than 0.2 s for anything but to mint beside who mints, and another client less
/// than 1 s. The same is asked at the same time of an Archive that is left alone, and what it takes there, where only the
/// processors are short, is added to the bound; in the short form four times that is, and the bound three times, and what
/// takes longer has to do so three times: other tests run beside it.
#[test]
fn each_attack_delays_no_other_user_or_client() {
    let long = switch("IBIFS_TEST_SOAK");
    let scene = Scene::new(if long.is_some() { 3000 } else { 300 });
    let time = long.map_or(Duration::from_secs(1), |seconds| {
        Duration::from_secs(seconds) / ATTACKS.len() as u32
    });
    let index = || {
        let size = |name| std::fs::metadata(scene.env.root().join("A.store").join(name));
        let size = |name| size(name).map_or(0, |file| file.len() >> 10);
        format!(
            "{} KiB, log {} KiB",
            size("relations.sqlite3"),
            size("relations.sqlite3-wal")
        )
    };
    let slow_under = |attack: &Attack| {
        let mut slow = Vec::new();
        let round = scene.under(attack, time);
        println!("{}; the index has {}", attack.name, index());
        let of_mint = if attack.name == "mints" {
            MINTING
        } else {
            IN_MOUNT
        };
        for (place, [victim, alone], bound) in [
            ("in the mount", &round.in_mount, IN_MOUNT),
            ("minting", &round.minting, of_mint),
            ("over HTTP", &round.over_http, OVER_HTTP),
        ] {
            println!("  {place}: {victim}\n    left alone: {alone}");
            let most = match long {
                Some(_) => bound + alone.longest,
                None => 3 * bound + 4 * alone.longest,
            };
            if victim.longest > most {
                slow.push(format!("{}, {place}: {victim}, not {most:?}", attack.name));
            }
        }
        slow
    };
    let rounds = if long.is_some() { 1 } else { 3 };
    let mut slow = Vec::new();
    for attack in &ATTACKS {
        let found: Vec<_> = (0..rounds)
            .map(|_| slow_under(attack))
            .take_while(|slow| !slow.is_empty())
            .collect();
        if found.len() == rounds {
            slow.extend(found.concat());
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
    let Scene { env, archives, .. } = scene;
    drop(archives);
    env.sh("ibifs umount A; ibifs fsck A.store > /dev/null");
}

/// The files of an Archive that answers each request after two seconds, read by one user in 24 threads, keep the files of
/// another Archive from no user.
#[test]
fn a_slow_archive_delays_no_reader_of_another() {
    // So long that the kernel reads ahead, which it does for a number of reads of all users together.
    const SIZE: usize = 200_000;
    let long = switch("IBIFS_TEST_SOAK");
    let time = Duration::from_secs(long.map_or(2, |seconds| seconds / 10));
    let files = 50 + 12 * time.as_secs() as usize;
    // Other tests run beside the short form: what takes too long has to do so each time, with files that nobody has read.
    let rounds = if long.is_some() { 1 } else { 3 };
    let env = TestEnv::new().with_a().with_b();
    env.sh(&format!(
        "chmod 755 .; mkdir M; for s in A B; do
            ibifs mint $s | head -n 1 > $s.item; chmod 755 $s/$(< $s.item)
            for i in $(seq {}); do truncate -s {SIZE} $s/$(< $s.item)/doc/f$i; done
         done",
        rounds * files
    ));
    let [slow, other] = ["A", "B"].map(|name| {
        let host = ["a.example.org", "b.example.net"][usize::from(name == "B")];
        Served::start(&env, &format!("{name}.store --url http://archive-{host}"))
    });
    let port = slow
        .address()
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    let proxy = TcpProxy::start(port.expect("a port"));
    env.sh(&format!(
        "ibifs world M --archive http://127.0.0.1:{} --archive {} --cache C; for s in A B; do stat M/$(< $s.item)/doc/f* > /dev/null; done",
        proxy.port(),
        other.url
    ));
    let items = ["A", "B"].map(|name| env.sh(&format!("cat {name}.item")));
    let file = |item: &str, n: usize| env.root().join("M").join(item).join(format!("doc/f{n}"));
    let round = |number: usize| {
        let these = number * files + 1..=(number + 1) * files;
        let paths = items
            .each_ref()
            .map(|item| these.clone().map(|n| file(item, n)).collect::<Vec<_>>());
        let is_over = AtomicBool::new(false);
        proxy.set_delays(Duration::ZERO, Duration::from_secs(2));
        std::thread::scope(|scope| {
            let (is_over, paths, other) = (&is_over, &paths, &other);
            let readers = (0..24).map(|thread| {
                scope.spawn(move || {
                    let mut own = paths[0].iter().skip(thread).step_by(24);
                    hostile().run(|| {
                        own.by_ref()
                            .take_while(|path| {
                                std::fs::read(path).is_ok() && !is_over.load(Ordering::Relaxed)
                            })
                            .count()
                    })
                })
            });
            let readers: Vec<_> = readers.collect();
            std::thread::sleep(Duration::from_millis(200));
            let through = scope.spawn(move || {
                let mut waits = Waits::default();
                for path in paths[1]
                    .iter()
                    .take_while(|_| !is_over.load(Ordering::Relaxed))
                {
                    let read = || {
                        victim().run(|| assert_eq!(std::fs::read(path).expect("read").len(), SIZE));
                    };
                    waits.timed("read", read);
                    std::thread::sleep(Duration::from_millis(50));
                }
                waits
            });
            let item = &items[1];
            let directly = scope.spawn(move || {
                let mut waits = Waits::default();
                while !is_over.load(Ordering::Relaxed) {
                    let path = format!("/col/{item}/doc/f1");
                    waits.timed("file", || assert_eq!(get(OTHER, other, &path), Some(200)));
                    std::thread::sleep(Duration::from_millis(50));
                }
                waits
            });
            std::thread::sleep(time);
            is_over.store(true, Ordering::Relaxed);
            let through = through.join().expect("no panic");
            let directly = directly.join().expect("no panic");
            // Those who still wait for the slow Archive have what they wait for.
            proxy.set_delays(Duration::ZERO, Duration::ZERO);
            let read: usize = readers
                .into_iter()
                .map(|reader| reader.join().expect("no panic"))
                .sum();
            println!(
                "through the mount: {through}\nover HTTP: {directly}\nfiles of the slow Archive: {read}"
            );
            let most = match long {
                Some(_) => OVER_HTTP + directly.longest,
                None => OVER_HTTP + 4 * directly.longest,
            };
            (through.longest, most)
        })
    };
    let took: Vec<_> = (0..rounds)
        .map(round)
        .take_while(|(longest, most)| longest >= most)
        .collect();
    assert!(took.len() < rounds, "{took:?}");
    env.sh("ibifs umount M");
}
