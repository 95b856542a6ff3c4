//! The threads that answer: whichever it is, the rights of the user nobody decide, and what has changed is seen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::served::Served;
use crate::support::{TestEnv, UNCHECKED_LISTS};

/// So many connections that each thread has some of them.
const CONNECTIONS: usize = 16;
/// The capabilities over files that are not a process's own: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER,
/// FSETID, LINUX_IMMUTABLE, MKNOD.
const OVER_FILES: u64 = 0b1_1111 | 1 << 9 | 1 << 27;

/// A served Archive next to its mount, with an item `$one` that has a file, `$S/x`.
fn environment() -> (TestEnv, Served, String) {
    let env = TestEnv::new().with_a();
    let one = env.sh("one=$(ibifs mint A | head -n 1); S=$PWD/A.store/col/$one/doc
         echo \"one=$one ibip=$(ibip A/$one) S=$S\" > vars
         echo \"service=$(sed -n 's/^ibi.archiveservice.*ibip \\(.*\\)}/\\1/p' A.store/archive.ibi)\" >> vars
         echo content > $S/x; echo $one");
    let served = Served::start(&env, "A.store");
    (env, served, one)
}

/// A connection for repeated requests.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn new(served: &Served) -> Connection {
        let stream = TcpStream::connect(served.address()).expect("somebody listens");
        let timeout = Some(Duration::from_secs(20));
        stream.set_read_timeout(timeout).expect("a time limit");
        Connection(BufReader::new(stream))
    }

    /// The status and the body of an answer.
    fn get(&mut self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        self.0
            .get_mut()
            .write_all(request.as_bytes())
            .expect("taken");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        let status = line[9..12].parse().expect("a status");
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            self.0.read_line(&mut line).expect("a line");
            if let Some(printed) = line.to_lowercase().strip_prefix("content-length: ") {
                length = printed.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        (status, String::from_utf8(body).expect("a text"))
    }
}

/// A thread of a process: its name, the user and the group that it reads files as, and whether it has
/// other groups or powers over others' files.
fn threads(served: &Served) -> Vec<(String, [String; 2], bool)> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", served.process())).expect("threads");
    let status = tasks.filter_map(|task| {
        // It may have ended meanwhile.
        std::fs::read_to_string(task.ok()?.path().join("status")).ok()
    });
    let printed = status.map(|status| {
        let line = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name));
            found.expect("a line").trim().to_owned()
        };
        let last = |name| {
            line(name)
                .split_whitespace()
                .last()
                .map(str::to_owned)
                .expect("a number")
        };
        let powers = u64::from_str_radix(&line("CapEff:"), 16).expect("a number");
        let is_mighty = powers & OVER_FILES != 0 || !line("Groups:").is_empty();
        (line("Name:"), [last("Uid:"), last("Gid:")], is_mighty)
    });
    printed.collect()
}

/// A service of root without tokens is nobody, with no rights beside, in every thread.
#[track_caller]
fn assert_who_they_are(served: &Served) {
    let nobody = ["65534", "65534"].map(str::to_owned);
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let answering_of = |all: &[(String, [String; 2], bool)]| {
        all.iter().filter(|(name, ..)| name == "answers").count()
    };
    let mut all = threads(served);
    // A thread that has just been started has the name of the one that started it.
    for _ in 0..100 {
        if answering_of(&all) == count {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        all = threads(served);
    }
    let answering = answering_of(&all);
    assert_eq!(answering, count, "{all:?}");
    assert!(all.len() > count + 1, "{all:?}");
    for (_, user, is_mighty) in &all {
        assert!(*user == nobody && !is_mighty, "{all:?}");
    }
}

/// The threads that answer are nobody; those that they start, which read the index and what is not
/// published, are not, whether they have read anything for a client yet or not.
#[test]
fn the_user_of_answering_threads_is_nobody() {
    let (env, served, one) = environment();
    let mut connections: Vec<_> = (0..CONNECTIONS).map(|_| Connection::new(&served)).collect();
    for connection in &mut connections {
        assert_eq!(connection.get("/example.org/x/2001/01.01.01.01").0, 404);
    }
    assert_who_they_are(&served);
    for connection in &mut connections {
        let list = format!("/{one}?ibiurl.verblist=GetFileList");
        let oai = "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc";
        assert_eq!(connection.get(&format!("/col/{one}/doc/x")).0, 200);
        assert_eq!(connection.get(&list).0, 200);
        assert_eq!(connection.get(oai).0, 200);
        assert_eq!(connection.get(&format!("/col/{one}/doc/none")).0, 404);
    }
    assert_who_they_are(&served);
    env.sh("ibifs umount A");
}

/// Compares the answers for a file as it is changed, on connections that have requested it before. Each requests it
/// twice: the first answer is found out, the second is cached.
#[test]
fn no_thread_reads_what_is_not_for_everybody() {
    let (env, served, one) = environment();
    env.sh("cp A.store/col/$(sed -n 's/^one=\\([^ ]*\\) .*/\\1/p' vars)/doc/x secret; chmod 644 secret");
    let mut connections: Vec<_> = (0..CONNECTIONS).map(|_| Connection::new(&served)).collect();
    let path = format!("/col/{one}/doc/x");
    let mut printed = |change: &str, expected: u16| {
        env.sh(&format!(". ./vars\n{change}"));
        for connection in connections
            .iter_mut()
            .chain(&mut [Connection::new(&served)])
        {
            for _ in 0..2 {
                let (status, body) = connection.get(&path);
                assert_eq!(status, expected, "after {change}: {body}");
                assert_eq!(body.starts_with("content"), expected == 200, "{body}");
            }
        }
    };
    printed(":", 200);
    let without_lists = env.lacks(UNCHECKED_LISTS, "what user 65534 is refused by a list");
    for (change, undo) in [
        ("chmod 600 $S/x", "chmod 644 $S/x"),
        (
            "chmod 640 $S/x; chown 1000 $S/x",
            "chown 0 $S/x; chmod 644 $S/x",
        ),
        ("setfacl -m u:65534:- $S/x", "setfacl -b $S/x"),
        (
            "chgrp 65534 $S/x; chmod 604 $S/x",
            "chgrp 0 $S/x; chmod 644 $S/x",
        ),
        ("chmod 700 $S", "chmod 755 $S"),
        ("chmod 700 $S/..", "chmod 755 $S/.."),
        // The way to an item counts, from the root of the tree on.
        ("chmod 700 A.store/col", "chmod 755 A.store/col"),
        ("chmod 700 ${S%/*/*}", "chmod 755 ${S%/*/*}"),
        ("mv $S/x $S/../..", "mv $S/../../x $S/x"),
        ("mv $S/x $S/y; ln -s $PWD/secret $S/x", "mv $S/y $S/x"),
        ("mv $S/x $S/y; ln -s ../.ibi $S/x", "mv $S/y $S/x"),
        ("mv $S/x $S/y; mkfifo $S/x", "mv $S/y $S/x"),
        ("mv $S/x $S/y; mknod $S/x c 1 5", "mv $S/y $S/x"),
        (
            "mv $S $S.1; ln -s $PWD $S; cp secret x",
            "rm $S; mv $S.1 $S",
        ),
        ("mv ${S%/doc} away", "mv away ${S%/doc}"),
        (
            "mv ${S%/doc} away; ln -s $PWD/away ${S%/doc}",
            "rm ${S%/doc}; mv away ${S%/doc}",
        ),
        // A filesystem that is mounted in an item is not the item's.
        ("mount --bind $S $S", "umount $S"),
    ] {
        if without_lists && change.starts_with("setfacl") {
            continue;
        }
        printed(change, 404);
        printed(undo, 200);
    }
    // The store itself is closed to others; links in an item are followed.
    for (change, undo) in [
        ("chmod 755 A.store", "chmod 700 A.store"),
        ("mount --bind A.store/col A.store/col", "umount A.store/col"),
        ("mount --bind ${S%/*/*} ${S%/*/*}", "umount ${S%/*/*}"),
        ("mv $S/x $S/y; ln -s y $S/x", "mv $S/y $S/x"),
        ("mv $S $S.1; ln -s doc.1 $S", "rm $S; mv $S.1 $S"),
    ] {
        printed(change, 200);
        printed(undo, 200);
    }
    env.sh("ibifs umount A");
}

/// A client that queries after a change sees it, however many query at once, and so query the index together.
#[test]
fn changes_are_seen_among_many_requests() {
    let (env, served, one) = environment();
    let is_over = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let asking = || {
            let mut connection = Connection::new(&served);
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                connection.get(&format!("/col/{one}/doc/x"));
                count += 1;
            }
            count
        };
        let others: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(asking)).collect();
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            served.sh(
                &env,
                ". ./vars; Q=\"$U/$service?servicesubject=urlRequest&parsedibiurl.ibi=$one\"
                 for n in $(seq 10); do
                     for language in pt en; do
                         setfattr -n user.ibi.language -v $language A/$one
                         get \"$Q\" | contains -F \"url.translation($language)\" || { echo \"$n: not $language\" >&2; exit 1; }
                     done
                     chmod 600 $S/x; test $(status $U/col/$one/doc/x) = 404
                     echo $n > A/$one/doc/x; chmod 644 $S/x; test $(get $U/col/$one/doc/x) = $n
                     new=$(ibifs mint A | head -n 1); echo $n > A/$new/doc/x
                     test $(get $U/col/$new/doc/x) = $n; rm -r A/$new/doc; rmdir A/$new
                     test $(status $U/col/$new/doc/x) = 410
                 done",
            );
        }));
        is_over.store(true, Ordering::Relaxed);
        let asked: usize = others
            .into_iter()
            .map(|other| other.join().expect("answers"))
            .sum();
        if let Err(panic) = changed {
            std::panic::resume_unwind(panic);
        }
        asked
    });
    assert!(asked > 1000, "{asked} answers");
    env.sh("ibifs umount A");
}
