//! Archives whose index is in PostgreSQL. `IBIFS_TEST_INDEX=postgres` runs the other modules on it, too.

use crate::support::{Postgres, Stop, TcpProxy, TestEnv};
use std::time::{Duration, Instant};

/// All that a store does with its index it does with one in a server; the tree is the same.
#[test]
fn an_archive_in_a_server() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"ibifs init A.store --host a.example.org --index "$(database)" > /dev/null; mkdir A B
        ls A.store | tr '\n' ' '; echo; ibifs mount A.store A
        one=$(mint A one); echo text > A/$one/doc/x; two=$(ibifs mint A --edition-of A/$one | head -n 1)
        mkdir "A/$one+(pt)"; echo 'title: One' > A/$one:; test "$(readlink "A/$one!")" = ../../../$two
        cat A/$(ibip A/$one)/doc/x; test -d "A/$one+(pt)/."; grep -c One "A/$one:(oai_dc)"
        ibifs init B.store --host b.example.org > /dev/null; ibifs mount B.store B
        mkdir -p B/$(dirname $one); cp -a A/$one B/$(dirname $one); state B/$one; echo
        rm -r A/$two; no ls A/$two; ibifs umount A; ibifs umount B
        found() { ibifs fsck A.store | cut -d: -f1; }; found; ibifs fsck B.store; ibifs reindex A.store; found"#,
        "README.txt archive.ibi col deleted ibip ledger lock staging 
text
1
Copy
removed-target
3 items, 1 finding
2 items, 0 findings
3 items indexed
removed-target
3 items, 1 finding",
    );
}

/// The index moves between a file and a server, and no date is given out again.
#[test]
fn an_index_moves() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"ibifs init s --host a.example.org > /dev/null; url=$(database); mkdir m
        for n in 1 2 3; do ibifs mint s; done > minted
        ibifs ls s > before; ibifs reindex s --to "$url"; ls s | grep -c sqlite3 || true
        sed -n 's/^index //p' s/archive.ibi | grep -cx "$url"; ibifs mint s >> minted; ibifs fsck s
        ibifs reindex s --to file; ls s | grep -c 'relations.sqlite3$'; grep -c ^index s/archive.ibi || true
        ibifs mint s >> minted; ibifs fsck s; ibifs reindex s --to "$url"; ibifs mint s >> minted; ibifs fsck s
        sort minted | uniq -d; sed '/^[^.]*$/d' minted > order; wc -l < order"#,
        "4 items indexed
0
1
5 items, 0 findings
5 items indexed
1
0
6 items, 0 findings
6 items indexed
7 items, 0 findings
6",
    );
}

/// PostgreSQL has no texts with NUL: neither a sidecar nor a request that has one is a fault.
#[test]
fn a_text_with_nul() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"ibifs init s --host a.example.org --index "$(database)" > /dev/null; one=$(ibifs mint s | head -n 1)
        echo 'target a%00b' >> s/col/$one/.ibi; ibifs reindex s; ibifs fsck s
        ibifs serve s --listen 127.0.0.1:0 > line & until [ -s line ]; do sleep 0.05; done; url=$(grep -o 'http://[^ ]*' line)
        for path in a%00b/c 8JMKD3MGP8W/3%00 'search?by=year%00' "$one/%00" %00; do
            curl -so /dev/null -w '%{http_code}\n' "$url$path"; done | sort | uniq -c | tr -s ' '; kill %1; wait"#,
        "2 items indexed\n2 items, 0 findings\n 1 200\n 4 404",
    );
}

/// A database has the index of one Archive, and a URL has no password.
#[test]
fn what_is_no_place_for_an_index() {
    let env = TestEnv::new().with_postgres();
    env.sh(r#"database > url; ibifs init s --host a.example.org --index "$(cat url)" > /dev/null"#);
    env.complains(
        r#"ibifs init t --host b.example.org --index "$(cat url)" 2>&1 | sed 's/127[^ ]*/HOST/' >&2; exit 1"#,
        "ibifs: HOST holds the index of another Archive; name an empty database",
    );
    env.complains(
        r#"ibifs init u --host b.example.org > /dev/null; ibifs reindex u --to "$(cat url)" 2>&1 | sed 's/127[^ ]*/HOST/' >&2; exit 1"#,
        "ibifs: HOST holds the index of another Archive; name an empty database",
    );
    env.prints(
        "ibifs fsck s; ibifs fsck u; no ibifs init v --index postgres://u:secret@h/d; ls v 2> /dev/null || echo none
        for url in postgres://u:secret@h/d http://h/d; do { ibifs init v --index $url 2>&1 || true; } | grep -Eo 'PGPASSFILE|postgres://USER.*'; done",
        "1 item, 0 findings\n1 item, 0 findings\nnone\nPGPASSFILE\npostgres://USER@HOST:PORT/DATABASE",
    );
}

/// Other machines are reached by TLS, with a certificate that is checked, and with a password that is in no URL.
#[test]
fn a_server_with_tls() {
    let server = Postgres::start_with_tls();
    let database = server.create_database();
    let url = server.url(&database);
    let (base, password) = match url.split_once("://ibifs:") {
        Some((_, rest)) => rest
            .split_once('@')
            .map(|(password, place)| (place, password)),
        None => None,
    }
    .expect("a password in the URL of the server");
    let authority = server.authority();
    let env = TestEnv::new();
    let base = base.split('?').next().unwrap_or_default();
    let url = format!("postgres://ibifs@{base}");
    let script = format!(
        r#"chmod 600 .pgpass; ibifs init s --host a.example.org --index '{url}?sslmode=require&sslrootcert={}' > /dev/null; ibifs mint s > /dev/null; ibifs fsck s"#,
        authority.display()
    );
    std::fs::write(
        env.root().join(".pgpass"),
        format!("*:*:*:ibifs:{password}\n"),
    )
    .expect("written");
    env.prints(&script, "2 items, 0 findings");
    for wrong in [
        // An authority that has not signed the certificate.
        format!(
            "chmod 600 .pgpass; ibifs init t --host b.example.org --index '{url}?sslmode=require'"
        ),
        "chmod 644 .pgpass; ibifs mint s".to_owned(),
        "rm .pgpass; ibifs mint s".to_owned(),
    ] {
        let output = env.run(&wrong);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{wrong}: {said}");
        assert!(said.contains("the index in"), "{wrong}: {said}");
    }
}

/// While the server is away, files are read and written by their reps, and nothing waits long; then all is well again.
#[test]
fn a_server_that_is_away() {
    let server = Postgres::start();
    let proxy = TcpProxy::start(server.port());
    let url = server.url(&server.create_database());
    let url = url.replace(&server.port().to_string(), &proxy.port().to_string());
    let env = TestEnv::new();
    env.sh(&format!(
        "ibifs init s --host a.example.org --index {url} > /dev/null; mkdir m; ibifs mount s m; mint m one > rep
        echo text > m/$(cat rep)/doc/x; ibip m/$(cat rep) > ibip"
    ));
    for away in [TcpProxy::cut, TcpProxy::freeze] {
        away(&proxy);
        let started = Instant::now();
        env.prints(
            "cat m/$(cat rep)/doc/x; echo more >> m/$(cat rep)/doc/y; no mkdir m/.mint/two
            { mkdir m/.mint/two 2>&1 || true; } | sed 's/.*: //'",
            "text\nResource temporarily unavailable",
        );
        assert!(
            started.elapsed() < Duration::from_secs(8),
            "{:?}",
            started.elapsed()
        );
        proxy.mend();
        env.sh("until mkdir m/.mint/two 2> /dev/null; do sleep 0.1; done; test -d m/$(cat ibip)/doc; rm -r m/$(readlink m/.mint/.two | sed 's|^../||')");
    }
    env.prints(
        "cat m/$(cat rep)/doc/y; ibifs umount m; ibifs fsck s",
        "more\nmore\n2 items, 0 findings",
    );
}

/// A backup is a store with its index in a file, which does not touch the server's.
#[test]
fn a_backup_has_its_index_in_a_file() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"ibifs init s --host a.example.org --index "$(database)" > /dev/null
        one=$(ibifs mint s | head -n 1); ibifs mint s --edition-of $one > /dev/null
        ibifs backup s b > /dev/null; ibifs fsck b; grep -c ^index b/archive.ibi || true; ibifs fsck b; mkdir m; ibifs mount b m; test "$(readlink "m/$one!")" != ../../../$one; ibifs umount m
        ibifs mint b > /dev/null; ibifs fsck b; ibifs fsck s; ibifs backup s c > /dev/null; ibifs backup s c | grep -o '0 files copied'; ibifs fsck c"#,
        "3 items, 0 findings\n0\n3 items, 0 findings\n4 items, 0 findings\n3 items, 0 findings\n0 files copied\n3 items, 0 findings",
    );
}

/// Processes of several machines do not write one index at once. A row of the table `host` stands for one of another
/// machine, since this one has flock(2).
#[test]
fn one_machine_writes() {
    let env = TestEnv::new().with_postgres();
    env.sh(r#"database > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m
        psql -q "$(< url)" -c "INSERT INTO host VALUES (1, 0, 'elsewhere', 'machine', 7, 7, '/mnt/a', clock_timestamp(), clock_timestamp())""#);
    env.complains(
        "ibifs mint s",
        "the index is in use by process 7 on elsewhere",
    );
    env.exits("ibifs mint s", 5);
    env.complains(
        "ibifs mount s m",
        "the index is in use by process 7 on elsewhere",
    );
    env.prints(
        r#"ibifs status s | grep '^host' | sed 's/[0-9]* s ago/N s ago/'; ibifs ls s | wc -l
        psql -q "$(< url)" -c "UPDATE host SET beat = beat - INTERVAL '16 seconds'"
        psql -At "$(< url)" -c "SELECT pg_sleep(greatest(0, 16 - extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())))"
        ibifs mint s | wc -l; psql -At "$(< url)" -c 'SELECT count(*) FROM host'; ibifs mount s m
        ibifs status m --json | jq -r '.[0].hosts[] | [.mount_point, .pid] | @tsv' > seen
        test "$(cat seen)" = "$(realpath m)$(printf '\t')$(daemon s)"; kill -9 $(daemon s); ibifs umount m 2> /dev/null
        ibifs mint s | wc -l; ibifs fsck s"#,
        "host     elsewhere, process 7, /mnt/a, heard of N s ago\n1\n\n2\n0\n2\n3 items, 0 findings",
    );
}

/// While the server is down no host can be heard of: none counts as dead when it is back, however long that took. Nor does
/// a dump that is being put back end anything.
#[test]
fn nobody_dies_of_the_server() {
    let server = Postgres::start();
    let database = server.create_database();
    let env = TestEnv::new();
    env.sh(&format!(
        r#"echo {url} > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m; ibifs mount -o shared s m
        mint m one; psql -q "$(< url)" -c "INSERT INTO host VALUES (1, 1, 'elsewhere', 'machine', 7, 7, '/mnt/a', clock_timestamp(), clock_timestamp() - INTERVAL '1 hour')""#,
        url = server.url(&database)
    ));
    server.stop(Stop::Fast);
    server.start_again();
    env.prints(
        r#"until mkdir m/.mint/two 2> /dev/null; do sleep 0.1; done; sleep 4
        psql -At "$(< url)" -c 'SELECT count(*) FROM host'; ibifs status s | grep -cE 'heard of [0-9]{1,2} s ago'"#,
        "2\n2",
    );
    env.prints(
        r#"pg_dump "$(< url)" > dump; psql -q "$(< url)" -c 'DROP OWNED BY CURRENT_USER CASCADE'
        { mkdir m/.mint/three 2>&1 || true; } | sed 's/.*: //'
        psql -q -1 "$(< url)" < dump > /dev/null; until mkdir m/.mint/three 2> /dev/null; do sleep 0.1; done
        ibifs umount m; ibifs fsck s | tail -n 1"#,
        "Resource temporarily unavailable\n4 items, 0 findings",
    );
}

/// A process whose place another one has taken writes nothing, and goes on reading.
#[test]
fn one_that_was_taken_for_dead_writes_nothing() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"database > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m; ibifs mount s m
        one=$(mint m one); echo text > m/$one/doc/x; psql -q "$(< url)" -c "DELETE FROM host"
        { mkdir m/.mint/two 2>&1 || true; } | sed 's/.*: //'
        cat m/$(ibip m/$one)/doc/x; ibifs umount m; ibifs fsck s | tail -n 1; ibifs mint s > /dev/null; ibifs fsck s"#,
        "Stale file handle\ntext\n2 items, 0 findings\n3 items, 0 findings",
    );
}

/// Several mounts have one store: each mints, writes and declares, and sees what the others do.
#[test]
fn hosts_share_an_archive() {
    let env = TestEnv::new().with_postgres();
    env.sh(r#"database > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m n o
        ibifs mount s m -o shared; ibifs mount s n -o shared"#);
    env.complains("ibifs mount s o", "the store is in use");
    env.sh("ibifs init t --host b.example.org > /dev/null");
    env.complains(
        "ibifs mount t o -o shared",
        "is a file, which one host uses; move it to a server with 'ibifs reindex --to'",
    );
    env.prints(
        r#"one=$(mint m one); two=$(mint n two); echo text > m/$one/doc/x; cat n/$one/doc/x; cat n/$(ibip m/$one)/doc/x
        echo longer >> n/$one/doc/x; sleep 1.1; stat -c %s m/$one/doc/x
        setfattr -n user.ibi.nextedition -v $two m/$one; test "$(readlink "n/$one!")" = ../../../$two; test $(getfattr --only-values -n user.ibi.editionof n/$two) = $one
        { setfattr -n user.ibi.nextedition -v $one n/$two 2>&1 || true; } | sed 's/.*: //'
        three=$(ibifs mint s --edition-of $two | head -n 1); sleep 1.1; test "$(readlink "m/$one!")" = ../../../$three
        rm -r n/$one; sleep 1.1; no ls m/$one; ibifs status s --json | jq -c '.[0].hosts[] | [.shared, .alive]'
        found() { ibifs fsck s | cut -d: -f1; }; found; ibifs umount m; ibifs mint s | wc -l; ibifs umount n; ibifs mount s o; mint o four > /dev/null; ibifs umount o; found"#,
        "text
text
12
Too many levels of symbolic links
[true,true]
[true,true]
removed-target
3 items, 1 finding
2
removed-target
5 items, 1 finding",
    );
}

/// Services of several hosts count accesses together, and a harvester may ask any of them.
#[test]
fn services_of_several_hosts() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"database > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m
        ibifs mount s m -o shared; one=$(mint m one); echo 'title: One' > m/$one:; two=$(mint m two)
        start() { ibifs serve ${2-s} --listen 127.0.0.1:0 > $1 2> $1.log & until [ -s $1 ]; do sleep 0.05; done; }
        get() { curl -sg "$(grep -o 'http://[^ ]*' $1)$2"; }
        S=$(sed -n 's/^ibi.archiveservice {rep \([^ }]*\).*/\1/p' s/archive.ibi)
        reach() { key=$(get $1 "$S?servicesubject=urlRequest&parsedibiurl.ibi=$one" | tr -d '\r' | sed -n 's/^urlkey //p')
            get $1 "$S?servicesubject=acknowledgment&urlkey=$key" > /dev/null; }
        accesses() { curl -s -H 'Accept: application/json' "$(grep -o 'http://[^ ]*' $1)$one" | jq .accesses; }
        heads() { get $1 "oai?verb=ListIdentifiers&metadataPrefix=oai_dc${2-}" | grep -o '<identifier>[^<]*\|<datestamp>[^<]*\|<responseDate>[^<]*'; }
        start a; start b; reach a; reach a; reach b
        until [ "$(accesses a)" = 3 ] && [ "$(accesses b)" = 3 ]; do sleep 0.2; done; accesses b
        known() { until heads $1 | grep -v responseDate > $1.heads; do sleep 0.2; done; }
        known a; sleep 2; known b; cmp a.heads b.heads && wc -l < a.heads
        # What one has noticed is in the answer of the other, with the same date.
        echo 'title: Two' > m/$one:; heads a > second; sleep 1.1; since=$(heads a | sed -n 's/.*responseDate>//p')
        heads b "&from=$since" | grep -c identifier || true
        changed=$(grep -A 1 "$one$" second | sed -n 's/.*datestamp>//p'); heads b "&from=$changed" | grep -c "$one"
        kill %1 %2; wait; ls s | grep -c 'accesses\|harvest' || true
        ibifs umount m; ibifs reindex s --to file > /dev/null; start c; accesses c; known c; grep -c "$changed" c.heads; kill $!; wait
        ibifs reindex s --to "$(< url)" > /dev/null; start d; accesses d; kill $!; wait; ibifs backup s t > /dev/null
        start e t; accesses e; kill $!; wait"#,
        "3
4
0
1
0
3
1
3
3",
    );
}

/// A backup is made while several hosts mint, write and declare: it has an index that agrees with its tree.
#[test]
fn a_backup_beside_several_hosts() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"ibifs init s --host a.example.org --index "$(database)" > /dev/null; mkdir m n
        ibifs mount s m -o shared; ibifs mount s n -o shared; first=$(mint m first)
        busy() { last=$first; for i in {1..1000}; do [ -e end ] && break; one=$(mint $1 $1-$i); echo "$i" > $1/$one/doc/x
            ln -sfn "$PWD/$1/$one" "$1/$last!" 2> /dev/null || true; last=$one; echo "$i" > $1.count; done; }
        busy m & busy n & for try in 1 2 3; do sleep 0.5; ibifs backup s b | tail -n 1 > backup$try; done
        for host in m n; do waits eval "[ \$(cat $host.count) -gt 3 ]"; done; touch end; wait; echo minted
        ibifs fsck b | sed 's/^[0-9]*/N/'; ibifs umount m; ibifs umount n; ibifs fsck s | sed 's/^[0-9]*/N/'
        ibifs backup s b > /dev/null; ibifs fsck b | sed 's/^[0-9]*/N/'; diff -r s/col b/col"#,
        "minted\nN items, 0 findings\nN items, 0 findings\nN items, 0 findings",
    );
}

/// A change that a dying process has begun is completed by another.
#[test]
fn one_that_dies_leaves_nothing_undone() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"database > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m n
        pids() { ibifs status s --json | jq -r '.[0].hosts[].pid'; }
        ibifs mount s m -o shared; dead=$(pids); ibifs mount s n -o shared
        ask() { psql -At "$(< url)" -c "$1"; }
        one=$(mint m one); two=$(mint n two); touch "m/$(dirname $one)/.x.Ab12Cd"; mkdir s/staging/mint-h00000000000000ff-1
        # The other process may have removed what is of none already.
        ls s/staging | grep -vc 00ff-1; kill -9 $dead; rm -r s/col/$one
        until [ "$(ask 'SELECT count(*) FROM host')" = 1 ] && [ "$(ask 'SELECT count(*) FROM unsettled WHERE host < 0')" = 0 ]; do sleep 0.1; done
        waits eval '[ -z "$(ls s/staging)" ]'; stat -c %F s/col/$one/.ibi; mint n three > /dev/null
        ibifs status s --json | jq '.[0].hosts[].marks > 0'; ibifs umount n; ibifs fsck s"#,
        "1\nregular file\ntrue\n4 items, 0 findings",
    );
}

/// A mount ends in order when it is asked to, and leaves neither a row nor a mark.
#[test]
fn a_mount_that_is_ended_leaves_nothing() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"database > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m
        for options in rw shared; do
            ibifs mount s m -o $options; mint m $options > /dev/null; pid=$(psql -At "$(< url)" -c "SELECT pid FROM host")
            kill -TERM $pid; until ! kill -0 $pid 2> /dev/null; do sleep 0.05; done
            psql -At "$(< url)" -c "SELECT (SELECT count(*) FROM host), (SELECT count(*) FROM unsettled), (SELECT count(*) FROM touched)"
        done; ibifs fsck s"#,
        "0|0|0\n0|0|0\n3 items, 0 findings",
    );
}

/// What remains of a removed item is the same with the index in a server.
#[test]
fn no_relation_leads_to_a_removed_item() {
    let env = TestEnv::new().with_postgres();
    env.sh("ibifs init A.store --host archive-a.example.org --index \"$(database)\" > /dev/null; mkdir A; ibifs mount A.store A");
    crate::life::no_relation_leads_to_a_removed_item_in(&env);
}
