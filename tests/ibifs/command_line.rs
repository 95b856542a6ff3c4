//! The command line: what each command prints, its exit status, and starting and ending a mount.

use crate::support::TestEnv;

/// A command that must end with this status, with one line of complaint that begins `ibifs: `.
#[track_caller]
fn refuses(env: &TestEnv, command: &str, status: i32) {
    let output = env.run(command);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{command}\n{complaint}");
    assert!(
        complaint.starts_with("ibifs: ") && complaint.lines().count() == 1,
        "{command}\n{complaint}"
    );
}

/// Asserts what `ibifs id explain --json` says of an identifier, on one line.
#[track_caller]
fn explains(env: &TestEnv, ibi: &str, expected: &str) {
    env.prints(
        &format!("ibifs id explain '{ibi}' --json | jq -c ."),
        expected,
    );
}

/// `ibifs id explain --json` takes an identifier apart: form, canonical spelling, host or address, port, date
/// (RFC 3339), and the date as both suffixes (ibi(7)).
#[test]
#[rustfmt::skip] // one case, one pair of lines
fn id_explain_takes_identifiers_apart() {
    let env = TestEnv::new();
    explains(&env, "sid.INPE.br/MTC-m18@80/2009/02.16.17.46",
        r#"{"kind":"item","form":"rep","canonical":"sid.inpe.br/mtc-m18@80/2009/02.16.17.46","host":"mtc-m18.sid.inpe.br","port":80,"date":"2009-02-16T17:46:00Z","rep_suffix":"2009/02.16.17.46","ibip_suffix":"34PGRBS"}"#);
    explains(&env, "8JMKD3MGP8W/34PGRBS",
        r#"{"kind":"item","form":"ibip","canonical":"8JMKD3MGP8W/34PGRBS","address":"150.163.34.243","port":800,"date":"2009-02-16T17:46:00Z","rep_suffix":"2009/02.16.17.46","ibip_suffix":"34PGRBS"}"#);
    explains(&env, "iconet.com.br/banon/2009/09.09.22.01",
        r#"{"kind":"item","form":"rep","canonical":"iconet.com.br/banon/2009/09.09.22.01","host":"banon.iconet.com.br","port":80,"date":"2009-09-09T22:01:00Z","rep_suffix":"2009/09.09.22.01","ibip_suffix":"362SFKH"}"#);
    explains(&env, "dpi.inpe.br/banon-pc3@80/2009/11.10.13.03",
        r#"{"kind":"item","form":"rep","canonical":"dpi.inpe.br/banon-pc3@80/2009/11.10.13.03","host":"banon-pc3.dpi.inpe.br","port":80,"date":"2009-11-10T13:03:00Z","rep_suffix":"2009/11.10.13.03","ibip_suffix":"36CT2G2"}"#);
    explains(&env, "sid.inpe.br/mtc-m12@1905/2006/08.28.17.53.20",
        r#"{"kind":"item","form":"rep","canonical":"sid.inpe.br/mtc-m12@1905/2006/08.28.17.53.20","host":"mtc-m12.sid.inpe.br","port":1905,"date":"2006-08-28T17:53:20Z","rep_suffix":"2006/08.28.17.53.20","ibip_suffix":"SBN4N7"}"#);
    explains(&env, "sid.inpe.br/mtc-m19.8080/2009/02.16.17.46.00.05",
        r#"{"kind":"item","form":"rep","canonical":"sid.inpe.br/mtc-m19.8080/2009/02.16.17.46.00.05","host":"mtc-m19.sid.inpe.br","port":8080,"date":"2009-02-16T17:46:00.05Z","rep_suffix":"2009/02.16.17.46.00.05","ibip_suffix":"34PGRBSW27"}"#);
    explains(&env, "sid.inpe.br/mtc-m19/1990/01.01.00.00",
        r#"{"kind":"item","form":"rep","canonical":"sid.inpe.br/mtc-m19/1990/01.01.00.00","host":"mtc-m19.sid.inpe.br","port":80,"date":"1990-01-01T00:00:00Z","rep_suffix":"1990/01.01.00.00","ibip_suffix":null}"#);
    explains(&env, "lk47b6w/362sfkh",
        r#"{"kind":"item","form":"ibip","canonical":"LK47B6W/362SFKH","address":"127.0.0.1","port":800,"date":"2009-09-09T22:01:00Z","rep_suffix":"2009/09.09.22.01","ibip_suffix":"362SFKH"}"#);
    explains(&env, "8JMKD3MGP7W/3EPGUE5",
        r#"{"kind":"item","form":"ibip","canonical":"8JMKD3MGP7W/3EPGUE5","address":"150.163.34.242","port":800,"date":"2013-09-04T12:27:57Z","rep_suffix":"2013/09.04.12.27.57","ibip_suffix":"3EPGUE5"}"#);
    explains(&env, "8JMKD3MGP8W/34PGRBSW7",
        r#"{"kind":"item","form":"ibip","canonical":"8JMKD3MGP8W/34PGRBSW7","address":"150.163.34.243","port":800,"date":"2009-02-16T17:46:00.5Z","rep_suffix":"2009/02.16.17.46.00.5","ibip_suffix":"34PGRBSW7"}"#);
    explains(&env, "7URMDHLL9SSN2D89MX/34PGRBSW227",
        r#"{"kind":"item","form":"ibip","canonical":"7URMDHLL9SSN2D89MX/34PGRBSW227","address":"2001:252:0:1::2008:6","port":800,"date":"2009-02-16T17:46:00.005Z","rep_suffix":"2009/02.16.17.46.00.005","ibip_suffix":"34PGRBSW227"}"#);
    env.prints("ibifs id explain 8JMKD3MGP8W/34PGRBS | head -4 | tr -s ' '", "kind item\nform ibip\ncanonical 8JMKD3MGP8W/34PGRBS\naddress 150.163.34.243");
}

/// `ibifs id check` succeeds for good identifiers in any spelling and fails, with one line that
/// says why, for others.
#[test]
fn id_check_distinguishes_good_from_bad() {
    let env = TestEnv::new();
    for good in [
        "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
        "SID.INPE.BR/MTC-M18.80/2009/02.16.17.46.05.5",
        "sid.inpe.br./mtc-m18/2009/02.16.17.46",
        "a/b/0001/01.01.00.00",
        "a/b/12009/02.16.17.46",
        "8JMKD3MGP8W/34PGRBS",
        "8jmkd3mgp8w/34pgrbsw227",
        "8JMKD3MGP8W3/34PGRBS",
        "7URMDHLL9SSN2D89MX/3",
        "6RPa7umaZ/UaJFT",
    ] {
        env.prints(&format!("ibifs id check '{good}' 2>&1"), "");
    }
    for bad in [
        "",
        "/",
        "hello",
        "a/b",
        "a/b/c",
        "a/b/c/d/e",
        "sid.inpe.br/mtc-m18/2009/02.30.17.46",
        "sid.inpe.br/mtc-m18/2009/02.16.17.46.60",
        "sid.inpe.br/mtc_m18/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18@99999/2009/02.16.17.46",
        "8JMKD3MGP8/34PGRBS",
        "8JMKD3MGP8W/34PGRBO",
        "8JMKD3MGP8W/34PGRBSW",
        "8JMKD3MGP8W/34PGRBSWC",
        "6RPa7umaZ/UaJFl",
        "6rpa7umaz/uajft",
        "UUUW/34PGRBS",
        "sid.inpe.br/mtc\n-m18/2009/02.16.17.46",
        "é/é",
    ] {
        let command = format!("ibifs id check -- '{bad}'");
        refuses(&env, &command, 1);
        refuses(&env, &format!("ibifs id explain -- '{bad}'"), 1);
    }
    // Persistent names, but not identifiers.
    for name in [
        "/sid.inpe.br/mtc-m18/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18/2009/02.16.17.46/",
        "sid.inpe.br/mtc-m18/2009/02.16.17.46!",
        "ibi:8JMKD3MGP8W/34PGRBS",
    ] {
        refuses(&env, &format!("ibifs id check -- '{name}'"), 1);
        env.sh(&format!("ibifs id explain '{name}'"));
    }
}

/// `ibifs id explain` reads links, too: what they name, where, and what only navigates in them (ibi(7), OTHER
/// SPELLINGS).
#[test]
#[rustfmt::skip] // one case, one pair of lines
fn id_explain_takes_links_apart() {
    let env = TestEnv::new();
    explains(&env, "http://iris.sid.inpe.br:1905/col/sid.inpe.br/banon/2001/04.03.15.36.19/doc/a%20b.pdf#page=3",
        r##"{"kind":"file","form":"rep","canonical":"sid.inpe.br/banon/2001/04.03.15.36.19","host":"banon.sid.inpe.br","port":80,"date":"2001-04-03T15:36:19Z","rep_suffix":"2001/04.03.15.36.19","ibip_suffix":"EEU3DM","archive":"iris.sid.inpe.br:1905","path":"doc/a b.pdf","navigation":[{"name":"#","value":"page=3"}]}"##);
    explains(&env, "http://mtc-m19.sid.inpe.br/rep/8JMKD3MGP8W/3GUSQQ5!+(pt)?languagebutton=pt-BR",
        r#"{"kind":"item","form":"ibip","canonical":"8JMKD3MGP8W/3GUSQQ5","address":"150.163.34.243","port":800,"date":"2014-09-04T16:08:00Z","rep_suffix":"2014/09.04.16.08","ibip_suffix":"3GUSQQ5","archive":"mtc-m19.sid.inpe.br","modifier":"!+(pt)","navigation":[{"name":"languagebutton","value":"pt-BR"}]}"#);
    explains(&env, "http://urlib.net/upn:9HFNHE:CBnmVX32PXQZeBBx/qg53m",
        r#"{"kind":"item","form":"legacy","canonical":"CBnmVX32PXQZeBBx/qg53m","likely_rep_prefix":"iconet.com.br/banon","date":"2001-05-25T16:44:00Z","rep_suffix":"2001/05.25.16.44","ibip_suffix":"EPDFU5","name_space":"9HFNHE"}"#);
    explains(&env, "sid.inpe.br/mtc-m19/2012/05.10.21.43-TDI?ibiurl.requireditemstatus=Original",
        r#"{"kind":"item","form":"rep","canonical":"sid.inpe.br/mtc-m19/2012/05.10.21.43","host":"mtc-m19.sid.inpe.br","port":80,"date":"2012-05-10T21:43:00Z","rep_suffix":"2012/05.10.21.43","ibip_suffix":"3BS8S7H","citation_key":"TDI","required_state":"Original"}"#);
    explains(&env, "http://a.b/rep-/sid.inpe.br/marciana/2004/",
        r#"{"kind":"level","form":"level","canonical":"sid.inpe.br/marciana/2004","archive":"a.b"}"#);
    env.prints("ibifs id explain 'http://a.b/col/x.br/y/2009/02.16.17.46/doc/mirrorget.cgi?choice=full&metadatarepository=LK47B6W/362SFKH' | grep -v ' 2009\\|suffix' | tr -s ' '",
        "kind record\nform ibip\ncanonical LK47B6W/362SFKH\naddress 127.0.0.1\nport 800\narchive a.b\nnavigation choice=full");
    env.prints("ibifs id explain \"$(printf '8JMKD3MGP8W/34PGRBS/Relat%%f3rio.pdf')\" --json | jq -r .path", "Relat%F3rio.pdf");
}

/// A mount point may be called anything, another user's and one's own.
#[test]
fn a_mount_point_need_not_be_text() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A.store --host archive-a.example.org; mkdir A $'other\\xff' $'own\\xff'
         mount -t tmpfs tmpfs $'other\\xff'; trap \"umount $'other\\xff'\" EXIT
         ibifs mount A.store A; ibifs status A | grep -q '^mounted .*/A$'; ibifs mint A; ibifs umount A
         ibifs mount A.store $'own\\xff'; ibifs mint A.store; ibifs mint $'own\\xff'; ibifs umount $'own\\xff'",
    );
    env.prints("ibifs ls A.store | wc -l", "4");
}

/// `ibifs status` says what is mounted where, and who reads and writes files.
#[test]
fn status_says_who_reads_and_writes() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir A; ibifs mount A.store A");
    let expected = format!(
        "store    {0}/A.store\nmounted  {0}/A\ndata     the kernel reads and writes files itself (FUSE passthrough)",
        env.root().display()
    );
    env.prints("ibifs status A | head -n 3", &expected);
    env.prints("ibifs status A.store | head -n 3", &expected);
    env.sh("ibifs status | grep -qx \"store    $PWD/A.store\"; ibifs umount A");
    env.prints("ibifs status A.store | sed -n 2p", "mounted  no");
    env.sh("ibifs mount -o passthrough=no A.store A");
    env.prints(
        "ibifs status A --json | jq -c '.[0] | [.data, .data_reason]'",
        r#"["daemon","requested with -o passthrough=no"]"#,
    );
    env.exits("ibifs status nowhere", 3);
    // A mount by root is for all, unless root says otherwise.
    env.sh(
        "chmod 755 .; setpriv --reuid 1234 --clear-groups ls A; ibifs umount A
        ibifs mount -o allow_other=no A.store A; no setpriv --reuid 1234 --clear-groups ls A",
    );
}

/// A usage error is status 2, and so are missing and contradictory arguments.
#[test]
fn usage_errors_are_status_2() {
    let env = TestEnv::new();
    for command in [
        "ibifs",
        "ibifs what",
        "ibifs mint",
        "ibifs init",
        "ibifs mint A.store --lang pt",
        "ibifs mint A.store --translation-of x",
        "ibifs mint A.store --edition-of x --metadata-of y",
        "ibifs relate x",
        "ibifs relate x --translation y",
        "ibifs unrelate x",
        "ibifs init A.store --port 99999",
        "ibifs init A.store --host a.example.org --port 0",
        "ibifs init A.store --host a.example.org --ip-port 0",
        "ibifs init A.store --email banon",
        "ibifs init A.store --email b.anon@iconet.com.br",
        "ibifs init A.store --email banon@iconet.com.br --host a.example.org",
        "ibifs init A.store --ip hello",
        "ibifs init A.store --service hello",
        "ibifs init A.store --host nodot",
        "ibifs init A.store --host 'a b.example.org'",
        "ibifs show sid.inpe.br/x/2009/01.01.00.00 --store",
    ] {
        env.exits(command, 2);
    }
    env.prints("ibifs --version | grep -c '^ibifs [0-9]'", "1");
    env.prints("test -e A.store && echo there || echo none", "none");
}

/// `--granularity` takes 60, 1 and decimal parts of a second, and nothing else; the labels show it.
#[test]
fn granularities_are_those_of_the_documents() {
    let env = TestEnv::new();
    for (number, good) in ["60", "1", "1/10", "0.1", "1/1000", "1/1000000000"]
        .iter()
        .enumerate()
    {
        env.sh(&format!(
            "ibifs init S{number} --host archive-a.example.org --granularity {good}"
        ));
    }
    for bad in [
        "0",
        "2",
        "10",
        "30",
        "1/2",
        "1/0",
        "-1",
        "1/20",
        "x",
        "",
        "60.0",
        "1/10000000000",
    ] {
        let command = format!("ibifs init S --host archive-a.example.org --granularity='{bad}'");
        env.exits(&command, 2);
        env.complains(&command, "60, 1, 1/10");
        env.sh("test ! -e S");
    }
    env.prints(
        "ibifs init T --host archive-a.example.org --granularity 0.01 --json | jq -r .granularity",
        "1/100",
    );
    env.sh("ibifs mint S1 > one; ibifs mint S1 > two; ibifs mint S1 > three");
    // Of three seconds that follow each other, one at most is a whole minute, which is named as one.
    env.sh("head -qn1 one two three > names; test $(sort -u names | wc -l) = 3
        test $(grep -cE '^example.org/archive-a/[0-9]{4}(/|[.])([0-9]{2}[.]){3,4}[0-9]{2}$' names) = 3
        test $(grep -cE '^example.org/archive-a/[0-9]{4}(/|[.])([0-9]{2}[.]){4}[0-9]{2}$' names) -ge 2");
}

/// `ibifs init` prints where minted names begin; `--json` the Archive's facts. An IPv4 address in the form of IPv6 is that
/// IPv4 address.
#[test]
fn init_says_what_it_made() {
    let env = TestEnv::new();
    env.prints(
        "ibifs init A.store --host Archive-A.Example.ORG --port 8080 --ip ::ffff:150.163.34.243 --json |
         jq -c '[keys_unsorted, .host, .port, .ip, .ip_port, .granularity, (.archiveservice|keys_unsorted)]'",
        r#"[["store","host","port","ip","ip_port","granularity","archiveservice"],"archive-a.example.org",8080,"150.163.34.243",800,"1/1000",["rep","ibip"]]"#,
    );
    env.prints(
        "ibifs mint A.store | sed 's,/20.*,,; s,W/.*,W,'",
        "example.org/archive-a.8080\n8JMKD3MGP8W",
    );
    env.prints(
        "ibifs init B.store --host b.example.net | head -1 | cut -d: -f2 | cut -d, -f1",
        " reps begin example.net/b",
    );
    // A computer without a name on the Internet: the prefix of source document 002, chapter 3.
    env.prints(
        "ibifs init C.store --email banon@iconet.com.br | head -1 | cut -d: -f2 | cut -d, -f1",
        " reps begin iconet.com.br/banon",
    );
    let again = "ibifs init A.store --host other.example.org";
    env.complains(again, "is a store already");
    refuses(&env, again, 4);
    env.prints(
        "grep ^host A.store/archive.ibi",
        "host archive-a.example.org",
    );
}

/// `ibifs mint --json` is an object of both names and the state.
#[test]
fn mint_prints_both_names() {
    let env = TestEnv::new().with_a();
    for place in ["A", "A.store", "A/example.org"] {
        env.prints(
            &format!("ibifs mint {place} --json | jq -c keys_unsorted"),
            r#"["rep","ibip","state"]"#,
        );
        env.prints(&format!("ibifs mint {place} | wc -l"), "2");
    }
    env.sh("ibifs mint A > names; test -d A/$(head -1 names)/doc; test -d A/$(tail -1 names)/doc");
    env.sh("ls A/.mint > labels; test ! -s labels");
    env.sh("ibifs umount A");
    env.prints(
        "ibifs mint A.store --json | jq -c keys_unsorted",
        r#"["rep","ibip","state"]"#,
    );
    env.prints("ibifs ls A.store | wc -l", "9");
}

/// Mints each kind of relative, in whichever way the place is reached, and looks at both ends.
#[track_caller]
fn mints_relatives(env: &TestEnv, place: &str) {
    env.sh(&format!(
        "m() {{ ibifs mint {place} \"$@\" | head -1; }}
        s() {{ ibifs show $1 --store {place} --json | jq -r \"$2\"; }}
        m > base; m --edition-of $(<base) > second
        m --translation-of $(<base) --lang pt > pt; m --translation-of $(<base) --lang pt-BR > br
        m --metadata-of $(<base) > metadata
        test $(s $(<base) .relations.nextedition.rep) = $(<second)
        test $(s $(<base) .relations.lastedition.rep) = $(<second)
        test $(s $(<second) .relations.editionof.rep) = $(<base)
        test $(s $(<base) '.relations[\"translation(pt)\"].rep') = $(<pt)
        test $(s $(<base) '.relations[\"translation(pt-BR)\"].rep') = $(<br)
        test $(s $(<pt) .language) = pt
        test $(s $(<pt) .relations.translationof.rep) = $(<base)
        test $(s $(<base) .relations.metadata.rep) = $(<metadata)
        test $(s $(<metadata) .relations.metadataof.rep) = $(<base)"
    ));
    for again in [
        "--edition-of",
        "--lang pt --translation-of",
        "--metadata-of",
    ] {
        let command = format!("ibifs mint {place} {again} $(<base)");
        refuses(env, &command, 4);
    }
    env.exits(
        &format!("ibifs mint {place} --lang portuguese --translation-of $(<base)"),
        2,
    );
    env.exits(
        &format!("ibifs mint {place} --edition-of sid.inpe.br/x/2009/01.01.00.00"),
        3,
    );
    let spent = format!("ibifs ls {place} | wc -l");
    env.prints(&spent, &env.sh(&spent));
}

/// `--edition-of`, `--translation-of --lang` and `--metadata-of` relate what they mint, on a store
/// and on a mount alike; what has such a relation already is refused.
#[test]
fn mint_relates_what_it_makes() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("ibifs umount A");
    mints_relatives(&env, "A.store");
    mints_relatives(&env, "B");
    mints_relatives(&env, "B.store");
    env.sh("ibifs umount B");
    env.prints(
        "ibifs fsck A.store; ibifs fsck B.store",
        "6 items, 0 findings\n11 items, 0 findings",
    );
}

/// `--with-metadata` gives a next edition the metadata of the one before, on a mount and on a store: a text as a text,
/// an item as a new item with the same files. Without metadata nothing is minted.
#[test]
fn mint_copies_metadata_to_a_next_edition() {
    let env = TestEnv::new().with_a();
    for place in ["A", "A.store"] {
        if place == "A.store" {
            env.sh("ibifs umount A");
        }
        env.sh(&format!(
            "of() {{ ibifs show $1 --store {place} --json | jq -r \"$2\"; }}
             m() {{ ibifs mint {place} \"$@\" | head -n 1; }}
             at() {{ case {place} in A) echo A/$1;; *) echo A.store/col/$1;; esac; }}
             m > text; echo 'title: Rain' > $(at $(< text))/.ibi.metadata
             m --edition-of $(< text) --with-metadata > next
             cmp $(at $(< text))/.ibi.metadata $(at $(< next))/.ibi.metadata
             test $(of $(< next) .relations.editionof.rep) = $(< text)
             m > item; m --metadata-of $(< item) > record; mkdir -p $(at $(< record))/doc/more
             echo '%T Rain' > $(at $(< record))/doc/r.refer; echo '%T Rain' > $(at $(< record))/doc/more/r.refer
             m --edition-of $(< item) --with-metadata > next; of $(< next) .relations.metadata.rep > copy
             test $(< copy) != $(< record); diff -r $(at $(< record))/doc $(at $(< copy))/doc
             m > plain; ibifs ls {place} | wc -l > before"
        ));
        let none = format!("ibifs mint {place} --edition-of $(< plain) --with-metadata");
        env.exits(&none, 1);
        env.complains(&none, "no metadata");
        env.prints(&format!("ibifs ls {place} | wc -l"), &env.sh("cat before"));
        env.exits(&format!("ibifs mint {place} --with-metadata"), 2);
    }
    env.prints(
        "ibifs fsck A.store",
        &env.sh("ibifs fsck A.store | tail -n 1"),
    );
}

/// `ibifs relate` and `unrelate` declare and take back, on a mount and on a store.
#[test]
fn relate_and_unrelate() {
    let env = TestEnv::new().with_a();
    for round in ["A", "A.store"] {
        if round == "A.store" {
            env.sh("ibifs umount A");
        }
        env.sh(&format!("export IBIFS_STORE={round}
            ibifs mint {round} > a; ibifs mint {round} > b
            A=$(head -1 a) B=$(tail -1 b); b=$(head -1 b)
            s() {{ ibifs show $A --json | jq -r \"$1\"; }}
            ibifs relate $A --next-edition $B; test $(s .relations.nextedition.rep) = $b
            ibifs unrelate $A --next-edition; test $(s .relations.nextedition) = null
            ibifs relate $A --translation $B --lang pt; test $(s '.relations[\"translation(pt)\"].ibip') = $B
            ibifs unrelate $A --translation --lang pt; test $(s '.relations|length') = 1
            ibifs relate $A --metadata $B; test $(s .relations.metadata.rep) = $b
            ibifs unrelate $A --metadata; test $(s .relations.metadata) = null
            ibifs relate $A --next-edition sid.inpe.br/elsewhere/2009/01.01.00.00
            test $(s .relations.lastedition.rep) = sid.inpe.br/elsewhere/2009/01.01.00.00"));
        let nothing = format!("ibifs unrelate $(head -1 b) --metadata --store {round}");
        refuses(&env, &nothing, 3);
        let unknown = format!(
            "ibifs relate sid.inpe.br/x/2009/01.01.00.00 --next-edition $(head -1 b) --store {round}"
        );
        refuses(&env, &unknown, 3);
    }
    env.sh("ibifs mount A.store A; mkdir -p A/sid.inpe.br/x/2009/01.01.0{0,1}.00");
    let foreign = "ibifs relate A/sid.inpe.br/x/2009/01.01.00.00 --next-edition A/sid.inpe.br/x/2009/01.01.01.00";
    env.exits(foreign, 4);
    env.complains(foreign, "original");
}

/// `ibifs ls` prints state, rep and IBIp, of all items or of the items with a prefix or in a state.
#[test]
fn ls_lists_by_prefix_and_state() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p A/sid.inpe.br/MTC-m13@80/2005/01.01.00.00 A/sid.inpe.br/mtc-m18/2009/01.01.00.00 A/8JMKD3MGP8W/34PGRBS
        mint A x > rep; mint A y > gone; rm -r A/$(<gone)");
    env.prints(
        "ibifs ls A | cut -d' ' -f1 | sort | uniq -c | xargs",
        "3 Copy 1 Deleted 2 Original",
    );
    env.prints(
        "ibifs ls A sid.inpe.br | tr -s ' '",
        "Copy sid.inpe.br/MTC-m13@80/2005/01.01.00.00 -\nCopy sid.inpe.br/mtc-m18/2009/01.01.00.00 -",
    );
    env.prints("ibifs ls A.store SID.inpe.br/mtc-M13 | wc -l", "1");
    env.prints("ibifs ls A 8jmkd | tr -s ' '", "Copy - 8JMKD3MGP8W/34PGRBS");
    env.prints("ibifs ls A nothing", "");
    env.prints("ibifs ls A --state Copy | wc -l", "3");
    env.prints("ibifs ls A --state Deleted | grep -c $(<gone)", "1");
    env.prints(
        "ibifs ls A --json | jq -c '[length, (.[] | select(.state == \"Deleted\") | keys_unsorted)]'",
        r#"[6,["rep","ibip","state","timestamp","draft","withdrawn"]]"#,
    );
    env.prints(
        "ibifs ls A 8J --json | jq -c .",
        r#"[{"rep":null,"ibip":"8JMKD3MGP8W/34PGRBS","state":"Copy","draft":false,"withdrawn":null}]"#,
    );
    env.exits("ibifs ls A --state Lost", 2);
    env.prints("ibifs ls A | head -c0; echo $?", "0");
}

/// `ibifs show` finds an item by a path to it or into it, in mount or store, by either form in any
/// case, and through modifiers.
#[test]
fn show_finds_items_by_every_name() {
    let env = TestEnv::new().with_a();
    env.sh(
        "ibifs mint A > names; head -1 names > rep; tail -1 names > ibip
        mkdir -p A/$(<rep)/doc/deep; echo > \"A/$(<rep)/doc/deep/a file\"
        ibifs mint A --edition-of $(<rep) | head -1 > second
        setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/$(<rep)",
    );
    let rep = env.sh("cat rep");
    for name in [
        "A/$(<rep)",
        "A/$(<ibip)",
        "A/$(<rep)/doc/deep/a file",
        "A/$(<ibip)/doc/deep",
        "A.store/col/$(<rep)",
        "A.store/col/$(<rep)/doc/deep/a file",
        "$(<rep)",
        "$(<ibip)",
        "$(tr a-z A-Z < rep)",
        "$(tr A-Z a-z < ibip)",
        "6RPa7umaZ/UaJFT",
        "$PWD/A/$(<rep)/../$(basename $(<rep))/doc",
    ] {
        env.prints(
            &format!("ibifs show \"{name}\" --store A --json | jq -r .rep"),
            &rep,
        );
    }
    for name in [
        "A/$(<rep)!",
        "A/$(<ibip)!",
        "$(<rep)!",
        "$(<ibip)!",
        "$(<rep)?GetLastEdition",
        "A/$(<rep)!/doc",
    ] {
        env.prints(
            &format!("ibifs show \"{name}\" --store A.store --json | jq -r .rep"),
            &env.sh("cat second"),
        );
    }
    env.prints(
        "cd A/$(<rep)/doc; ibifs show . --json | jq -c '[keys_unsorted, .state, .aliases, (.relations|keys), (.relations.lastedition|keys_unsorted)]'",
        r#"[["rep","ibip","state","draft","available","sealed","withdrawn","citation","title","persistent_url","page_url","archiveservice","language","target","aliases","relations","removed_relations","claims","other_claims","damaged"],"Original",["6RPa7umaZ/UaJFT"],["lastedition","nextedition"],["rep","ibip"]]"#,
    );
    env.prints(
        "ibifs show A/$(<rep) | head -2 | tr -s ' ' | cut -d' ' -f2",
        &env.sh("cat names"),
    );
    env.prints(
        "IBIFS_STORE=A.store ibifs show $(<ibip) | grep -c ^state",
        "1",
    );
    refuses(
        &env,
        "ibifs show sid.inpe.br/x/2009/01.01.00.00 --store A",
        3,
    );
    refuses(&env, "ibifs show hello --store A", 2);
    // A label that does not exist is a path, not an identifier.
    refuses(&env, "ibifs show A/.mint/.none", 3);
    env.complains("ibifs show A/.mint/.none", "'A/.mint/.none': No such file");
    refuses(&env, "ibifs show $(<rep) --store nowhere", 3);
    refuses(&env, "ibifs show \"$(<rep)+(pt)\" --store A", 3);
    refuses(&env, "IBIFS_STORE=nowhere ibifs show $(<rep)", 3);
}

/// `ibifs fsck --json` is an object of the count and the findings.
#[test]
fn fsck_prints_an_object() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir -p A.store/col/sid.inpe.br/x/2009/01.01.00.00");
    env.prints(
        "(ibifs fsck A.store --json || true) | jq -c '[keys_unsorted, .items, .errors, (.findings[] | [keys_unsorted, .code, .subject, .repairable, .repaired])]'",
        r#"[["store","in_use","items","errors","warnings","notices","findings"],2,1,[["code","severity","subject","sentence","remedy","repairable","repaired"],"not-indexed","sid.inpe.br/x/2009/01.01.00.00",true,false]]"#,
    );
    env.exits("ibifs fsck A.store --json > report", 1);
    env.exits("ibifs fsck A.store --repair > report", 0);
    env.prints("ibifs reindex A.store", "2 items indexed");
}

/// When `ibifs mount` returns the tree is usable, and when `ibifs umount` returns the store is
/// free: the next command of a script needs no pause, 20 times over.
#[test]
fn mount_and_umount_return_when_done() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir A
        for i in $(seq 20); do
            ibifs mount A.store A; test \"$(ls A)\" = example.org; mkdir -p A/.mint/x/doc
            ibifs umount A; test -z \"$(ls A)\"; ibifs mint A.store > names
        done");
    env.prints("ibifs ls A.store | wc -l", "41");
}

/// Each way of ending a mount ends the daemon and frees the store, at once and also with a process
/// that sits in the tree; it can be mounted again right away.
#[test]
fn every_way_of_ending_a_mount_ends_it() {
    let env = TestEnv::new().with_a();
    for end in [
        "ibifs umount A",
        "fusermount3 -u A || fusermount3 -uz A",
        "umount A || umount -l A",
        "kill -TERM $pid",
        "kill -INT $pid",
    ] {
        for sits in [false, true] {
            let sit = if sits {
                "(cd A/example.org; exec sleep 60 > /dev/null 2>&1) & sitter=$!; waits test /proc/$sitter/cwd -ef A/example.org"
            } else {
                "sitter="
            };
            // A lazily unmounted tree is served for as long as a process works in it.
            let leave = if sits && end.contains("||") {
                "kill $sitter; sitter="
            } else {
                ":"
            };
            env.sh(&format!(
                "pid=$(daemon A.store); {sit}
                 {end}; {leave}
                 waits test ! -d /proc/$pid
                 test -z \"$(ls A)\"
                 ibifs mount A.store A; test \"$(ls A)\" = example.org
                 test -z \"$sitter\" || kill $sitter"
            ));
        }
    }
}

/// After kill -9 of the daemon the dead mount is taken away by `ibifs umount`, and the store mounts
/// again with all that was there.
#[test]
fn a_killed_daemon_is_no_loss() {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > rep; echo text > A/$(<rep)/doc/text
        pid=$(daemon A.store); kill -9 $pid
        while test -d /proc/$pid; do sleep 0.05; done
        ls A 2> complaint && exit 1
        ibifs umount A; ibifs mount A.store A; cat A/$(<rep)/doc/text
        mint A y > other; ibifs umount A");
    env.prints("ibifs fsck A.store", "3 items, 0 findings");
    env.prints("test $(<rep) != $(<other)", "");
}

/// On a machine with no full host name two stores made with no option mint valid names, and never
/// the same.
#[test]
fn stores_on_a_laptop_never_mint_alike() {
    let env = TestEnv::new();
    env.sh(
        "unshare --uts bash -c 'hostname laptop; ibifs init A.store; ibifs init B.store' > messages",
    );
    for name in ["A", "B"] {
        env.sh(&format!(
            "ibifs mint {name}.store > {name}; ibifs id check $(head -1 {name}); ibifs id check $(tail -1 {name})"
        ));
    }
    env.prints("sed 's,/20.*,,; s,X/.*,X,' A B | sort -u | wc -l", "4");
    env.prints("grep -c laptop messages", "2");
    env.sh("unshare --uts bash -c 'hostname not_a_name; ibifs init C.store'; ibifs id check $(ibifs mint C.store | head -1)");
    env.prints("unshare --uts bash -c 'hostname Archive.Example.org; ibifs init D.store --json' | jq -r .host", "archive.example.org");
}

/// `ibifs init --service` gives an Archive that is built again its identity back: same service, same
/// name space, originals that come back are originals, and nothing minted before is minted again.
#[test]
fn init_service_rebuilds_an_archive() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs mint A > names; jq -r . > /dev/null <<< '{}'
        ibifs ls A | tail -1; sed -n 's/^ibi.archiveservice {rep \\(.*\\) ibip \\(.*\\)}/\\1 \\2/p' A.store/archive.ibi > service
        read r p < service; ibifs init N.store --service $r --service $p
        grep -v ^granularity A.store/archive.ibi > one; grep -v ^granularity N.store/archive.ibi | diff one -
        mkdir N; ibifs mount N.store N; rsync -a A/ N/
        test $(state N/$(head -1 names)) = Original; test $(state N/$r) = Original
        test $(ibip N/$(head -1 names)) = $(tail -1 names)
        mint N new > new; ! grep -q $(<new) names; ibifs umount N");
    env.prints("ibifs fsck N.store", "3 items, 0 findings");
    env.exits("ibifs init M.store --service sid.inpe.br/x", 2);
}

/// `ibifs quickstart` mounts a demonstration and prints what to try; every line of it works as
/// printed, and it can be run again.
#[test]
fn every_line_of_the_quick_start_works() {
    let env = TestEnv::new();
    env.sh("ibifs quickstart demo > messages");
    env.prints("grep -c '^  ' messages", "8");
    env.sh("grep '^  ' messages | while IFS= read -r line; do
            eval \"$line\" > out || { echo \"failed: $line\" >&2; exit 1; }
            case \"$line\" in *umount*) ;; *) test -s out || { echo \"silent: $line\" >&2; exit 1; } ;; esac
        done");
    env.prints("ls demo", "");
    env.sh("ibifs quickstart demo > again");
    env.exits("ibifs quickstart demo", 5);
    env.sh("ibifs umount demo; ibifs fsck demo.store");
}

/// A removed item is shown by the path it had, in the mount and in the store.
#[test]
fn a_removed_item_is_shown_by_its_path() {
    let env = TestEnv::new().with_a();
    env.sh("mint A gone > rep; ibip A/.mint/gone > ibip; rm -r A/$(cat rep)");
    for path in [
        "A/$(cat rep)",
        "$PWD/A/$(cat ibip)",
        "A.store/col/$(cat rep)",
    ] {
        env.prints(
            &format!("ibifs show \"{path}\" | grep -o Deleted"),
            "Deleted",
        );
    }
    env.prints(
        "cd A; ibifs show ./$(cat ../ibip) | grep -o Deleted",
        "Deleted",
    );
    env.complains(
        "ibifs show A/example.org/none/2020/01.01.00.00",
        "no item 'example.org/none/",
    );
}

/// `ibifs umount` returns when the store is free, however many locks others take and leave
/// meanwhile: the next command is never refused.
#[test]
fn umount_returns_when_the_store_is_free() {
    let env = TestEnv::new();
    env.sh("ibifs init S --host s.example.org > /dev/null; mkdir m
        python3 -c '
import fcntl, threading, time
def busy(thread, end=time.time() + 5):
    while time.time() < end:
        files = [open(f\"lock-{thread}-{number}\", \"w\") for number in range(40)]
        for file in files: fcntl.flock(file, fcntl.LOCK_EX)
        for file in files: file.close()
for thread in range(4): threading.Thread(target=busy, args=(thread,)).start()' &
        end=$((SECONDS + 4))
        while ((SECONDS < end)); do
            ibifs mount S m; mkdir m/.mint/x; ibifs umount m; ibifs reindex S > /dev/null
        done
        wait");
}

/// Without `--host` the command prompts on a terminal for the name; elsewhere a warning says that it is for ever.
#[test]
fn init_asks_for_the_host_or_warns() {
    let env = TestEnv::new();
    let complaint = "2>&1 > /dev/null";
    env.prints(
        &format!("ibifs init one {complaint} | grep -c 'the reps begin with .* for ever'"),
        "1",
    );
    env.prints(
        &format!("ibifs init two --host archive.example.org {complaint}"),
        "",
    );
    env.sh(
        "{ echo archive.example.net; waits test -e three/archive.ibi; } | script -qec 'ibifs init three' /dev/null > said
         grep -q 'never change' said; ibifs ls three | grep -q ' example.net/archive/'",
    );
}

/// An operation that an ordinary user may not do is refused with the reason and the remedy, and so is one on a wrong
/// name.
#[test]
fn refusals_say_what_to_do() {
    let env = TestEnv::new().with_a();
    env.sh("chmod 755 .");
    let complains = |command: &str, sentence: &str| {
        env.prints(
            &format!("{{ {command} 2>&1 || true; }} | grep -cF \"{sentence}\""),
            "1",
        );
    };
    let ordinary = "setpriv --reuid 1234 --clear-groups";
    complains(
        &format!("{ordinary} ibifs umount A"),
        "root has mounted it; unmount it as that user or as root",
    );
    complains(
        &format!("{ordinary} ibifs mint A"),
        "may mint there: ask its owner",
    );
    complains("ibifs show A", "'A' is a directory above items");
    complains("ibifs show A/example.org", "name an item in it");
    complains(
        "ibifs mount nowhere nothing",
        "neither the store 'nowhere' nor the mount point 'nothing' exists",
    );
    for usage in [
        "relate [OPTIONS] <--next-edition <ITEM>|--translation <ITEM>|--metadata <ITEM>> <PATH-OR-IBI>",
        "unrelate [OPTIONS] <--next-edition|--translation|--metadata> <PATH-OR-IBI>",
        "export [OPTIONS] <--bagit|--ocfl> <ITEM... DEST>...",
    ] {
        let command = usage.split(' ').next().unwrap_or_default();
        complains(
            &format!("ibifs {command} -h"),
            &format!("Usage: ibifs {usage}"),
        );
    }
    complains("ibifs ls -h", "[possible values: original, copy, deleted]");
}

/// A wrong name of the host gets an answer that says what to type instead.
#[test]
fn a_host_that_is_none_is_explained() {
    let env = TestEnv::new();
    for (host, why) in [
        ("https://archive.example.org", "the URL with --url"),
        ("archive.example.org/x", "the URL with --url"),
        ("arquivo.çã.example.br", "begins with 'xn--'"),
    ] {
        env.complains(&format!("ibifs init A.store --host {host}"), why);
    }
    env.prints("ls -d A.store 2> /dev/null || true", "");
}
