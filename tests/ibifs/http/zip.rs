//! An item as one zip file, unpacked by the programs that people unpack with.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::served::Served;
use crate::support::TestEnv;

/// A served Archive with an item of all kinds of files, whose names are noted in `vars`.
fn environment() -> (TestEnv, Served) {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        one=$(ibifs mint A | head -n 1) two=$(ibifs mint A | head -n 1) D=$PWD/A/$one/doc
        mkdir -p A/6RPa7umaZ/UaJFT; echo old > A/6RPa7umaZ/UaJFT/x
        cd "$D"; mkdir -p 'a b/c' empty
        echo text > 'a b/c/text'; echo 'ação' > 'Relatório final.txt'; echo colon > 'Título: um\dois.txt'
        printf latin > $'Relat\xf3rio'; : > nothing; echo run > run; chmod 755 run; seq 30000 > long
        touch -d 2001-02-03T04:05:07Z 'a b/c/text' empty; touch -d 1975-01-01 nothing; touch -d 2150-01-01 run
        ln -s 'a b/c/text' link; ln -s 'a b' directory; ln -s /etc/passwd out; ln -s ../../../../$two up; mkfifo pipe
        echo secret > secret; chmod 600 secret; mkdir shut; echo x > shut/x; chmod 700 shut
        cd ../../../../../..
        echo "one=$one two=$two ibip=$(ibip A/$one) D=$D" > vars"#);
    let served = Served::start(&env, "A.store");
    (env, served)
}

#[track_caller]
fn prints(env: &TestEnv, served: &Served, script: &str, expected: &str) {
    served.prints(env, &format!(". ./vars\n{script}"), expected);
}

/// `/archive.cgi/<ibi>` is the item as one zip file: all that the public may read, with names, times and
/// permissions. Links to files of the item are files; other links, pipes, and what ibifs keeps are not in it.
#[test]
fn an_item_is_one_zip_file() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"for name in $one $ibip; do
            get $U/archive.cgi/$name -o $(basename $name).zip
            unzip -tqq $(basename $name).zip
        done
        cmp *.zip && mv $(basename $ibip).zip x.zip
        mkdir out; (cd out; LC_ALL=C.UTF-8 unzip -q ../x.zip)
        (cd out; find . -mindepth 5 -printf '%m %TY-%Tm-%TdT%TH:%TM:%.2TS %y %P\n' | sed "s: $one/: :" | LC_ALL=C sort -k 4 | LC_ALL=C sed 's/^... [-0-9]*202[0-9]-[^ ]* /now /' | cat -v)
        for file in 'a b/c/text' 'Relatório final.txt' 'Título: um\dois.txt' $'Relat\xf3rio' nothing run long link; do
            cmp "$D/$file" "out/$one/doc/$file"
        done
        test ! -L out/$one/doc/link"#,
        "now d doc\n\
         now f doc/RelatM-CM-3rio final.txt\n\
         now f doc/RelatM-srio\n\
         now f doc/TM-CM--tulo: um\\dois.txt\n\
         now d doc/a b\n\
         now d doc/a b/c\n\
         644 2001-02-03T04:05:07 f doc/a b/c/text\n\
         755 2001-02-03T04:05:07 d doc/empty\n\
         644 2001-02-03T04:05:07 f doc/link\n\
         now f doc/long\n\
         644 1975-01-01T00:00:00 f doc/nothing\n\
         755 2106-02-07T06:28:15 f doc/run",
    );
    // Python reads names as the flag says.
    prints(
        &env,
        &served,
        r#"python3 - x.zip <<'end'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as read:
    assert read.testzip() is None
    for entry in sorted(read.infolist(), key=lambda entry: entry.filename):
        name = entry.filename.split("/", 4)[4]
        assert (entry.flag_bits & 8 or entry.is_dir()) and entry.create_system == 3
        if not name.isascii():
            print(ascii(name), bool(entry.flag_bits & 0x800))
end"#,
        "'doc/Relat\\xf3rio final.txt' True\n\
         'doc/Relat\\u2264rio' False\n\
         'doc/T\\xedtulo: um\\\\dois.txt' True",
    );
    // An item without a rep, a copy, a path, what is not public, and an empty item.
    prints(
        &env,
        &served,
        r#"get $U/archive.cgi/6RPa7umaZ/UaJFT -o old.zip; unzip -Z1 old.zip
        get "$U/archive.cgi/$two" -o two.zip; unzip -Z1 two.zip | sed "s:$two:TWO:"
        ln -sfn ../../../$two "A/$one!"; get "$U/archive.cgi/$one!" | cmp - two.zip
        status "$U/archive.cgi/6RPa7umaZ/UaJFT?ibiurl.requireditemstatus=Original"
        status $U/archive.cgi/$one/doc; status "$U/archive.cgi/$one:"; status $U/archive.cgi/
        chmod 700 A/$one; status $U/archive.cgi/$one"#,
        "6RPa7umaZ/UaJFT/x\nTWO/doc/\n404\n404\n404\n404\n404",
    );
}

/// `?bag` is the item as a BagIt bag in one zip file: the validator of the format finds it good, it has what the public
/// may read, and it is imported as the item that it names.
#[test]
fn an_item_is_a_bag() {
    let (env, served) = environment();
    let place = crate::collections::validators().display().to_string();
    prints(
        &env,
        &served,
        &format!(
            r#"get "$U/archive.cgi/$one?bag" -o bag.zip; get "$U/$ibip?bag" -o other.zip
        LC_ALL=C.UTF-8 unzip -qq bag.zip; unzip -tqq other.zip; top=${{one//\//_}}; ls -d */ | grep -c "^$top/$"
        '{place}/python' '{place}/bagit.py' --quiet --validate $top; echo valid
        ls $top; sed -n 's/Bagging-Date.*/today/; p' $top/bag-info.txt | sed "s;$one;REP;; s;$ibip;IBIP;; s;ibifs .*;ibifs;"
        (cd $top/data; find . -type f | LC_ALL=C sort); cmp "$D/long" $top/data/doc/long
        grep -c 'oai_dc:dc' $top/metadata/dc.xml; no grep -r secret $top
        ibifs init B.store --host archive-b.example.org > /dev/null; ibifs import B.store $top | tail -1
        cmp "$D/a b/c/text" "B.store/col/$one/doc/a b/c/text"
        status "$U/archive.cgi/$one/doc/long?bag"; chmod 700 A/$one; status "$U/archive.cgi/$one?bag""#
        ),
        "1\nvalid\nbag-info.txt\nbagit.txt\ndata\nmanifest-sha512.txt\nmetadata\ntagmanifest-sha512.txt\n\
         Source-Organization: archive-a.example.org\ntoday\nBag-Software-Agent: ibifs\nPayload-Oxum: 168926.8\n\
         External-Identifier: REP\nExternal-Identifier: IBIP\n\
         ./doc/Relat=F3rio\n./doc/Relatório final.txt\n./doc/Título: um\\dois.txt\n./doc/a b/c/text\n./doc/link\n\
         ./doc/long\n./doc/nothing\n./doc/run\n2\n1 package, 1 taken in\n404\n404",
    );
}

/// The headers say what it is; HEAD sends no more.
#[test]
fn the_headers_of_a_zip_file() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"for method in '' -I; do
            line content-type $method $U/archive.cgi/$one
            line content-disposition $method $U/archive.cgi/$one | sed "s:${one//\//_}:ONE:"
            line cache-control $method $U/archive.cgi/$one
            line content-length $method $U/archive.cgi/$one
        done
        curl -s -I $U/archive.cgi/$one | wc -c | sed 's/.../found/'
        get $U/$one -H 'Accept: text/html' -o page; get "$U/col/$one/" -H 'Accept: text/html' | grep -o 'href="/archive.cgi[^"]*"' | sed "s:$one:ONE:"
        get "$U/col/$one/" -H 'Accept: application/json' | jq -r .zip_url | sed "s:$one:ONE:"
        status -X POST $U/archive.cgi/$one"#,
        "application/zip\nattachment; filename=\"ONE.zip\"\nno-cache\n\
         application/zip\nattachment; filename=\"ONE.zip\"\nno-cache\n\
         found\nhref=\"/archive.cgi/ONE\"\nhref=\"/archive.cgi/ONE?bag\"\n/archive.cgi/ONE\n405",
    );
}

/// A file that changes while it is sent ends the connection.
#[test]
fn what_changes_is_not_taken_for_whole() {
    let (env, served) = environment();
    for change in ["truncate -s 1", "echo more >>", "touch -d 2001-01-01"] {
        prints(
            &env,
            &served,
            &format!(
                "truncate -s 30M $D/zz; curl -s --limit-rate 5M $U/archive.cgi/$one -o part & waits eval 'test $(stat -c %s part) -gt 5000000'
                 {change} $D/zz
                 wait $! || echo cut; unzip -tqq part > /dev/null 2>&1 || echo broken; rm part"
            ),
            "cut\nbroken",
        );
    }
}

/// Clients that are slow hold the places for zip files, and those that are gone hold nothing. The server learns
/// that a client is gone when it next sends to it.
#[test]
fn slow_clients_hold_the_places() {
    let (env, served) = environment();
    // Connections, and files of the item. Each thread of the server has the listening socket once more.
    let descriptors = || {
        let directory = format!("/proc/{}/fd", served.process());
        let open = std::fs::read_dir(directory).expect("it runs").flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .filter(|open| {
                let open = open.to_string_lossy();
                open.starts_with("socket:") || open.contains("/doc/")
            })
            .collect::<BTreeSet<_>>()
    };
    let before = descriptors();
    prints(
        &env,
        &served,
        "truncate -s 300M $D/zz; clients=; trap 'ends $clients' EXIT
         slow() { curl -s --limit-rate 1k --max-time 300 $U/archive.cgi/$one -o /dev/null 2> /dev/null & clients=\"$clients $!\"; }
         for i in $(seq 64); do slow; done
         tries=0; until test \"$(status --max-time 1 $U/archive.cgi/$one 2> /dev/null)\" = 503; do
             slow; tries=$((tries + 1)); test $tries -lt 120
         done
         line retry-after $U/archive.cgi/$one; status $U/col/$one/doc/long
         ends $clients
         tries=0; until get $U/archive.cgi/$one -o y.zip; do
             sleep 0.5; tries=$((tries + 1)); test $tries -lt 120
         done 2> said
         test $(stat -c %s y.zip) -gt 300000000",
        "30\n200",
    );
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let after = descriptors();
        if after.is_subset(&before) {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "{before:?} were open, then {after:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An item of more files than 16 bits count, and one of more bytes than 32 bits count.
#[test]
fn large_items_are_zip64() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"S=A.store/col/$two/doc; mkdir $S/many; (cd $S/many; seq 66000 | xargs touch)
        get $U/archive.cgi/$two -o many.zip; unzip -tqq many.zip; unzip -Z1 many.zip | wc -l
        python3 -c 'import sys, zipfile; print(len(zipfile.ZipFile("many.zip").namelist()))'
        rm -r $S/many; truncate -s 4300M $S/a.bin; echo end > $S/z
        get $U/archive.cgi/$two | cp --sparse=always /dev/stdin large.zip; unzip -p large.zip $two/doc/z
        
        python3 - <<'end'
import zipfile
with zipfile.ZipFile("large.zip") as read:
    print(read.testzip(), [(entry.file_size, entry.header_offset > 2**32) for entry in read.infolist()])
end"#,
        "66002\n66002\nend\nNone [(0, False), (4508876800, False), (4, True)]",
    );
}
