//! The content of items: what a file is, what of it is sent, and what belongs to no item.

use super::served::Served;
use crate::support::TestEnv;

/// A served Archive next to its mount, with an item `$one` whose names are noted in `vars`.
fn environment() -> (TestEnv, Served) {
    let env = TestEnv::new().with_a();
    env.sh("one=$(ibifs mint A | head -n 1)
         echo \"one=$one ibip=$(ibip A/$one) D=A/$one/doc\" > vars
         echo 'resolver http://urlib.net' >> A.store/archive.ibi");
    let served = Served::start(&env, "A.store");
    (env, served)
}

#[track_caller]
fn prints(env: &TestEnv, served: &Served, script: &str, expected: &str) {
    served.prints(env, &format!(". ./vars\n{script}"), expected);
}

#[track_caller]
fn sh(env: &TestEnv, served: &Served, script: &str) -> String {
    served.sh(env, &format!(". ./vars\n{script}"))
}

/// Types go by the name, an encoding is stated where it is certain, and pages may not act for the Archive.
#[test]
fn files_have_types() {
    let (env, served) = environment();
    let typed = |name: &str, bytes: &str, kind: &str, policy: &str| {
        prints(
            &env,
            &served,
            &format!(
                "printf '{bytes}' > $D/'{name}'
                 curl -sf -D lines -o body $U/col/$one/doc/'{name}'; cmp body $D/'{name}'
                 curl -sI $U/col/$one/doc/'{name}' > head; tr -d '\\r' < lines > got
                 diff <(grep -vi ^date: lines | sort) <(grep -vi ^date: head | sort)
                 grep -qix 'x-content-type-options: nosniff' got
                 grep -qix \"content-length: $(stat -c %s $D/'{name}')\" got
                 sed -n 's/^content-type: //Ip; s/^content-security-policy: //Ip' got"
            ),
            &format!("{kind}{policy}"),
        );
    };
    let sandbox = "\nsandbox allow-scripts";
    typed("a.txt", "ol\\303\\241", "text/plain; charset=utf-8", "");
    typed("l.txt", "ol\\341", "text/plain", "");
    typed("u.txt", "\\377\\376o\\000l\\000", "text/plain", "");
    typed("z.txt", "o\\000l\\000", "text/plain", "");
    typed("e.TXT", "", "text/plain; charset=utf-8", "");
    typed("a.html", "<p>", "text/html; charset=utf-8", sandbox);
    typed("l.htm", "\\341", "text/html", sandbox);
    typed("a.xhtml", "<p>", "application/xhtml+xml", sandbox);
    typed("a.svg", "<svg/>", "image/svg+xml", sandbox);
    typed("a.xml", "<x/>", "text/xml; charset=utf-8", sandbox);
    typed("a.pdf", "%%PDF", "application/pdf", "");
    typed("a.png", "x", "image/png", "");
    typed("a.tar.gz", "x", "application/gzip", "");
    typed("README", "x", "application/octet-stream", "");
    typed("a.unheard-of", "x", "application/octet-stream", "");
    // The encoding of a long text is found from all of it, up to 1 MiB; beyond, none is stated.
    prints(
        &env,
        &served,
        "for size in 65537 1048576 1048577; do
             head -c $size < <(yes) > $D/y.txt; line content-type $U/col/$one/doc/y.txt
             get $U/col/$one/doc/y.txt | cmp - $D/y.txt
         done
         head -c 100000 < <(yes) > $D/y.txt; printf '\\341' >> $D/y.txt; line content-type $U/col/$one/doc/y.txt
         line content-type -r 0-9 $U/col/$one/doc/y.txt",
        "text/plain; charset=utf-8\ntext/plain; charset=utf-8\ntext/plain\ntext/plain\ntext/plain",
    );
}

/// A client that has a file already gets 304, and one that requires another version gets none of it.
#[test]
fn conditions_hold() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        "echo 0123456789 > $D/x; touch -d 2020-02-02T02:02:02.5 $D/x; X=$U/col/$one/doc/x
         tag=$(line etag $X); [[ $tag == '\"'*'\"' ]]; line last-modified $X
         echo \"tag='$tag' X=$X\" >> vars
         line cache-control $X; line accept-ranges $X",
        "Sun, 02 Feb 2020 02:02:02 GMT\nno-cache\nbytes",
    );
    let same = "'Sun, 02 Feb 2020 02:02:02 GMT'";
    let before = "'Sun, 02 Feb 2020 02:02:01 GMT'";
    for (options, status) in [
        ("-H \"If-None-Match: $tag\"", "304"),
        ("-I -H \"If-None-Match: $tag\"", "304"),
        ("-H \"If-None-Match: \\\"a\\\", W/$tag\"", "304"),
        ("-H 'If-None-Match: \"a\"'", "200"),
        (
            &format!("-H 'If-None-Match: \"a\"' -H \"If-Modified-Since: \"{same}"),
            "200",
        ),
        (&format!("-H \"If-Modified-Since: \"{same}"), "304"),
        (&format!("-H \"If-Modified-Since: \"{before}"), "200"),
        ("-H \"If-Match: $tag\"", "200"),
        ("-H 'If-Match: \"a\"'", "412"),
        (&format!("-H \"If-Unmodified-Since: \"{same}"), "200"),
        (&format!("-H \"If-Unmodified-Since: \"{before}"), "412"),
        ("-r 2-4", "206"),
        ("-r 2-4 -H \"If-Range: $tag\"", "206"),
        ("-r 2-4 -H 'If-Range: \"a\"'", "200"),
        (&format!("-r 2-4 -H \"If-Range: \"{same}"), "206"),
        (&format!("-r 2-4 -H \"If-Range: \"{before}"), "200"),
        ("-I -r 2-4", "200"),
        ("-r 11-", "416"),
        ("-r 0-1,3-4", "200"),
    ] {
        prints(&env, &served, &format!("status {options} $X"), status);
    }
    prints(
        &env,
        &served,
        "get -r 2-4 $X; echo; get -r -3 $X; get -r 9- $X; line content-range -r 2-4 $X; line content-range -r 11- $X
         curl -s -H \"If-None-Match: $tag\" $X | wc -c",
        "234\n89\n9\nbytes 2-4/11\nbytes */11\n0",
    );
    // A changed file is another version, even if its length and date are as they were.
    prints(
        &env,
        &served,
        "printf a1234 | dd of=$D/x conv=notrunc status=none; touch -d 2020-02-02T02:02:02.5 $D/x
         status -H \"If-None-Match: $tag\" $X; status -H \"If-Match: $tag\" $X; get -r 0-0 $X",
        "200\n412\na",
    );
    // No date is beyond what HTTP can write, or to come.
    for date in ["1901-01-01", "2200-01-01", "1969-12-31T23:59:59"] {
        prints(
            &env,
            &served,
            &format!(
                "touch -d {date} $D/x; line last-modified $X; status $X; status -H 'If-Modified-Since: {date}' $X"
            ),
            "200\n200",
        );
    }
}

/// A long file comes as it is, whole and in any part, and takes no memory that grows with it.
#[test]
fn long_files_are_sent_in_pieces() {
    let (env, served) = environment();
    let peak = |env: &TestEnv| {
        let status = format!("/proc/{}/status", served.process());
        let peak = env.sh(&format!(
            "sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' {status}"
        ));
        peak.parse::<u64>().expect("a number of KiB")
    };
    sh(
        &env,
        &served,
        "head -c 52428800 /dev/urandom > $D/long; get $U/col/$one/doc/long -r 0-99999 | wc -c",
    );
    let before = peak(&env);
    prints(
        &env,
        &served,
        "X=$U/col/$one/doc/long; sum=$(sha256sum < $D/long)
         test \"$(get $X | sha256sum)\" = \"$sum\"
         { get -r 0-0 $X; get -r 1-65536 $X; get -r 65537-131073 $X; get -r 131074-50000000 $X
           get -r 50000001- $X; } | sha256sum | diff - <(echo \"$sum\")
         for i in 1 2 3 4 5 6 7 8; do get --limit-rate 100M $X | sha256sum & done | sort -u | diff - <(echo \"$sum\")
         line content-length -r 131074-50000000 $X",
        "49868927",
    );
    let grown = peak(&env).saturating_sub(before);
    println!("{before} KiB, and {grown} KiB more at most");
    assert!(grown < 16 * 1024, "{grown} KiB more");
    // A file that becomes shorter under way ends the connection.
    prints(
        &env,
        &served,
        "curl -s --limit-rate 2M $U/col/$one/doc/long -o part & waits test -s part; truncate -s 1 A.store/col/$one/doc/long
         wait $! || echo cut",
        "cut",
    );
}

/// A change through a mount of the same store is served at once.
#[test]
fn a_mount_beside_is_seen_at_once() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        "for number in 1 2 3 4 5 6 7 8 9; do
             echo $number > $D/x; get $U/col/$one/doc/x; get $U/$ibip/x
         done | uniq -c | tr -s ' ' | tr '\\n' ,
         new=$(ibifs mint A | head -n 1); echo new > A/$new/doc/x; get $U/col/$new/doc/x
         mv $D/x $D/y; status $U/col/$one/doc/x; status $U/col/$one/doc/y
         ln -sfn ../../../$new \"A/$one!\"; get \"$U/$ibip!/x\"
         rm -r A/$new/doc; rmdir A/$new; status $U/col/$new/doc/x; status $U/$new; status \"$U/$ibip!\"",
        " 2 1, 2 2, 2 3, 2 4, 2 5, 2 6, 2 7, 2 8, 2 9,new\n404\n200\nnew\n410\n410\n302",
    );
}

/// An item in either form, in any case, by an alias; the file that is meant by a path, or by none.
#[test]
fn persistent_urls_lead_to_content() {
    let (env, served) = environment();
    sh(
        &env,
        &served,
        "echo x > $D/x; echo y > A/$one/y; mkdir $D/sub; echo z > $D/sub/z; printf l > $D/$'\\341 &+'
         setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/$one",
    );
    prints(
        &env,
        &served,
        "for ibi in $one ${one^^} $ibip ${ibip,,} 6RPa7umaZ/UaJFT; do
             for path in x y sub/z doc/x /x %E1%20%26+; do get $U/$ibi/$path | tr '\\n' ' '; done; echo
         done | uniq -c | tr -s ' '
         line content-location $U/$ibip/x | sed s:$one:REP:; line content-location $U/$ibip/y | sed s:$one:REP:",
        " 5 x y z x x l\n/col/REP/doc/x\n/col/REP/y",
    );
    // Of several files none is the target until one is named.
    prints(
        &env,
        &served,
        "status $U/$ibip; setfattr -n user.ibi.target -v x A/$one
         for ibi in $one ${one^^} $ibip ${ibip,,}/ 6RPa7umaZ/UaJFT $ibip?other=1; do line location $U/$ibi; done | uniq -c | tr -s ' ' | sed s:$one:REP:
         get -L $U/$ibip
         get -H 'Accept: text/plain' \"$U/$ibip?ibiurl.verblist=GetFileList\" | grep -a -e ^doc/x -e ^y; line location $U/col/$one/doc/sub | sed s:$one:REP:",
        "200\n 5 /col/REP/doc/x\n 1 /col/REP/doc/x?other=1\nx\ndoc/x\ny\n/REP?ibiurl.verblist=GetFileList",
    );
    for (path, status) in [
        ("$one/none", "404"),
        ("$one/x/", "404"),
        ("$one/doc/x/y", "404"),
        ("6RPa7umaZ/uaJFT", "404"),
        ("8JMKD3MGP8W/35MMLL8", "404"),
        ("example.org/x/2001/01.01.01.01/x", "404"),
        ("example.org/x/2001/31.01.01.01", "404"),
        ("col/$one/x", "404"),
        ("col/$ibip/doc/x", "404"),
        ("$one%21", "200"),
        ("$one*", "404"),
        ("$one!!", "400"),
        ("$one+(por)", "400"),
        ("$one+(pt", "400"),
        ("$one?ibiurl.verblist=GetNothing", "400"),
        ("$one?ibiurl.verblist=%zz", "400"),
        ("$one?a=1&a=2", "400"),
        ("%zz", "400"),
        ("", "200"),
        ("nothing.txt", "404"),
    ] {
        prints(
            &env,
            &served,
            &format!("status -L -g \"$U/{path}\""),
            status,
        );
    }
    prints(
        &env,
        &served,
        "for path in col/$one/doc/x $ibip/x $ibip; do
             status -X POST $U/$path; line allow -X POST $U/$path; status -X DELETE $U/$path
         done | uniq -c | tr -s ' ' | head -n 3; curl -s $U/example.org/x/2001/01.01.01.01 | grep -o '<h1>.*</h1>'",
        " 1 405\n 1 GET, HEAD\n 2 405\n<h1><bdi>Not found</bdi></h1>",
    );
}

/// Modifiers and verbs lead to related items, by the reader's language, and on to other Archives.
#[test]
fn modifiers_lead_to_related_items() {
    let (env, served) = environment();
    sh(
        &env,
        &served,
        "for n in pt br en; do
             new=$(ibifs mint A | head -n 1); echo \"$n=$new\" >> vars; echo $n > A/$new/doc/x
         done; . ./vars; echo one > $D/x; setfattr -n user.ibi.language -v en A/$one
         ln -s ../../../$pt \"A/$one+(pt)\"; ln -s ../../../$br \"A/$one+(pt-BR)\"
         printf 'title: Um\\n' > A/$pt/.ibi.metadata
         printf 'title: Ein\\n' > A/$one/.ibi.metadata",
    );
    prints(
        &env,
        &served,
        "get -L -g \"$U/$ibip+(pt)\"; get -g \"$U/$one+(pt-BR)/x\"; get -g \"$U/$one?ibiurl.verblist=GetTranslation(pt)\" -L
         get -g \"$U/$one!?ibiurl.verblist=GetLastEdition+GetTranslation(pt)\" -L
         get -g \"$U/$one+(pt):\"; line content-type -g \"$U/$one+(pt):\"
         get -g \"$U/$one+(pt):(oai_dc)\" | grep -o '>Um<'; line content-type -g \"$U/$one:(oai_dc)\"
         get -g \"$U/$one?ibiurl.verblist=GetMetadata(oai_dc)\" | grep -o '>Ein<'
         status -g \"$U/$one:(oai_dc)/x\"; status -g \"$U/$one:(marc21)\"; status -g \"$U/$one+(fr)\"
         status -g \"$U/$one:?ibiurl.verblist=GetMetadata(oai_dc)\"",
        "pt\nbr\npt\npt\ntitle: Um\ntext/plain; charset=utf-8\n>Um<\napplication/xml; charset=utf-8\n>Ein<\n404\n404\n404\n400",
    );
    for (languages, text) in [
        ("pt-BR,pt;q=0.9", "br"),
        ("pt;q=0.3, en;q=0.8", "one"),
        ("fr, pt-BR;q=0.2, en;q=0.1", "br"),
        ("pt-PT", "pt"),
        ("en;q=0, pt;q=0.1", "pt"),
    ] {
        prints(
            &env,
            &served,
            &format!(
                "get -L -H 'Accept-Language: {languages}' \"$U/$one+\"; line vary -H 'Accept-Language: {languages}' \"$U/$one+\""
            ),
            &format!("{text}\nAccept, Accept-Language"),
        );
    }
    prints(
        &env,
        &served,
        "line vary \"$U/$one+/none\"; line vary -g \"$U/$one+(pt)\"; line vary \"$U/$one!\"
         other=example.org/x/2001/01.01.01.01
         ibifs relate A/$en --next-edition $other; line location \"$U/$en!\"; line location \"$U/$en!/a%20b?ibiurl.requireditemstatus=Original\"
         line location -g \"$U/$en!+(pt):\"; mkdir -p A/$other/doc; echo copy > A/$other/doc/x
         # Other processes know a new item 10 ms later.
         waits eval 'test $(status \"$U/$other/x\") = 200'; get -L \"$U/$en!\"
         status \"$U/$other/x\"; curl -s \"$U/$other?ibiurl.requireditemstatus=Original\"; status \"$U/$en!?ibiurl.requireditemstatus=Original\"
         status -L \"$U/$one?ibiurl.requireditemstatus=Original\"",
        "Accept-Language\nAccept\nAccept\nhttp://urlib.net/example.org/x/2001/01.01.01.01!\n\
         http://urlib.net/example.org/x/2001/01.01.01.01!/a%20b?ibiurl.requireditemstatus=Original\n\
         http://urlib.net/example.org/x/2001/01.01.01.01!+(pt):\ncopy\n200\n\
         the original was requested, and this Archive holds a copy\n404\n200",
    );
}

/// Only the content of items is served, however a client requests it.
#[test]
fn nothing_else_can_be_read() {
    let (env, served) = environment();
    sh(
        &env,
        &served,
        "S=A.store/col/$one/doc; echo secret > secret; echo good > $D/good; mkdir $D/sub; echo good > $D/sub/good
         ln -s good $D/in; ln -s ../doc/sub/good $D/in2; ln -s sub $D/insub
         ln -s $PWD/secret $S/out; ln -s ../../../../../../../secret $S/out2; ln -s / $S/root; ln -s .. $S/up
         ln -s ../.ibi $S/side; ln -s ../.ibi.metadata $S/text; ln -s ../../../../../../archive.ibi $S/store
         ln -s loop $S/loop; ln -s /proc/self/environ $S/proc; ln -s ../../$(basename $one) $S/round
         printf 'title: t\\n' > A/$one/.ibi.metadata; touch A.store/col/$one/.ibi.aside
         mkfifo $S/pipe; mknod $S/zero c 1 5; mknod $S/disk b 7 0; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('$S/sock')\"
         echo secret > $D/shut; chmod 600 $D/shut; mkdir $D/private; echo secret > $D/private/x; chmod 700 $D/private
         new=$(ibifs mint A | head -n 1); echo \"new=$new\" >> vars; echo secret > A/$new/doc/x; chmod 700 A/$new",
    );
    prints(
        &env,
        &served,
        "for path in good in in2 insub/good; do get $U/col/$one/doc/$path; get $U/$ibip/$path; done | uniq -c | tr -s ' '",
        " 8 good",
    );
    // An encoded slash is a slash: no name has one.
    prints(
        &env,
        &served,
        "get $U/${one//\\//%2F}%2Fgood; get $U/col%2f${one//\\//%2F}%2fdoc%2Finsub%2Fgood; get $U/${ibip/\\//%2f}/good",
        "good\ngood\ngood",
    );
    let hostile = "
        doc/out doc/out2 doc/root doc/root/etc/passwd doc/up/.ibi doc/side doc/text doc/store doc/loop doc/proc
        doc/round/doc/good doc/pipe doc/zero doc/disk doc/sock doc/shut doc/private doc/private/x doc/root/
        .ibi .ibi/ /.ibi ./.ibi .ibi. .ibi.metadata .ibi.aside %2Eibi %2eibi%2emetadata doc/../.ibi doc/%2e%2e/.ibi
        doc/..%2f.ibi doc/%2e%2e%2f.ibi doc%2f..%2f.ibi doc/%252e%252e/.ibi doc/..%252f.ibi doc/.%2e/.ibi doc/sub/../../.ibi
        doc/..%c0%af.ibi doc/%c0%ae%c0%ae/.ibi doc/..%5c.ibi doc/.../.ibi doc/..;/.ibi
        doc/good%00 doc/good%00.txt %00 doc/go%6fd/ doc/good/. doc/good/.. doc/./good doc/sub/../good doc//sub/..//good
        ../ .. . ../../../../../archive.ibi ../../../../../relations.sqlite3 ../../../../../../secret
        ..%2f..%2f..%2f..%2f..%2farchive.ibi %2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/secret ..%2f..%2f..%2f..%2f..%2f..%2fsecret
        %2fetc%2fpasswd //etc/passwd doc//etc/passwd doc/%2fetc/passwd";
    let printed = sh(
        &env,
        &served,
        &format!(
            "long=$(printf 'a%.0s' $(seq 300)); deep=$(printf 'a/%.0s' $(seq 3000))
             paths=$(cat <<'END'
{hostile}
END
)
             set -f; for path in $paths doc/$long doc/$deep; do
                 for base in col/$one $one $ibip; do
                     echo \"$(curl -s -m 5 -o body -w '%{{http_code}}' --path-as-is \"$U/$base/$path\") $base/${{path:0:60}} $(grep -c -a -e secret -e root: -e 'ibi ' -e SQLite -e good body)\"
                 done
             done
             for path in archive.ibi relations.sqlite3 lock col col/ col/.. col/../archive.ibi ../secret %2e%2e/secret ibip ibip/$ibip/doc/good \\
                 col/$new col/$new/ col/$new/doc/x $new/x $new $new?ibiurl.verblist=GetFileList \"$new:(oai_dc)\" A.store/archive.ibi \\
                 col/$one/../../../../../archive.ibi col/..%2farchive.ibi  .mint .ibi; do
                 echo \"$(curl -s -g -m 5 -o body -w '%{{http_code}}' --path-as-is \"$U/$path\") $path $(grep -c -a -e secret -e root: -e SQLite -e good -e '<dc' body)\"
             done"
        ),
    );
    let count = printed.lines().count();
    let strays: Vec<&str> = printed
        .lines()
        .filter(|line| !line.starts_with("404 ") || !line.ends_with(" 0"))
        .collect();
    assert!(count > 220, "{count} asked");
    assert!(strays.is_empty(), "{}", strays.join("\n"));
    // It still answers.
    prints(&env, &served, "get $U/col/$one/doc/good", "good");
}

/// A link that leads out of its item into another one, by rep or IBIp, is redirected to it, as it leads there in
/// the mount; where the other item is not public, there is nothing.
#[test]
fn links_lead_to_other_items() {
    let (env, served) = environment();
    sh(
        &env,
        &served,
        "two=$(ibifs mint A | head -n 1); hidden=$(ibifs mint A | head -n 1); up=../../../../..
         echo text > A/$two/doc/file; echo latin > A/$two/doc/$'ol\\341'; echo secret > A/$hidden/doc/file; chmod 700 A/$hidden
         echo \"two=$two hidden=$hidden\" >> vars; mkdir $D/sub
         ln -s $up/$two/doc/file $D/rep; ln -s $up/$(ibip A/$two)/doc/file $D/ibip; ln -s ../rep $D/sub/again
         ln -s $up/$two/doc $D/all; ln -s $up/$two $D/item; ln -s $up/$hidden/doc/file $D/hidden
         ln -s $up/$two/.ibi $D/sidecar; ln -s $up/a.example/b/2001/01.01.00.00/doc/x $D/unknown; ln -s /etc/passwd $D/absolute
         ln -s $up/../../../etc/passwd $D/outside; ln -s loop $D/loop; cat $D/rep $D/ibip $D/sub/again $D/all/file > /dev/null",
    );
    for base in ["col/$one/doc", "$one", "$ibip"] {
        for name in ["rep", "ibip", "sub/again", "all/file"] {
            prints(
                &env,
                &served,
                &format!(
                    "curl -s -o /dev/null -w '%{{http_code}} %{{redirect_url}}\n' $U/{base}/{name} | sed \"s|$U||; s|$two|TWO|\"
                     curl -sfL $U/{base}/{name}"
                ),
                "302 /col/TWO/doc/file\ntext",
            );
        }
        prints(
            &env,
            &served,
            &format!(
                "curl -sfL $U/{base}/all/ol%E1; curl -sfL -o /dev/null -w '%{{http_code}}' $U/{base}/item"
            ),
            "latin\n200",
        );
        for name in [
            "hidden", "sidecar", "unknown", "absolute", "outside", "loop", "nothing",
        ] {
            prints(
                &env,
                &served,
                &format!("curl -sL -o /dev/null -w '%{{http_code}}' $U/{base}/{name}"),
                "404",
            );
        }
    }
}

/// The first scrub of a store is found by a service that runs already and may not enter the store any more.
#[test]
fn digests_of_a_first_scrub_are_sent() {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"item=$(mint A digests); D=A/$item/doc; truncate -s 5M "$D/x"; touch -d '1 hour ago' "$D/x"
        test ! -e A.store/fixity; echo "item=$item D=$D" > vars"#,
    );
    let served = Served::start(&env, "A.store");
    prints(
        &env,
        &served,
        r#"digest() { line repr-digest -H "Want-Repr-Digest: sha-256" "$U/col/$item/doc/x"; }
        digest; stat -c %a A.store A.store/fixity; ibifs fsck A.store > said; ibifs scrub A.store > said
        test "$(digest)" = "sha-256=:$(openssl dgst -sha256 -binary "$D/x" | base64):"; echo end"#,
        "700\n700\nend",
    );
}

/// A reader that asks for it gets the digest that a scrub recorded (RFC 9530), of the whole file and with each part of
/// it; of a long file that has been written since, no digest.
#[test]
fn recorded_digests_are_sent() {
    let env = TestEnv::new().with_a();
    env.sh(r#"item=$(mint A digests); D=A/$item/doc; seq 5000 > "$D/a b"; echo x > "$D/x"; ln -s 'a b' "$D/link"
        touch -d '1 hour ago' "$D/a b" "$D/x"; ibifs scrub A.store > /dev/null; echo "item=$item D=$D" > vars"#);
    let served = Served::start(&env, "A.store");
    prints(
        &env,
        &served,
        r#"digest() { line repr-digest -H "Want-Repr-Digest: ${2-sha-256=5}" "${@:3}" "$U/col/$item/doc/$1"; }
        expected="sha-256=:$(openssl dgst -sha256 -binary "$D/a b" | base64):"
        for name in 'a%20b' link; do test "$(digest $name)" = "$expected"; done
        test "$(digest 'a%20b' sha-256 -r 0-9)" = "$expected"
        test "$(line repr-digest -H 'Want-Repr-Digest: sha-256=1' "$U/$item/a%20b")" = "$expected"
        digest 'a%20b' sha-256=0; digest 'a%20b' sha-512=1; line repr-digest "$U/col/$item/doc/a%20b"
        truncate -s 5M "$D/a b"; digest 'a%20b'; digest x | wc -c
        chmod 600 "$D/x"; digest x; echo end"#,
        "55\nend",
    );
    // A file that no scrub has read has its digest computed, up to 4 MiB.
    prints(
        &env,
        &served,
        r#"digest() { line repr-digest -H 'Want-Repr-Digest: sha-256' "$U/col/$item/doc/a%20b"; }
        for size in 0 1 4194304 4194305; do
          truncate -s $size "$D/a b"; s=$(digest); test -n "$s" || { echo none for $size; continue; }
          test "$s" = "sha-256=:$(openssl dgst -sha256 -binary "$D/a b" | base64):"; echo $size
        done"#,
        "0\n1\n4194304\nnone for 4194305",
    );
}
