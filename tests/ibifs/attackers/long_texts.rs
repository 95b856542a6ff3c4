//! A sidecar and a metadata text of a GiB, which take no room on the disk: what reads them says so, in little memory, and
//! everything else goes on, with either kind of index.

use crate::http::served::Served;
use crate::support::TestEnv;

/// Attacks a store that is made with this option.
fn attacked(env: &TestEnv, index: &str) {
    env.sh(&format!("ibifs init A.store --host archive-a.example.org {index} > /dev/null; mkdir A; ibifs mount A.store A"));
    env.sh(
        r#"one=$(ibifs mint A | head -n 1) two=$(ibifs mint A | head -n 1) fine=$(ibifs mint A | head -n 1)
        echo x > A/$fine/doc/x; echo 'title: Rainfall' > "A/$fine:"; echo 'title: Long' > "A/$two:"
        echo "one=$one two=$two fine=$fine" > vars
        # Through the mount neither is put into force.
        no truncate -s 1G A/$one/.ibi; no truncate -s 1G "A/$two:"
        truncate -s 1G A.store/col/$one/.ibi A.store/col/$two/.ibi.metadata
        # A few MB are what the daemon takes for other things meanwhile.
        memory() { awk '/VmHWM/ { print int($2 / 1024) }' /proc/$1/status; }
        P=$(daemon A.store) before=$(memory $(daemon A.store))
        timeout 20 ls A/$one/doc A/$two/doc > /dev/null; timeout 20 readlink "A/$one!" > /dev/null
        no timeout 20 cat "A/$two:(bibtex)"; timeout 20 ls A/.find/rainfall | grep -c . > /dev/null; cat A/$fine/doc/x > /dev/null
        test $(memory $P) -lt $((before + 100)) || exit 1
        ibifs umount A"#,
    );
    env.prints(
        r#". ./vars; says() { (ulimit -v 3000000; timeout 60 "$@" 2>&1 || true) | grep -o 'File too large' | head -n 1; }
        says ibifs reindex A.store; says ibifs fsck A.store; ibifs init B --host archive-b.example.net > /dev/null; says ibifs copy --store A.store $one B
        ibifs mount A.store A; ls A/$fine/doc; says cat "A/$two:(bibtex)"; ibifs show --store A.store $fine | grep -c Rainfall; ibifs umount A"#,
        "File too large\nFile too large\nFile too large\nx\nFile too large\n1",
    );
    let served = Served::start(env, "A.store 2> log");
    served.prints(
        env,
        &format!(
            r#". ./vars; is_ready() {{ test $(curl -s -m 20 -o /dev/null -w '%{{http_code}}' "$U/search?q=rainfall") = 200; }}
            # A search that waits five seconds for its index is asked to come again.
            waits is_ready; for path in $one $two "$two:(bibtex)" "search?q=rainfall" "$fine:(bibtex)" "oai?verb=ListRecords&metadataPrefix=oai_dc"; do
                curl -g -s -m 20 -o /dev/null -w '%{{http_code}}\n' "$U/$path"; done
            awk '/VmHWM/ && $2 > 200000 {{ print "memory", $2 }}' /proc/{}/status"#,
            served.process()
        ),
        "200\n200\n500\n200\n200\n200",
    );
}

#[test]
fn long_texts_are_refused() {
    attacked(&TestEnv::new().with_index_file(), "");
}

#[test]
fn long_texts_are_refused_with_an_index_in_postgresql() {
    attacked(&TestEnv::new().with_postgres(), "--index $(database)");
}
