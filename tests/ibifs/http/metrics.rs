//! The metrics that services report of themselves, read as Prometheus reads them.

use std::collections::{BTreeMap, BTreeSet};

use super::served::Served;
use crate::support::{Needs, TestEnv};

/// The samples of a text in the format of Prometheus, by name and labels. Fails where the format is broken: a sample
/// without its metric, a name or label that is none, a value that is no number, a sample twice, a histogram that shrinks.
#[track_caller]
fn samples(text: &str) -> BTreeMap<String, f64> {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let (mut samples, mut metrics) = (BTreeMap::new(), BTreeSet::new());
    let mut metric: Option<(String, String)> = None;
    let mut helped = String::new();
    let mut last_bucket: Option<(String, f64)> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect(line);
            assert!(!help.is_empty(), "{line}");
            helped = name.to_owned();
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect(line);
            assert!(is_name(name) && name == helped, "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(metrics.insert(name.to_owned()), "twice: {line}");
            metric = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect(line);
        let value: f64 = value.parse().expect(line);
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, rest.strip_suffix('}').expect(line)),
            None => (series, ""),
        };
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (label, text) = label.split_once('=').expect(line);
            assert!(is_name(label), "{line}");
            assert!(
                text.len() >= 2 && text.starts_with('"') && text.ends_with('"'),
                "{line}"
            );
        }
        let (of, kind) = metric.as_ref().expect(line);
        let of_histogram = ["_bucket", "_sum", "_count"].map(|end| format!("{of}{end}"));
        match kind.as_str() {
            "histogram" => assert!(of_histogram.contains(&name.to_owned()), "{line}"),
            _ => assert_eq!(name, of, "{line}"),
        }
        if name.ends_with("_bucket") {
            let series = series.split(",le=").next().expect(line).to_owned();
            if let Some((same, before)) = &last_bucket
                && *same == series
            {
                assert!(*before <= value, "{line}");
            }
            last_bucket = Some((series, value));
        }
        assert!(
            samples.insert(series.to_owned(), value).is_none(),
            "twice: {line}"
        );
    }
    samples
}

/// The address in the line `metrics at http://address/metrics`.
#[track_caller]
fn reported_at(served: &mut Served) -> String {
    let line = served.line();
    let url = line.strip_prefix("metrics at ").expect(&line);
    url.strip_suffix("/metrics").expect(&line).to_owned()
}

#[track_caller]
fn metrics(env: &TestEnv, at: &str) -> BTreeMap<String, f64> {
    let script = format!(
        "curl -sS --fail -D head {at}/metrics; grep -qi '^content-type: text/plain; version=0.0.4' head"
    );
    samples(&env.sh(&script))
}

#[test]
fn an_archive_reports_of_itself() {
    // An answer is given again where the kernel can say at once that nothing has changed.
    let env = TestEnv::with(Needs::LastingNames);
    env.sh(
        "ibifs init A --host archive-a.example.org > /dev/null; ibifs mint A | head -n 1 > one; ibifs mint A | head -n 1 > two
         echo text > A/col/$(< one)/doc/a.txt; ibifs mint A > /dev/null
         sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\) .*/\\1/p' A/archive.ibi > service
         mkdir M; ibifs mount A M; rm -r M/$(< two); ibifs umount M; date +%s > before",
    );
    let mut served = Served::start(&env, "A --metrics 127.0.0.1:0");
    let at = reported_at(&mut served);
    // The first scrub of the store.
    env.sh("ibifs scrub A > /dev/null");
    served.prints(
        &env,
        &format!(
            r#"one=$(< one); at={at}
            get $at/healthz; get $at/readyz; status -I $at/metrics; status $at/; status -d x $at/metrics
            # The public address has none of it.
            status $U/metrics; status $U/healthz; status $U/readyz
            get $U/col/$one/doc/a.txt; get -o /dev/null $U/col/$one/doc/a.txt; get -o /dev/null "$U/oai?verb=Identify"
            sleep 3
            ask() {{ get -o /dev/null "$U/$(< service)?servicesubject=urlRequest&parsedibiurl.ibi=$one"; }}; ask; ask; ask
            status "$U/search?q=a"; status $U/archive.cgi/$one; status -X PUT $U/; status -d x $U/transfer"#
        ),
        "ok\nok\n200\n404\n405\n404\n404\n404\ntext\n200\n200\n405\n404",
    );
    let found = metrics(&env, &at);
    let get = |name: &str| {
        *found
            .get(name)
            .unwrap_or_else(|| panic!("{name} in {found:?}"))
    };
    for (name, value) in [
        (
            "ibifs_http_requests_total{kind=\"file\",status=\"200\"}",
            2.0,
        ),
        (
            "ibifs_http_requests_total{kind=\"harvest\",status=\"200\"}",
            1.0,
        ),
        (
            "ibifs_http_requests_total{kind=\"service\",status=\"200\"}",
            3.0,
        ),
        (
            "ibifs_http_requests_total{kind=\"search\",status=\"200\"}",
            1.0,
        ),
        (
            "ibifs_http_requests_total{kind=\"zip\",status=\"200\"}",
            1.0,
        ),
        (
            "ibifs_http_requests_total{kind=\"item\",status=\"404\"}",
            3.0,
        ),
        (
            "ibifs_http_requests_total{kind=\"item\",status=\"405\"}",
            1.0,
        ),
        (
            "ibifs_http_requests_total{kind=\"transfer\",status=\"404\"}",
            1.0,
        ),
        (
            "ibifs_http_request_duration_seconds_count{kind=\"service\"}",
            3.0,
        ),
        (
            "ibifs_http_request_duration_seconds_bucket{kind=\"service\",le=\"+Inf\"}",
            3.0,
        ),
        ("ibifs_items{state=\"original\"}", 3.0),
        ("ibifs_items{state=\"copy\"}", 0.0),
        ("ibifs_item_changes_total{event=\"added\"}", 0.0),
        ("ibifs_items{state=\"removed\"}", 1.0),
        (
            "ibifs_cache_lookups_total{cache=\"answers\",result=\"hit\"}",
            2.0,
        ),
        (
            "ibifs_cache_lookups_total{cache=\"answers\",result=\"miss\"}",
            1.0,
        ),
    ] {
        assert_eq!(get(name), value, "{name}");
    }
    let before: f64 = env.sh("cat before").trim().parse().expect("a number");
    assert!(get("ibifs_last_scrub_timestamp_seconds") >= before);
    assert!(get("ibifs_last_date_timestamp_seconds") > before - 600.0);
    assert!(get("ibifs_http_request_duration_seconds_sum{kind=\"service\"}") > 0.0);
    assert!(get("ibifs_store_size_bytes") > get("ibifs_store_free_bytes"));
    for name in [
        "ibifs_store_free_inodes",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
    ] {
        assert!(get(name) > 0.0, "{name}");
    }
    let version = format!(
        "ibifs_build_info{{version=\"{}\"}}",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(get(&version), 1.0);
    // Events from now on are counted.
    env.sh(
        "ibifs mint A > minted; ibifs mint A >> minted; ibifs relate --store A $(< one) --metadata $(head -n 1 minted) > said
         ibifs mount A M; ibifs mint A > last; ibifs umount M",
    );
    let found = metrics(&env, &at);
    let count = |event: &str| found[&format!("ibifs_item_changes_total{{event=\"{event}\"}}")];
    assert_eq!(["added", "changed", "removed"].map(count), [3.0, 1.0, 0.0]);
    env.sh("ibifs mount A M; rm -r M/$(head -n 1 last); ibifs umount M");
    let found = metrics(&env, &at);
    let count = |event: &str| found[&format!("ibifs_item_changes_total{{event=\"{event}\"}}")];
    assert_eq!(["added", "changed", "removed"].map(count), [3.0, 1.0, 1.0]);
    // A service whose store is gone is not ready; the process is healthy.
    served.prints(
        &env,
        &format!("rm -r A; status {at}/readyz; curl -s {at}/readyz; status {at}/healthz"),
        "503\nthe store has been removed\n200",
    );
}

/// The copies of items are counted beside the requests, by a service that has given up root, and what is known of backups is
/// read each time; the administrator's page is not at the public address.
#[test]
fn an_archive_reports_of_copies() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A --host archive-a.example.org > said; printf 'place {br sp}\ncopies 2\n' >> A/archive.ibi; chmod 700 A
         ibifs mint A | head -n 1 > one; echo text > A/col/$(< one)/doc/file; ibifs scrub A > said; sleep 1.1; date +%s > before
         ibifs backup A saved --place '<de> bonn' > said; ibifs backup --drill saved --store A > said; sleep 1.1; ibifs mint A | head -n 1 > two
         ibifs mint A | head -n 1 > three; chmod 700 A/col/$(< three)",
    );
    let mut served = Served::start(&env, "A --metrics 127.0.0.1:0");
    let at = reported_at(&mut served);
    env.sh(&format!("for try in $(seq 200); do curl -s {at}/metrics | grep -q ^ibifs_copies_counted && break; sleep .05; done"));
    let found = metrics(&env, &at);
    let short = |state: &str| found[&format!("ibifs_items_short_of_copies{{state=\"{state}\"}}")];
    assert_eq!((short("original"), short("copy")), (2.0, 0.0));
    let before: f64 = env.sh("cat before").trim().parse().expect("a number");
    for what in ["copies_counted", "last_audit", "last_backup", "last_drill"] {
        let instant = found[&format!("ibifs_{what}_timestamp_seconds")];
        assert!(instant >= before && instant < before + 600.0, "{what}");
    }
    env.sh(&format!("sleep 1.1; ibifs backup A saved > said; for try in 1 2 3 4 5; do curl -s {at}/metrics > said; sleep .05; done"));
    let later = metrics(&env, &at);
    let (backup, counted) = (
        "ibifs_last_backup_timestamp_seconds",
        "ibifs_copies_counted_timestamp_seconds",
    );
    assert!(later[backup] > found[backup]);
    assert_eq!(later[counted], found[counted]);
    served.prints(
        &env,
        &format!(
            r#"status $U/copies; status {at}/other; curl -s {at}/copies > page; curl -s -H 'Accept-Language: pt-BR' {at}/copies | grep -c '<h1>Cópias'
            python3 -c "
import xml.etree.ElementTree as xml; x = '{{http://www.w3.org/1999/xhtml}}'
cells = [it.text for it in xml.parse('page').getroot().iter(x + 'td')]; print(cells[0], cells[1], cells[3].split()[1], len(cells))"; grep -c "$(< two)<" page; grep -c -e saved -e "$(< three)<" page || true; grep -c "<code>copies 2</code>" page"#
        ),
        "404\n404\n1\n<de> bonn 4 good 7\n1\n0\n1",
    );
    // The other copy of the record is for services alone.
    env.exits("setpriv --reuid=60001 --regid=60001 --clear-groups cat A/fixity/backups/backups.ibi 2> said", 1);
    env.sh("test ! -e saved/fixity/backups");
}

#[test]
fn a_resolver_reports_of_itself() {
    let env = TestEnv::new();
    let mut served = Served::resolver(&env, "--metrics 127.0.0.1:0");
    let at = reported_at(&mut served);
    served.prints(
        &env,
        &format!("get {at}/readyz; status $U/; status $U/8JMKD3MGP8W/34PGRBS; status \"$U/J8LNKB5R7W/3FUQHC5?servicesubject=inclusionConfirmationRequest\""),
        "ok\n200\n404\n400",
    );
    let found = metrics(&env, &at);
    for name in [
        "ibifs_http_requests_total{kind=\"page\",status=\"200\"}",
        "ibifs_http_request_duration_seconds_count{kind=\"link\"}",
    ] {
        assert_eq!(found.get(name), Some(&1.0), "{name} in {found:?}");
    }
    assert_eq!(found["ibifs_resolver_archives{state=\"included\"}"], 0.0);
    assert_eq!(found["ibifs_resolver_resolutions"], 0.0);
}

/// An address that is taken is reported before anything else happens, with the option.
#[test]
fn an_address_that_is_taken() {
    let env = TestEnv::new();
    env.sh("ibifs init A --host archive-a.example.org > /dev/null");
    let mut served = Served::start(&env, "A --metrics 127.0.0.1:0");
    let at = reported_at(&mut served);
    let at = at.trim_start_matches("http://");
    for command in ["serve A", "resolver --db r.db"] {
        let script = format!(
            "! ibifs {command} --listen 127.0.0.1:0 --metrics {at} 2> why; grep -c 'cannot listen at {at}: .*; choose another with --metrics' why"
        );
        env.prints(&script, "1");
    }
}
