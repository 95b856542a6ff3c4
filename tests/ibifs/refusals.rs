//! Refusals: each bad input has its errno or its sentence, and nothing is lost by it.

use crate::support::{Needs, TestEnv};

/// Runs Python expressions one by one in the environment's directory; each must end in the errno named
/// beside it, or in `done`.
#[track_caller]
fn outcomes(env: &TestEnv, table: &[(&str, &str)]) {
    let expressions: String = table
        .iter()
        .map(|(expression, _)| format!("{expression}\n"))
        .collect();
    let printed = env.sh(&format!(
        "python3 -c '
import errno, os, sys
for line in sys.stdin:
    try:
        eval(line.strip())
        print(\"done\")
    except OSError as error:
        print(errno.errorcode[error.errno])
' <<'END'\n{expressions}END"
    ));
    let expected: Vec<String> = table
        .iter()
        .map(|(expression, errno)| format!("{expression}: {errno}"))
        .collect();
    let seen: Vec<String> = table
        .iter()
        .zip(printed.lines())
        .map(|((expression, _), errno)| format!("{expression}: {errno}"))
        .collect();
    assert_eq!(seen, expected);
}

/// The Archive A with three items, whose reps are in the files a, b and c.
fn world_of_three() -> TestEnv {
    three_in(TestEnv::new())
}

fn three_in(env: TestEnv) -> TestEnv {
    let env = env.with_a();
    env.sh("for n in a b c; do mint A $n > $n; echo text $n > A/$(<$n)/doc/text; done");
    env
}

/// A name that is no component of an identifier is refused on every level of both trees (EINVAL),
/// and leaves nothing behind.
#[test]
fn bad_components_are_refused_on_every_level() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p A/sid.inpe.br/mtc-m18/2009 A/8JMKD3MGP8W; find A > before");
    let bad = [
        ("A", "no_underscore.org"),
        ("A", "-a.org"),
        ("A", "a-.org"),
        ("A", "a..b"),
        ("A", ".org"),
        ("A", "a b"),
        ("A", "\\u00e9.org"),
        ("A", "inpe.9x"),
        ("A", "8JMKD3MGP8"),
        ("A", "8JMKD3MGPOW"),
        ("A/sid.inpe.br", "a_b"),
        ("A/sid.inpe.br", "-a"),
        ("A/sid.inpe.br", "a-"),
        ("A/sid.inpe.br", "a@"),
        ("A/sid.inpe.br", "a@x"),
        ("A/sid.inpe.br", "a@65536"),
        ("A/sid.inpe.br", "a@80@80"),
        ("A/sid.inpe.br/mtc-m18", "200"),
        ("A/sid.inpe.br/mtc-m18", "20x9"),
        ("A/sid.inpe.br/mtc-m18", "-2009"),
        ("A/sid.inpe.br/mtc-m18", "999999"),
        ("A/sid.inpe.br/mtc-m18/2009", "doc"),
        ("A/sid.inpe.br/mtc-m18/2009", "02.16.17"),
        ("A/sid.inpe.br/mtc-m18/2009", "2.16.17.46"),
        ("A/sid.inpe.br/mtc-m18/2009", "02.16.17.46."),
        ("A/sid.inpe.br/mtc-m18/2009", "02.16.17.46.5"),
        ("A/sid.inpe.br/mtc-m18/2009", "02.16.17.46.05."),
        ("A/sid.inpe.br/mtc-m18/2009", "02-16-17-46"),
        ("A/8JMKD3MGP8W", "34PGRBO"),
        ("A/8JMKD3MGP8W", "34PG-RBS"),
        ("A/8JMKD3MGP8W", "W"),
        ("A/8JMKD3MGP8W", "34PGRBSW"),
    ];
    let lines: Vec<String> = bad
        .iter()
        .map(|(parent, name)| format!("os.mkdir(\"{parent}/{name}\")"))
        .collect();
    let table: Vec<(&str, &str)> = lines.iter().map(|line| (&**line, "EINVAL")).collect();
    outcomes(&env, &table);
    env.sh("find A > after; diff before after");
    env.sh("mkdir A/x.org. && rmdir A/x.org.");
}

/// Markers of programs that synchronize a directory are refused above items: a directory with EINVAL, a file with
/// EPERM, unless it is staged, which is not listed. In an item, in both trees, it is as any other name.
#[test]
fn markers_of_programs_that_synchronize_are_for_items() {
    let env = TestEnv::new().with_a();
    let item = env.sh("mint A x");
    let ibip = env.sh(&format!("ibip A/{item}"));
    let above = |path: &str| path.rsplit_once('/').expect("two parts").0.to_owned();
    let (year, prefix) = (above(&item), above(&ibip));
    let host = above(&above(&year));
    let directories = [".stfolder", ".stversions", "lost+found", ".sync"];
    let files = [".stignore", ".sync_1.db", ".dropbox", "RCLONE_TEST"];
    let mut table = Vec::new();
    for place in ["", &host, &above(&year), &year, &prefix] {
        let has_items = place == year || place == prefix;
        for name in directories {
            table.push((format!("os.mkdir(\"A/{place}/{name}\")"), "EINVAL"));
        }
        for name in files {
            let is_staged = has_items && name.starts_with('.');
            let outcome = if is_staged { "done" } else { "EPERM" };
            table.push((format!("open(\"A/{place}/{name}\", \"w\")"), outcome));
        }
    }
    for place in [&item, &ibip] {
        for name in directories {
            table.push((format!("os.mkdir(\"A/{place}/{name}\")"), "done"));
            table.push((format!("os.rmdir(\"A/{place}/{name}\")"), "done"));
        }
        for name in files {
            table.push((format!("open(\"A/{place}/{name}\", \"w\")"), "done"));
        }
    }
    let table: Vec<(&str, &str)> = table.iter().map(|(it, errno)| (&**it, *errno)).collect();
    outcomes(&env, &table);
    env.prints(&format!("ls -A A/{year} | grep -c '^[.lR]' || true"), "0");
    env.prints(
        &format!("ls -A A/{item} | grep -c '^.stignore\\|^RCLONE'"),
        "2",
    );
}

/// Dates that do not exist are refused (EINVAL), those that do are taken.
#[test]
fn dates_that_do_not_exist_are_refused() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p A/sid.inpe.br/mtc-m18/{2008,2009,2000,1900}");
    let cases = [
        ("2009/02.29.00.00", "EINVAL"),
        ("1900/02.29.00.00", "EINVAL"),
        ("2009/02.30.10.10", "EINVAL"),
        ("2009/04.31.10.10", "EINVAL"),
        ("2009/13.01.00.00", "EINVAL"),
        ("2009/00.01.00.00", "EINVAL"),
        ("2009/01.00.00.00", "EINVAL"),
        ("2009/02.16.24.00", "EINVAL"),
        ("2009/02.16.17.60", "EINVAL"),
        ("2009/02.16.17.46.60", "EINVAL"),
        ("2008/02.29.00.00", "done"),
        ("2000/02.29.23.59.59", "done"),
        ("2009/12.31.23.59.59.999", "done"),
    ];
    let lines: Vec<String> = cases
        .iter()
        .map(|(name, _)| format!("os.mkdir(\"A/sid.inpe.br/mtc-m18/{name}\")"))
        .collect();
    let table: Vec<(&str, &str)> = lines
        .iter()
        .zip(cases)
        .map(|(line, (_, errno))| (&**line, errno))
        .collect();
    outcomes(&env, &table);
}

/// In this Archive's own name space only minting makes a date later than the last one handed out
/// (EPERM by either form, in any spelling); earlier ones and other name spaces are welcome.
#[test]
fn future_dates_of_the_own_name_space_are_only_minted() {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > rep; ibip A/.mint/x > ibip; mkdir -p A/example.org/archive-a/{2001,2999} A/example.org/other/2999");
    let own = env.sh("cut -d/ -f1 ibip");
    let lower = own.to_lowercase();
    outcomes(
        &env,
        &[
            (
                "os.mkdir('A/example.org/archive-a/2999/01.01.00.00')",
                "EPERM",
            ),
            (
                "os.mkdir('A/EXAMPLE.org/Archive-A/2999/01.01.00.00')",
                "EPERM",
            ),
            (
                "os.makedirs('A/example.org./archive-a/2999/01.01.00.00')",
                "EPERM",
            ),
            (&format!("os.mkdir('A/{own}/UUUUUUU')"), "EPERM"),
            (&format!("os.mkdir('A/{lower}/uuuuuuu')"), "EPERM"),
            (
                "os.mkdir('A/example.org/archive-a/2001/01.01.00.00')",
                "done",
            ),
            ("os.mkdir('A/example.org/other/2999/01.01.00.00')", "done"),
            (&format!("os.mkdir('A/{own}/34PGRBS')"), "done"),
            ("os.makedirs('A/8JMKD3MGP8W/UUUUUUU')", "done"),
        ],
    );
    env.prints("state A/example.org/archive-a/2001/01.01.00.00", "Copy");
}

/// Nothing but directories is made on the levels of identifiers: regular files, fifos, devices,
/// sockets, links and hard links are refused (EPERM), and so they are in `.mint`.
#[test]
fn only_directories_stand_on_the_levels() {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > rep; ibip A/.mint/x | cut -d/ -f1 > prefix
         echo text > A/$(<rep)/doc/text; find A > before");
    let rep = env.sh("cat rep");
    let (year, _) = rep.rsplit_once('/').expect("a year");
    let prefix = env.sh("cat prefix");
    let mut lines = Vec::new();
    for level in [
        "A",
        "A/example.org",
        "A/example.org/archive-a",
        &format!("A/{year}"),
        &format!("A/{prefix}"),
        "A/.mint",
    ] {
        lines.push(format!("os.open('{level}/notes', os.O_CREAT|os.O_WRONLY)"));
        lines.push(format!("os.mkfifo('{level}/fifo')"));
        lines.push(format!("os.mknod('{level}/node', 0o20666, 259)"));
        lines.push(format!("os.symlink('x', '{level}/link')"));
        lines.push(format!("os.link('A/{rep}/doc/text', '{level}/hard')"));
        lines.push(format!(
            "__import__('socket').socket(1).bind('{level}/socket')"
        ));
    }
    let table: Vec<(&str, &str)> = lines.iter().map(|line| (&**line, "EPERM")).collect();
    outcomes(&env, &table);
    env.sh("find A > after; diff before after");
}

/// Items and the levels above them keep their names: renaming either is refused (EPERM) in both
/// trees and in `.mint`, and nothing moves.
#[test]
fn items_and_levels_are_not_renamed() {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > rep; ibip A/.mint/x > ibip; mint A y > other; find A > before");
    let rep = env.sh("cat rep");
    let other = env.sh("cat other");
    let ibip = env.sh("cat ibip");
    let (year, _) = rep.rsplit_once('/').expect("a year");
    let (prefix, _) = ibip.split_once('/').expect("a prefix");
    let pairs = [
        (rep.clone(), format!("{year}/01.01.00.00")),
        (rep.clone(), format!("{other}/doc/x")),
        (rep.clone(), ".mint/z".to_owned()),
        (format!("{rep}!"), format!("{year}/01.01.00.00")),
        (ibip.clone(), format!("{prefix}/34PGRBS")),
        (prefix.to_owned(), "8JMKD3MGP8W".to_owned()),
        (year.to_owned(), "example.org/archive-a/1999".to_owned()),
        (
            "example.org/archive-a".to_owned(),
            "example.org/archive-b".to_owned(),
        ),
        ("example.org".to_owned(), "example.net".to_owned()),
        (".mint/x".to_owned(), ".mint/z".to_owned()),
        (".mint".to_owned(), "example.net".to_owned()),
    ];
    let lines: Vec<String> = pairs
        .iter()
        .map(|(from, to)| format!("os.rename('A/{from}', 'A/{to}')"))
        .collect();
    let table: Vec<(&str, &str)> = lines.iter().map(|line| (&**line, "EPERM")).collect();
    outcomes(&env, &table);
    env.sh("find A > after; diff before after; ls A/.mint/x/doc");
}

/// No edition follows itself, over one, two or three steps, whether it is said with ln, setfattr
/// or `ibifs relate`, mounted or not (ELOOP; exit status 4 with the reason).
#[test]
fn editions_in_a_circle_are_refused() {
    let env = world_of_three();
    env.sh("ibifs relate A/$(<a) --next-edition $(<b); ibifs relate A/$(<b) --next-edition $(<c)");
    let loops = "Too many levels of symbolic links";
    for (last, first) in [("a", "a"), ("b", "a"), ("c", "a")] {
        env.complains(
            &format!("ln -sfn ../../../../$(<{first}) \"A/$(<{last})!\""),
            loops,
        );
        env.complains(
            &format!("setfattr -n user.ibi.nextedition -v $(<{first}) A/$(<{last})"),
            loops,
        );
        let relate = format!("ibifs relate A/$(<{last}) --next-edition $(<{first})");
        env.exits(&relate, 4);
        env.complains(&relate, "cycle");
    }
    env.prints("readlink -f \"A/$(<a)!\"", &env.sh("readlink -f A/$(<c)"));
    env.sh("ibifs umount A");
    for last in ["a", "b", "c"] {
        let relate = format!("ibifs relate $(<{last}) --next-edition $(<a) --store A.store");
        env.exits(&relate, 4);
        env.complains(&relate, "cycle");
    }
    env.prints("ibifs fsck A.store", "4 items, 0 findings");
}

/// A circle that comes in with sidecars is taken as it is: looking up the last edition says ELOOP,
/// the items stay readable, fsck names it, and taking one relation back repairs it.
#[test]
fn a_circle_in_sidecars_is_named_and_can_be_repaired() {
    let env = world_of_three();
    env.sh("echo \"ibi.nextedition {rep $(<b)}\" >> A/$(<a)/.ibi
         echo \"ibi.nextedition {rep $(<c)}\" >> A/$(<b)/.ibi
         echo \"ibi.nextedition {rep $(<a)}\" >> A/$(<c)/.ibi");
    let a = env.sh("cat a");
    outcomes(
        &env,
        &[
            (&format!("os.stat('A/{a}!')"), "ELOOP"),
            (&format!("os.lstat('A/{a}!')"), "ELOOP"),
            (
                &format!("os.getxattr('A/{a}', 'user.ibi.lastedition')"),
                "ELOOP",
            ),
            (
                &format!("os.getxattr('A/{a}', 'user.ibi.nextedition')"),
                "done",
            ),
            (&format!("os.stat('A/{a}:(oai_dc)')"), "done"),
            (&format!("os.stat('A/{a}/doc/text')"), "done"),
        ],
    );
    env.prints(
        "ibifs show A/$(<a) --json | jq -r .relations.nextedition.rep",
        &env.sh("cat b"),
    );
    env.sh("find A > found; ibifs umount A");
    env.exits("ibifs fsck A.store > report", 0);
    env.prints("grep -c ^edition-cycle: report", "3");
    env.sh("ibifs unrelate $(<c) --next-edition --store A.store");
    env.prints("ibifs fsck A.store", "4 items, 0 findings");
}

/// A circle of one and of two, copied in, is named as well.
#[test]
fn short_circles_in_sidecars_are_named() {
    let env = world_of_three();
    env.sh("echo \"ibi.nextedition {rep $(<a)}\" >> A/$(<a)/.ibi
         echo \"ibi.nextedition {rep $(<c)}\" >> A/$(<b)/.ibi
         echo \"ibi.nextedition {rep $(<b)}\" >> A/$(<c)/.ibi");
    let (a, b) = (env.sh("cat a"), env.sh("cat b"));
    outcomes(
        &env,
        &[
            (&format!("os.stat('A/{a}!')"), "ELOOP"),
            (&format!("os.stat('A/{b}!')"), "ELOOP"),
        ],
    );
    env.sh("ibifs umount A");
    env.prints(
        "(ibifs fsck A.store --json || true) | jq -r '.findings[].code' | sort | uniq -c | xargs",
        "3 edition-cycle",
    );
}

/// A relation leads to an identifier: anything else is refused (EINVAL; exit status 2) and changes
/// nothing.
#[test]
fn relations_lead_to_identifiers_only() {
    let env = world_of_three();
    let a = env.sh("cat a");
    let table = [
        "os.symlink('hello', 'A/REP+(pt)')",
        "os.symlink('../../../../sid.inpe.br/x', 'A/REP:')",
        "os.setxattr('A/REP', 'user.ibi.nextedition', b'hello')",
        "os.setxattr('A/REP', 'user.ibi.nextedition', b'')",
        "os.setxattr('A/REP', 'user.ibi.nextedition', b'sid.inpe.br/mtc/2009/02.30.00.00')",
        "os.setxattr('A/REP', 'user.ibi.metadata', bytes([255, 254]))",
        "os.setxattr('A/REP', 'user.ibi.language', b'portuguese')",
        "os.setxattr('A/REP', 'user.ibi.alias', b'a b')",
    ]
    .map(|line| line.replace("REP", &a));
    let table: Vec<(&str, &str)> = table.iter().map(|line| (&**line, "EINVAL")).collect();
    outcomes(&env, &table);
    outcomes(
        &env,
        &[
            (
                &format!("os.setxattr('A/{a}', 'user.ibi.state', b'Copy')"),
                "EPERM",
            ),
            (
                &format!("os.setxattr('A/{a}', 'user.ibi.what', b'x')"),
                "EPERM",
            ),
            (&format!("os.removexattr('A/{a}', 'user.ibi.rep')"), "EPERM"),
            (
                &format!("os.removexattr('A/{a}', 'user.ibi.nextedition')"),
                "ENODATA",
            ),
        ],
    );
    env.exits("ibifs relate A/$(<a) --next-edition hello", 2);
    env.exits("ibifs relate A/$(<a) --translation $(<b)", 2);
    env.prints(
        "ibifs show A/$(<a) --json | jq -c '.relations | keys'",
        r#"["lastedition"]"#,
    );
}

/// The damage to the sidecars of the next test, as shell, in the item's directory.
const BROKEN: [(&str, &str); 10] = [
    ("garbage", "echo 'what is this {' > .ibi"),
    ("empty", ": > .ibi"),
    ("no-name", "echo 'language en' > .ibi"),
    (
        "wrong-rep",
        "echo 'ibi {rep sid.inpe.br/mtc-m18/2009/02.16.17.46}' > .ibi",
    ),
    (
        "bad-percent",
        "sed -i '$a target a%zzb' .ibi; sed -i '$a ibi.nextedition {rep a%2}' .ibi",
    ),
    ("binary", "printf '\\0\\377\\376\\1\\200' > .ibi"),
    ("huge", "head -c 2097152 /dev/zero | tr '\\0' a > .ibi"),
    ("directory", "rm .ibi; mkdir .ibi; echo kept > .ibi/file"),
    ("fifo", "rm .ibi; mkfifo .ibi"),
    ("link", "rm .ibi; ln -s /etc/passwd .ibi"),
];

/// A sidecar that cannot be accepted stays as it is and is reported by fsck; the item stays
/// readable as what it was; `fsck --repair` sets it aside whole and writes the good one again.
#[test]
fn broken_sidecars_are_kept_reported_and_repaired() {
    let env = TestEnv::new().with_a();
    for (name, _) in BROKEN {
        env.sh(&format!(
            "mint A {name} > {name}; echo text > A/$(<{name})/doc/text; cp A/$(<{name})/.ibi good-{name}"
        ));
    }
    env.sh("ibifs umount A");
    for (name, script) in BROKEN {
        env.sh(&format!(
            "(cd A.store/col/$(<{name}) && {script} && cp -a .ibi ../../../../../../broken-{name})"
        ));
    }
    env.sh("ibifs mount A.store A");
    for (name, _) in BROKEN {
        env.prints(&format!("cat A/$(<{name})/doc/text"), "text");
        env.prints(&format!("state A/$(<{name})"), "Original");
        env.sh(&format!("readlink \"A/$(<{name})!\""));
    }
    env.sh("ibifs umount A");
    env.exits("ibifs fsck A.store > report", 1);
    for (name, _) in BROKEN {
        let code = match name {
            "wrong-rep" => "foreign-sidecar",
            _ => "broken-sidecar",
        };
        env.sh(&format!("grep -q \"^{code}: .*$(<{name})\" report"));
        env.sh(&format!(
            "test -p broken-{name} || diff -r --no-dereference broken-{name} A.store/col/$(<{name})/.ibi"
        ));
    }
    env.sh("ibifs fsck --repair A.store > repaired");
    for (name, _) in BROKEN {
        env.sh(&format!(
            "cd A.store/col/$(<{name})
             cmp .ibi ../../../../../../good-{name}
             test -p .ibi.broken-1 || diff -r --no-dereference .ibi.broken-1 ../../../../../../broken-{name}"
        ));
    }
    env.prints("ibifs fsck A.store", "11 items, 0 findings");
    env.prints("ibifs ls A.store --state Original | wc -l", "11");
}

/// A bad sidecar that is in the store already stays as it is and changes nothing of what is known, and a
/// relation of its item cannot be declared.
#[test]
fn a_broken_sidecar_in_the_store_changes_nothing() {
    let env = world_of_three();
    env.sh(
        "cp A/$(<a)/.ibi good; printf '\\0\\377 {' > A.store/col/$(<a)/.ibi; cp A/$(<a)/.ibi seen",
    );
    env.prints("od -An -tx1 seen", " 00 ff 20 7b");
    env.prints("state A/$(<a); cat A/$(<a)/doc/text", "Originaltext a");
    let relate = "ibifs relate A/$(<a) --next-edition $(<b)";
    env.complains(relate, "");
    env.sh("rm A/$(<a)/.ibi; cmp good A/$(<a)/.ibi");
    env.sh(relate);
}

/// Rebuilding the index while a sidecar cannot be accepted forgets nothing that the old index
/// knew of the item.
#[test]
fn reindex_keeps_what_was_accepted_before() {
    let env = world_of_three();
    env.sh(
        "ibifs relate A/$(<a) --next-edition $(<b); cp A/$(<a)/.ibi good; ibifs umount A
         ibifs show $(<a) --store A.store --json > before
         echo garbage > A.store/col/$(<a)/.ibi
         ibifs reindex A.store 2> messages
         ibifs show $(<a) --store A.store --json | diff before -",
    );
    env.sh("grep broken-sidecar messages");
    env.sh("ibifs fsck --repair A.store && cmp good A.store/col/$(<a)/.ibi");
    env.prints("ibifs fsck A.store", "4 items, 0 findings");
}

/// A store that a newer ibifs has written is refused by every command, with what to do.
#[test]
fn a_store_of_a_newer_version_is_refused() {
    let env = TestEnv::new().with_index_file();
    env.sh("ibifs init A.store --host archive-a.example.org && mkdir A
         in_database A.store/relations.sqlite3 'PRAGMA user_version=99'");
    for command in [
        "ibifs mount A.store A",
        "ibifs mint A.store",
        "ibifs ls A.store",
        "ibifs fsck A.store >&2",
        "ibifs fsck --repair A.store >&2",
        "ibifs reindex A.store",
    ] {
        env.complains(command, "use a newer ibifs");
        env.exits(command, 1);
    }
    env.prints(
        "in_database A.store/relations.sqlite3 'PRAGMA user_version'",
        "99",
    );
}

/// A damaged relation store is reported with its remedy, and `ibifs reindex` is that remedy.
#[test]
fn a_damaged_relation_store_is_repaired_by_reindex() {
    let env = three_in(TestEnv::new().with_index_file());
    env.sh("ibifs relate A/$(<a) --next-edition $(<b); ibifs umount A
         ibifs ls A.store > before; cp -a A.store good");
    for damage in [
        "echo 'this is no database' > F",
        "head -c 100000 /dev/zero | tr '\\0' x > F",
        ": > F",
        "truncate -s 5000 F",
        "truncate -s -4096 F",
        "rm F",
        "python3 -c 'f=open(\"F\",\"r+b\"); f.seek(4096); f.write(b\"x\"*8192)'",
    ] {
        let damage = damage.replace('F', "A.store/relations.sqlite3");
        env.sh(&format!(
            "rm -rf A.store; cp -a good A.store; rm -f A.store/relations.sqlite3-*; {damage}"
        ));
        let messages =
            env.run("ibifs ls A.store > listed && diff before listed && ibifs fsck A.store");
        let complaint = String::from_utf8_lossy(&messages.stderr);
        let printed = String::from_utf8_lossy(&messages.stdout);
        assert!(!messages.status.success(), "{damage} went unnoticed");
        assert!(
            complaint.contains("reindex") || printed.contains("reindex"),
            "{damage}: {complaint}{printed}"
        );
        env.sh("cp -a A.store damaged; ibifs reindex A.store");
        env.sh("ibifs ls A.store | diff before -");
        env.prints("ibifs fsck A.store", "4 items, 0 findings");
        // Nor does fsck need more than its own repair.
        env.sh("rm -r A.store; mv damaged A.store; ibifs fsck --repair A.store > report");
        env.sh("ibifs ls A.store | diff before -");
        env.prints("ibifs fsck A.store", "4 items, 0 findings");
    }
}

/// A store is mounted once: a second mount and a command that would write offline report which
/// process holds it and where it is mounted.
#[test]
fn a_mounted_store_is_held() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir A2");
    let pid = env.sh("daemon A.store");
    env.sh(&format!("test -d /proc/{pid}"));
    for command in [
        "ibifs mount A.store A2",
        "ibifs fsck --repair A.store",
        "ibifs reindex A.store",
    ] {
        env.exits(command, 5);
        env.complains(command, &format!("by process {pid}, mounted at '"));
        env.complains(command, &format!("{}/A'", env.root().display()));
        env.complains(command, "ibifs umount ");
    }
    env.exits("ibifs mount A.store A", 5);
    env.complains("ibifs mount A.store A", "already");
    env.prints("ibifs ls A.store | wc -l", "1");
}

/// Mount points that cannot be used are refused, each with its reason.
#[test]
fn bad_mount_points_are_refused() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir -p A.store/inside A in; echo > file; ln -s A.store/inside link");
    let refused = |command: &str, status: i32, sentence: &str| {
        env.exits(command, status);
        env.complains(command, sentence);
        let complaint = env.run(command).stderr;
        assert_eq!(String::from_utf8_lossy(&complaint).lines().count(), 1);
    };
    refused(
        "ibifs mount A.store A.store/inside",
        4,
        "one inside the other",
    );
    refused("ibifs mount A.store link", 4, "one inside the other");
    refused("ibifs mount A.store A.store", 4, "one inside the other");
    refused("ibifs mount A.store .", 4, "one inside the other");
    refused("ibifs mount A.store missing", 3, "mkdir -p missing");
    refused("ibifs mount A.store file", 3, "not a directory");
    refused(
        "ibifs mount A.store A -o lst=all",
        2,
        "unknown mount option 'lst=all'; the options are lang=",
    );
    refused("ibifs mount A.store A -o lang=portuguese", 2, "lang=");
    refused("ibifs mount A A.store", 3, "/A' is not a store");
    refused("ibifs mount nowhere A", 3, "nowhere' does not exist");
    for command in ["ibifs ls in", "ibifs fsck file", "ibifs reindex in"] {
        refused(command, 3, "is not a store (it has no archive.ibi)");
    }
    for command in [
        "ibifs mint nowhere",
        "ibifs ls nowhere/in",
        "ibifs fsck nowhere",
    ] {
        refused(command, 3, "does not exist; name a store, or create one");
    }
    refused("ibifs umount A", 3, "no store is mounted at 'A'");
    env.prints("ls A", "");
}

/// A directory in a mount is named as such where only a store can be meant; fsck and reindex take a mount point, whose store
/// is in use. A store that may not be read is not taken for a directory without one.
#[test]
fn a_mount_point_is_not_a_store() {
    let env = TestEnv::new().with_a();
    env.sh("ln -s A link");
    let store = format!("{}/A.store", env.root().display());
    for place in ["A", "link/"] {
        env.prints(&format!("ibifs fsck {place}"), "1 item, 0 findings");
    }
    for command in ["ibifs reindex A", "ibifs reindex link/"] {
        env.exits(command, 5);
        env.complains(command, "the store is in use by process");
    }
    env.exits("ibifs fsck A/example.org 2> messages", 3);
    let expected = format!("'A/example.org' is in the mounted store '{store}'; name the store");
    env.prints("cut -d ' ' -f 2- messages", &expected);
    env.sh("ibifs umount A; chmod 755 .");
    // Names in the second one are found, but it cannot be read.
    for mode in ["700", "711"] {
        env.exits(
            &format!("chmod {mode} A.store; setpriv --reuid 65534 --regid 65534 --clear-groups ibifs fsck A.store 2> messages"),
            4,
        );
        env.prints(
            "cut -d ';' -f 1 messages",
            "ibifs: 'A.store' may not be read: permission denied",
        );
    }
}

/// The Archive service's own item can be neither removed nor handed over, and trying loses none of
/// its names and facts.
#[test]
fn the_service_item_stays() {
    let env = TestEnv::new().with_a();
    env.sh("ls -d A/example.org/archive-a/*/* > s; cp $(<s)/.ibi good");
    let service = env.sh("cat s");
    env.sh("rmdir $(<s)/doc; rm -r $(<s) || true");
    outcomes(&env, &[(&format!("os.rmdir('{service}')"), "ENOTEMPTY")]);
    env.sh("cmp good $(<s)/.ibi");
    env.sh("sed -i 's/^ibi.archiveservice .*/ibi.archiveservice {rep example.net\\/b\\/2001\\/01.01.00.00}/' $(<s)/.ibi || true
         cmp good $(<s)/.ibi");
    env.sh("sed '/archiveservice/d' good > $(<s)/.ibi || true; cmp good $(<s)/.ibi");
    env.prints("state $(<s)", "Original");
    env.sh("ibifs umount A");
    env.prints("ibifs fsck A.store", "1 item, 0 findings");
}

/// An item that still holds files is not removed by rmdir (ENOTEMPTY); one that holds nothing but
/// its sidecar is, and its name then says ENOENT and that it was there.
#[test]
fn an_item_with_files_is_not_removed() {
    let env = world_of_three();
    let a = env.sh("cat a");
    outcomes(
        &env,
        &[
            (&format!("os.rmdir('A/{a}')"), "ENOTEMPTY"),
            (&format!("os.rmdir('A/{a}/doc')"), "ENOTEMPTY"),
            ("os.rmdir('A/example.org')", "ENOTEMPTY"),
            ("os.rmdir('A/.mint')", "EPERM"),
            (&format!("os.unlink('A/{a}/doc/text')"), "done"),
            (&format!("os.rmdir('A/{a}')"), "ENOTEMPTY"),
            (&format!("os.rmdir('A/{a}/doc')"), "done"),
            (&format!("os.rmdir('A/{a}')"), "done"),
            (&format!("os.stat('A/{a}')"), "ENOENT"),
            (&format!("os.stat('A/{a}!')"), "ENOENT"),
            (&format!("os.rmdir('A/{a}')"), "ENOENT"),
        ],
    );
    env.prints(
        "ibifs show $(<a) --store A --json | jq -r .state",
        "Deleted",
    );
}

/// Labels that begin with a dot are refused, so that no tool mints by accident; a label is used
/// once.
#[test]
fn labels_with_a_dot_are_refused() {
    let env = TestEnv::new().with_a();
    outcomes(
        &env,
        &[
            ("os.mkdir('A/.mint/.x')", "EINVAL"),
            ("os.mkdir('A/.mint/.report.Ab12Cd')", "EINVAL"),
            ("os.stat('A/.mint/.x')", "ENOENT"),
            ("os.mkdir('A/.mint/x')", "done"),
            ("os.mkdir('A/.mint/x')", "EEXIST"),
            ("os.rmdir('A/.mint/y')", "ENOENT"),
            ("os.rmdir('A/.mint/x')", "done"),
            ("os.stat('A/.mint/x')", "ENOENT"),
        ],
    );
    env.prints("ibifs ls A | wc -l", "2");
}

/// A tombstone put into an item as its sidecar does not remove it: what lies in the tree is here.
#[test]
fn a_tombstone_as_a_sidecar_removes_nothing() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("mint A one > rep; rm -r A/$(cat rep)
        mkdir -p B/$(cat rep); echo text > B/$(cat rep)/file
        cp A.store/deleted/col/$(cat rep) B/$(cat rep)/.ibi");
    env.prints("cat B/$(cat rep)/file; state B/$(cat rep)", "text\nCopy");
    env.sh("ibifs umount B; ibifs fsck B.store; lose_index B.store; ibifs reindex B.store");
    env.prints("ibifs ls B.store --state Copy | wc -l", "1");
}

/// A store may lie as deep as the system's paths reach; one that lies deeper is refused by every
/// command, in a sentence that says why.
#[test]
fn a_store_lies_as_deep_as_paths_reach() {
    let env = TestEnv::with(Needs::LongPaths);
    let deep = format!("{}/", "d".repeat(250));
    for length in [600, 3_500] {
        let path = deep.repeat(length / 251);
        env.sh(&format!(
            "p=$PWD/{path}S; mkdir -p {path} m; ibifs init $p --host a.example.org > /dev/null; ibifs mount $p m
             ibifs mint $p > /dev/null; ibifs mint m | head -1 > rep; ibifs show --store $p $(<rep) > /dev/null
             ibifs status m | grep -q $p; ibifs umount m; ibifs fsck $p; ibifs backup $p copy > /dev/null
             ibifs scrub $p > /dev/null; ibifs reindex $p; rm -r copy"
        ));
    }
    let down = format!("for i in $(seq 17); do mkdir -p {deep}; cd {deep}; done");
    for command in [
        "init T --host a.example.org",
        "mint S",
        "mount S $m",
        "fsck S",
        "ls S",
    ] {
        env.complains(
            &format!("m=$PWD/m; {down}; mkdir -p S; echo > S/archive.ibi; ibifs {command}"),
            "whose full path must be shorter than 4,096 bytes",
        );
    }
}
