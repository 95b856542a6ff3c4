//! `ibifs audit`: items are compared with their copies, oldest comparison first, both sides learn what was found, and what is
//! damaged is mended.

use crate::copies::KNOWN;
use crate::repair::{TOOLS, environment};
use crate::support::TestEnv;

/// What an audit says, without paths before the file, what follows the codes, and the bytes.
const AUDITS: &str = r#"
audits() { ibifs audit "$@" > said || echo "status $?"; sed -E 's/: .*\/(doc\/[^:]*): /: \1: /; s/^([^ ]*: [^ ]*): .*/\1/; s/, [0-9]* bytes?//' said; }
"#;

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}{AUDITS}{KNOWN}\n{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    assert_eq!(sh(env, script).trim_end(), expected, "{script}");
}

/// A byte that has flipped in the copy is mended within one pass, whichever side audits, and the original is as it was. Both
/// sides note the comparison.
#[test]
fn a_damaged_copy_is_mended() {
    for (here, there) in [("D", "S"), ("S", "D")] {
        let env = environment();
        sh(
            &env,
            "echo 'place {br sp}' >> S/archive.ibi; echo 'place {de bonn}' >> D/archive.ibi; rm S/fixity/col/$item/copies D/fixity/col/$item/copies",
        );
        prints(
            &env,
            &format!(
                "harm $d/doc/one x; find $s -printf '%p %T@ %C@\\n' > before
                 audits {here} --with {there}; cat $d/doc/one D/damaged/$item/doc/one; find $s -printf '%p %T@ %C@\\n' | diff before -
                 known S $item; known D $item; ls -A D/fixity/damaged S/fixity/damaged D/handover/incoming D/staging S/staging
                 audits {here} --with {there}; ibifs fsck S | tail -n 1; ibifs fsck D | tail -n 1"
            ),
            "mended: doc/one\n1 item compared, 4 files: 1 file mended, 0 left to see to\none\nxne\n\
             archive br sp good, archive de bonn good; 2 2 true\narchive de bonn good, archive br sp good; 2 2 true\n\
             D/fixity/damaged:\n\nD/handover/incoming:\n\nD/staging:\n\nS/fixity/damaged:\n\nS/staging:\n\
             1 item compared, 2 files: 0 files mended, 0 left to see to\n2 items, 0 findings\n2 items, 0 findings",
        );
    }
}

/// An original is mended where its archive.ibi says so, or by command; otherwise its damage is remembered.
#[test]
fn an_original_is_mended_where_that_is_wanted() {
    let env = environment();
    prints(
        &env,
        "harm $s/doc/one x; for pass in 'S --with D' 'D --with S' 'S --with D'; do audits $pass; done; cat $s/doc/one $d/doc/one
         ibifs show --store S $item --json | jq -c '[.damaged[].path]'
         ibifs copies D $item --json | jq -r '.copies[].outcome'",
        "status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\n\
         status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\n\
         status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\nxne\none\n[\"doc/one\"]\ngood\nbad",
    );
    prints(
        &env,
        "echo 'repair {original yes}' >> S/archive.ibi; audits S --with D; cat $s/doc/one S/damaged/$item/doc/one
         ibifs show --store S $item --json | jq -c '[.damaged[].path]'; known D $item",
        "mended: doc/one\n1 item compared, 4 files: 1 file mended, 0 left to see to\none\nxne\n[]\narchive  good, archive  good; 2 0 true",
    );
    // What only the other store says concerns its own originals.
    prints(
        &env,
        "sed -i '/^repair/d' S/archive.ibi; echo 'repair {original yes}' >> D/archive.ibi; harm $s/doc/one x; audits S --with D; cat $s/doc/one
         ibifs repair S --all --from D > /dev/null; cat $s/doc/one; audits S --with D",
        "status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\nxne\none\n\
         1 item compared, 2 files: 0 files mended, 0 left to see to",
    );
    env.complains(
        "echo 'repair {original maybe}' >> S/archive.ibi; ibifs audit S --with D",
        "'original maybe' is not a valid value of 'repair'",
    );
}

/// Nothing is overwritten where both sides are damaged, where the recorded digest is the wrong one, and where one side was
/// written and not the other.
#[test]
fn nothing_is_overwritten_without_the_recorded_content() {
    let env = environment();
    prints(
        &env,
        "echo 'repair {original yes}' >> S/archive.ibi; harm $s/doc/one x; harm $d/doc/one y; audits S --with D; cat $s/doc/one $d/doc/one; no ls S/damaged D/damaged",
        "status 1\nno-copy: doc/one\nno-copy: doc/one\n1 item compared, 4 files: 0 files mended, 2 left to see to\nxne\nyne",
    );
    let env = environment();
    prints(
        &env,
        "k=D/fixity/col/$item; wrong() { sed -i '/doc\\/one/s/^..../0000/' $1; }
         wrong $k/manifest-sha256.txt; audits S --with D
         wrong $k/written.txt; cp -a D/fixity before; audits S --with D; cat $d/doc/one; no ls D/damaged; diff -r before D/fixity | grep -v copies || true
         ibifs scrub D --accept $item > /dev/null; audits S --with D",
        "status 1\nwrong-record: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\n\
         status 1\nwrong-record: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\none\n\
         1 item compared, 2 files: 0 files mended, 0 left to see to",
    );
    let env = environment();
    prints(
        &env,
        "echo more >> $s/doc/one; echo new > $s/doc/new; audits S --with D; known S $item
         ibifs copy --store S $item D > /dev/null; audits S --with D; known S $item | sed 's/;.*//'",
        "status 1\ndiffers: doc/new\ndiffers: doc/one\n1 item compared, 3 files: 0 files mended, 2 left to see to\n\
         archive  good, archive  bad; 1 0 true\n1 item compared, 3 files: 0 files mended, 0 left to see to\narchive  good, archive  good",
    );
    // A whole item, there and here.
    prints(
        &env,
        "mv $d away; audits S --with D | sed 's;D/.*;D;'; mv away $d; audits S --with D > /dev/null
         ibifs remove --store D $item; audits S --with D | sed 's;D/.*;D;'; audits S --with D",
        "status 1\ngone: D\n1 item compared, 3 files: 0 files mended, 1 left to see to\n\
         status 1\ngone: D\n1 item compared, 3 files: 0 files mended, 1 left to see to\n\
         0 items compared, 0 files: 0 files mended, 0 left to see to",
    );
}
