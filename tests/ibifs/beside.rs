//! The databases next to the index: an error of one names that file and says what helps, and that helps.

use crate::http::served::Served;
use crate::support::TestEnv;

/// `damage FILE [head]`: overwrites the beginning of each page of a database after the first, or of the file.
const TOOLS: &str = r#"
damage() { python3 - "A.store/$1" "${2:-}" <<'END'
import sqlite3, sys
path, what = sys.argv[1:]
base = sqlite3.connect(path)
base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
base.close()
with open(path, "r+b") as file:
    pages = [0] if what == "head" else range(4096, file.seek(0, 2), 4096)
    for at in pages:
        file.seek(at)
        file.write(b"\xff" * 64)
END
}
"#;

/// A store with a described item, whose texts are searched.
fn library() -> TestEnv {
    let env = TestEnv::new().with_index_file();
    env.sh(
        "mkdir A; ibifs init A.store --host archive-a.example.org --search texts > /dev/null; ibifs mount A.store A
         mint A map > map; printf 'title: Rainfall\n' > \"A/$(< map):\"; echo monsoon > \"A/$(< map)/doc/a.txt\"",
    );
    env
}

#[test]
fn a_damaged_search_index() {
    let env = library();
    let found = "ibifs find --complete rainfall --store A.store 2> log | cut -d ' ' -f 3-";
    env.prints(found, "Rainfall");
    for file in ["search.sqlite3", "search-text.sqlite3"] {
        let damage = format!("{TOOLS}\ndamage {file}");
        env.sh(&damage);
        let find = "ibifs find --complete monsoon rainfall --store A.store";
        env.complains(find, &format!("ibifs: {file} is damaged ("));
        env.complains(
            find,
            "; end the mount and the services of the store and remove it: then the next search makes it again",
        );
        // It is not the index that is damaged.
        env.sh(&format!("{find} 2> log || no grep relations log"));
        env.prints("ibifs status A.store | grep ^index", "index    current");
        env.sh(&format!("rm A.store/{file}"));
        env.prints(&format!("{found}; cat log"), "Rainfall");
        // One that cannot be opened is passed over.
        env.sh(&format!("{damage} head"));
        env.sh(&format!(
            "{found} | grep -qx Rainfall; grep -q 'WARN.*{file} is damaged (file is not a database); end the mount' log; rm A.store/{file}*"
        ));
    }
}

#[test]
fn a_mount_logs_that_a_search_index_is_damaged() {
    let env = library();
    env.sh(&format!(
        r#"{TOOLS}
        ibifs find rainfall --store A.store > /dev/null; ibifs umount A; damage search.sqlite3
        ibifs mount -f A.store A > /dev/null 2> log & until mountpoint -q A; do sleep 0.1; done
        no ls A/.find/rainfall; grep -q 'WARN.*search.sqlite3 is damaged (' log
        rm A.store/search.sqlite3; ibifs umount A; wait
        ibifs mount A.store A; test "$(ls A/.find/rainfall | wc -l)" = 1"#
    ));
}

/// SQLite only says that there was an error.
#[test]
fn a_search_index_that_cannot_be_written() {
    let env = library();
    env.complains(
        "trap '' XFSZ; ulimit -f 50; ibifs find rainfall --store A.store",
        "ibifs: search.sqlite3: File too large (os error 27)",
    );
}

#[test]
fn damaged_databases_of_a_service() {
    let env = library();
    let requests = r#"
        ask() { curl -sS --globoff -o answer -w '%{http_code}\n' "$U$@"; }
        ask '/oai?verb=ListIdentifiers&metadataPrefix=oai_dc'; ask '/search?q=rainfall'; ask "/$(< map)?page"
    "#;
    let serve = || Served::start(&env, "A.store 2> log");
    let served = serve();
    served.prints(&env, requests, "200\n200\n200");
    drop(served);
    let files = ["harvest", "search-public", "accesses", "pictures"];
    let damaged = |what: &str| {
        for file in files {
            env.sh(&format!("{TOOLS}\ndamage {file}.sqlite3 {what}"));
        }
    };
    let remedies = |error: &str| {
        files.map(|file| {
            let remedy = match file {
                "harvest" => "end the services of the store and remove it: then harvesters collect all records again, and deletions of records whose items are still there are forgotten",
                "search-public" => "end the mount and the services of the store and remove it: then the next search makes it again",
                "accesses" => "end the services of the store, and put the file of a backup in its place, or remove it: then counting starts over",
                _ => "end the services of the store and remove it: then pictures are drawn again",
            };
            format!("{file}.sqlite3 is damaged ({error}); {remedy}")
        })
    };
    let log_has = |served: &Served, lines: &[String]| {
        for line in lines {
            served.sh(&env, &format!("for try in $(seq 60); do ! grep -qF -- '{line}' log || exit 0; sleep 0.5; done; cat log; exit 1"));
        }
    };
    damaged("");
    let served = serve();
    served.prints(&env, requests, "503\n500\n200");
    log_has(&served, &remedies("database disk image is malformed"));
    served.prints(&env, "grep -c relations log || true", "0");
    drop(served);
    damaged("head");
    let served = serve();
    // Data that can be made again, or begun again, is.
    served.prints(&env, requests, "200\n200\n200");
    log_has(&served, &remedies("file is not a database"));
    drop(served);
    // The logs next to them are left, as an administrator leaves them.
    env.sh(
        "for file in harvest search-public accesses pictures; do rm A.store/$file.sqlite3; done",
    );
    let served = serve();
    served.prints(&env, &format!("{requests}\ncat log"), "200\n200\n200");
    drop(served);
    env.prints(
        "ls A.store/{harvest,search-public,accesses,pictures}.sqlite3 | wc -l",
        "4",
    );
}
