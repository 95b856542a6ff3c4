//! Answers that are remembered: of whatever they depend on, no change is passed over.

use std::time::Duration;

use super::served::Served;
use crate::support::{TestEnv, UNCHECKED_LISTS};

/// The age from which a change is settled and its answer remembered: the clocks of filesystems are coarse.
const SETTLED: Duration = Duration::from_millis(3500);

/// Asks the service of an item, with a query beyond it: twice, so that the second answer is a remembered
/// one; both must be the same but for the key. Then the words must be in it, or must not.
const ASK: &str = r#"
. ./vars
ask() { get "$U/$service?servicesubject=urlRequest&parsedibiurl.ibi=$1&$2" | tr -d '\r'; }
printed() { ask "$1" "$2" > once; ask "$1" "$2" > again
    if grep -q ^urlkey once && cmp -s once again; then echo "one key for two answers"; exit 1; fi >&2
    diff <(grep -v ^urlkey once) <(grep -v ^urlkey again) >&2; }
says() { printed "$1" "$2"; grep -qF -- "$3" again || { echo "not in what is printed of $1: $3"; cat again; exit 1; } >&2; }
silent() { printed "$1" "$2"; if grep -qF -- "$3" again; then echo "printed of $1: $3"; cat again; exit 1; fi >&2; }
"#;

/// Items `$i1`, `$i2` and so on, each with one file, and `$d1` and so on, their `doc/` in the store.
fn environment(items: usize) -> (TestEnv, Served) {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "echo service=$(sed -n 's/^ibi.archiveservice.*ibip \\(.*\\)}}/\\1/p' A.store/archive.ibi) > vars
         for n in $(seq {items}); do i=$(ibifs mint A | head -n 1); d=$PWD/A.store/col/$i/doc
             echo \"i$n=$i d$n=$d\" >> vars; echo content > $d/a.txt; done"
    ));
    let served = Served::start(&env, "A.store");
    std::thread::sleep(SETTLED);
    (env, served)
}

/// Changes in an item's directories and nowhere else are seen at once, as a user makes them who knows nothing of ibifs.
#[test]
fn changes_in_the_tree_are_seen_at_once() {
    let (env, served) = environment(14);
    // The item, the query beyond it, the first answer, the change, and the answer then.
    let itself = "parsedibiurl.verblist=";
    let path = |path: &str| format!("parsedibiurl.filepath={path}");
    let changes: [(usize, &str, &str, &str, &str); 14] = [
        (1, itself, "doc/a.txt", "rm $d1/a.txt", "!a.txt"),
        (2, itself, "doc/a.txt", "chmod 640 $d2/a.txt", "!a.txt"),
        (3, itself, "doc/a.txt", "chmod 700 $d3", "!a.txt"),
        (
            4,
            itself,
            "doc/a.txt",
            "mv $d4/a.txt $d4/b.txt",
            "doc/b.txt",
        ),
        (
            5,
            itself,
            "doc/a.txt",
            "touch -d 2001-02-03T04:05:06Z $d5/a.txt $d5 $d5/../.ibi",
            "timestamp 2001-02-03T04:05:06Z",
        ),
        (6, itself, "doc/a.txt", "echo more > $d6/b.txt", "!a.txt"),
        (
            7,
            itself,
            "doc/a.txt",
            "p=${d7%/doc}; mkdir $p/new; touch $p/new/c.txt; mv $p/doc $p/old; mv $p/new $p/doc",
            "doc/c.txt",
        ),
        (
            8,
            itself,
            "doc/a.txt",
            "setfacl -m u:65534:- $d8/a.txt",
            "!a.txt",
        ),
        (9, itself, "doc/a.txt", "chmod 750 $d9/..", "!a.txt"),
        (
            10,
            itself,
            "doc/a.txt",
            "ln -s a.txt $d10/index.html",
            "doc/index.html",
        ),
        (
            11,
            "",
            "!url.metadata http",
            "echo '%0 Report' > $d11/../.ibi.metadata",
            "url.metadata http",
        ),
        (
            12,
            &path("a.txt"),
            "doc/a.txt",
            "mv $d12/a.txt $d12/..",
            "/a.txt",
        ),
        (
            13,
            &path("none.txt"),
            "!url http",
            "mkdir $d13/sub; echo > $d13/none.txt",
            "doc/none.txt",
        ),
        (
            14,
            &path("sub/a.txt"),
            "!url http",
            "mkdir $d14/../sub; mv $d14/a.txt $d14/../sub",
            "/sub/a.txt",
        ),
    ];
    let without_lists = env.lacks(UNCHECKED_LISTS, "what user 65534 is refused by a list");
    let changes: Vec<_> = changes
        .into_iter()
        .filter(|(.., change, _)| !(without_lists && change.starts_with("setfacl")))
        .collect();
    let check = |item: usize, query: &str, words: &str| match words.strip_prefix('!') {
        Some(words) => format!("silent $i{item} '{query}' '{words}'\n"),
        None => format!("says $i{item} '{query}' '{words}'\n"),
    };
    let before = changes
        .iter()
        .map(|(item, query, words, ..)| check(*item, query, words));
    served.sh(&env, &format!("{ASK}{}", before.collect::<String>()));
    for (item, query, _, change, words) in changes {
        let script = format!("{change}\n{}", check(item, query, words));
        served.sh(&env, &format!("{ASK}{script}"));
    }
    env.sh("ibifs umount A");
}

/// Changes that the mount makes, and so also to the index, are seen at once; a new directory without a sidecar is seen soon.
#[test]
fn changes_by_the_mount_are_seen_at_once() {
    let (env, served) = environment(4);
    served.sh(
        &env,
        &format!(
            "{ASK}
            silent $i1 '' ibi.nextedition; silent $i2 '' 'url.translation(pt)'
            says $i3 parsedibiurl.verblist= doc/a.txt; says $i4 parsedibiurl.verblist= 'state Original'
            test $(status $U/col/$i4/doc/a.txt) = 200; test $(status $U/col/$i4/doc/a.txt) = 200
            ibifs relate A/$i1 --next-edition A/$i2
            says $i1 '' ibi.nextedition; says $i1 parsedibiurl.verblist=GetLastEdition $i2/doc/a.txt
            ibifs unrelate A/$i1 --next-edition; silent $i1 '' ibi.nextedition
            setfattr -n user.ibi.language -v pt A/$i2; says $i2 '' 'url.translation(pt)'
            setfattr -n user.ibi.language -v en A/$i2; says $i2 '' 'url.translation(en)'
            silent $i2 '' 'url.translation(pt)'
            echo > A/$i3/doc/b.txt; silent $i3 parsedibiurl.verblist= a.txt
            setfattr -n user.ibi.target -v b.txt A/$i3; says $i3 parsedibiurl.verblist= doc/b.txt
            setfattr -n user.ibi.target -v a.txt A/$i3; says $i3 parsedibiurl.verblist= doc/a.txt
            rm -r A/$i4; says $i4 parsedibiurl.verblist= 'state Deleted'
            test $(status $U/col/$i4/doc/a.txt) = 410
            new=example.com/elsewhere/2009/01.02.03.04; silent $new '' ibi
            # Other processes know a new item 10 ms later.
            mkdir -p A/$new/doc; waits eval 'ask $new parsedibiurl.verblist= | grep -F $new'; says $new '' \"$new\"
            ibifs umount A"
        ),
    );
}

/// The content of a small file is cached for a second. It is that of the file all the same.
#[test]
fn changes_of_small_files_are_seen_at_once() {
    let env = TestEnv::new().with_a();
    env.sh(
        "for n in $(seq 8); do i=$(ibifs mint A | head -n 1); d=$PWD/A.store/col/$i/doc
             echo \"i$n=$i d$n=$d\" >> vars; echo content > $d/a.txt; done",
    );
    let mut served = Served::start(&env, "A.store --metrics 127.0.0.1:0");
    let metrics = served.line();
    let metrics = metrics.trim_start_matches("metrics at ").trim_end();
    // A program that has the file of the eighth item mapped, and changes it on request.
    env.sh(r#". ./vars
        mkfifo go
        python3 - $d8/a.txt <<'END' >/dev/null 2>&1 &
import mmap, sys
file = open(sys.argv[1], "r+b")
with mmap.mmap(file.fileno(), 0) as mapped:
    for letter in b"CK":
        open("go").read()
        mapped[0] = letter
    open("go").read()
END"#);
    std::thread::sleep(SETTLED);
    let changes: [(&str, &str); 8] = [
        ("printf CONTENT. > $d1/a.txt", "200 CONTENT."),
        (
            "touch -r $d2/a.txt t; printf CONTENT. > $d2/a.txt; touch -r t $d2/a.txt",
            "200 CONTENT.",
        ),
        ("chmod 640 $d3/a.txt", "404"),
        ("chmod 700 $d4", "404"),
        (
            "printf CONTENT. > new; touch -r $d5/a.txt new; mv new $d5/a.txt",
            "200 CONTENT.",
        ),
        ("rm $d6/a.txt", "404"),
        ("ln -sf /etc/passwd $d7/a.txt", "404"),
        ("echo > go; sleep 1.1", "200 Kontent"),
    ];
    for (number, (change, after)) in (1..).zip(changes) {
        // The page is not written to disk between the two changes, so that the second one changes no time.
        let (first, before) = match number {
            8 => ("echo > go; sleep 1.2", "200 Content"),
            _ => ("", "200 content"),
        };
        served.prints(
            &env,
            &format!(
                r#". ./vars
                got() {{ code=$(curl -s -o body -w '%{{http_code}}' "$U/col/$i{number}/doc/a.txt")
                    case $code in 200) echo "200 $(cat body)" ;; *) echo $code ;; esac; }}
                {first}
                got; got
                curl -s -r 1-3 $U/col/$i{number}/doc/a.txt; echo
                curl -sI $U/col/$i{number}/doc/a.txt | tr -d '\r' | sed -n 's/^content-length: //Ip'
                tag=$(curl -sI $U/col/$i{number}/doc/a.txt | tr -d '\r' | sed -n 's/^etag: //Ip')
                curl -s -o /dev/null -w '%{{http_code}}\n' -H "If-None-Match: $tag" $U/col/$i{number}/doc/a.txt
                {change}
                got"#
            ),
            &format!("{before}\n{before}\nont\n8\n304\n{after}"),
        );
    }
    env.sh(". ./vars; echo > go");
    let hits = env.sh(&format!(
        "curl -sS {metrics} | sed -n 's/^ibifs_cache_lookups_total{{cache=\"files\",result=\"hit\"}} //p'"
    ));
    assert!(
        hits.trim().parse().is_ok_and(|hits: u64| hits >= 8),
        "{hits}"
    );
}
