//! Existing collections: a tree of repositories as they have grown for decades is taken over, what
//! the tree does not say comes from a table, and items leave as BagIt bags and OCFL objects and come
//! back.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::support::{Needs, TestEnv};

/// A tree as a URLib Archive has it: mixed case, ports behind `@` and `.`, hyphens, seconds, metadata
/// made a little later, and files with every kind of name.
const ODD: &str = "
    mkdir old; cd old
    for item in sid.inpe.br/MTC-m13@80/2005/08.10.14.18 sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25 \
        sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20 sid.inpe.br/iris@1905/2005/07.28.18.19 \
        dpi.inpe.br/banon-pc3@80/2009/11.10.13.03 sid.inpe.br/mtc-m18.8080/2011/07.21.14.43 \
        sid.inpe.br/mtc-m18@80/2009/07.21.14.43 sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05 \
        iconet.com.br/banon/2003/11.21.21.08; do
        mkdir -p col/$item/doc
    done
    cd col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18/doc
    echo 1 > @relatorio.pdf; echo 2 > @reference.bib; echo 3 > 'with  blanks .txt'
    echo 4 > '[brackets] {x} (1) #2; $3 & \"4\".txt'; echo 5 > $'relat\\xf3rio.pdf'
    mkdir $'se\\xe7\\xe3o' empty; echo 6 > $'se\\xe7\\xe3o/100%25.txt'; echo 7 > $'new\\nline\\r'
    echo 8 > $'e\\u0301'; echo 9 > $'\\u00e9'; echo 10 > 'back\\slash'; echo 11 > '=3D'; echo 12 > $'blank\\u2028'
    ln -s ../../../../../dpi.inpe.br/banon-pc3@80/2009/11.10.13.03/doc/x short
    ln -s ../../../../../../col/dpi.inpe.br/banon-pc3@80/2009/11.10.13.03/doc/x long
    ln -s $'relat\\xf3rio.pdf' $'liga\\xe7\\xe3o'
    chmod 640 @reference.bib; chmod 755 '[brackets] {x} (1) #2; $3 & \"4\".txt'
    touch -d '1999-12-31T23:59:59.123456789Z' @relatorio.pdf $'se\\xe7\\xe3o' .
    cd ../../../../../..; echo x > col/dpi.inpe.br/banon-pc3@80/2009/11.10.13.03/doc/x
    touch -d '2001-01-01T00:00:00Z' col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18
    cd ..";

/// Prints what can be seen of the files below a directory: names, kinds, modes, times, targets, digests.
const LOOK: &str = "
    items() { (cd old/col; ls -d */*/*/* | grep -v '/mtc-m18/'); }
    look() { (cd \"$1\" && find . -printf '%p %y %m %T@ %l %n\\n' | LC_ALL=C sort && \
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum && getfattr -PRd -m '^user|^system' .); }";

/// Every repository is an item under the spelling it has, its files are there with every byte of
/// their names, links between repositories hold, and nothing is touched.
#[test]
fn an_odd_tree_is_taken_over_as_it_is() {
    let env = TestEnv::with(Needs::RenameFlags);
    env.sh(ODD);
    env.sh(&format!(
        "{LOOK}\nfor i in $(items); do look old/col/$i; done > before"
    ));
    env.prints(
        "chmod 700 old; ibifs init --adopt old --host mtc-m18.sid.inpe.br 2>&1 > /dev/null",
        "",
    );
    env.prints(
        "ibifs ls old --state Copy | sed 's/ *-$//'",
        "Copy     dpi.inpe.br/banon-pc3@80/2009/11.10.13.03\n\
         Copy     iconet.com.br/banon/2003/11.21.21.08\n\
         Copy     sid.inpe.br/iris@1905/2005/07.28.18.19\n\
         Copy     sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20\n\
         Copy     sid.inpe.br/MTC-m13@80/2005/08.10.14.18\n\
         Copy     sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25\n\
         Copy     sid.inpe.br/mtc-m18.8080/2011/07.21.14.43\n\
         Copy     sid.inpe.br/mtc-m18@80/2009/07.21.14.43\n\
         Copy     sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05",
    );
    env.prints("ibifs fsck old", "10 items, 0 findings");
    // Mounted at a directory called col, relative links of both forms resolve: within the mount, and through
    // its parent directory as `../col/`.
    env.sh("mkdir m m/col; ibifs mount old m/col");
    let item = "m/col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18";
    env.prints(&format!("cat {item}/doc/short {item}/doc/long"), "x\nx");
    env.prints(&format!("cat {item}/doc/$'liga\\xe7\\xe3o' {item}/doc/$'relat\\xf3rio.pdf' {item}/doc/$'se\\xe7\\xe3o/100%25.txt'"), "5\n5\n6");
    env.prints(
        "readlink m/col/sid.inpe.br/mtc-M13@80 m/col/SID.inpe.br",
        "MTC-m13@80\nsid.inpe.br",
    );
    env.prints(
        "for i in $(ibifs ls old --state Copy | cut -c10- | cut -d' ' -f1); do state m/col/$i; echo; done | uniq -c | xargs",
        "9 Copy",
    );
    for tree in ["old/col", "m/col"] {
        env.sh(&format!(
            "{LOOK}\nfor i in $(items); do look {tree}/$i; done | diff before -"
        ));
    }
}

/// Faults in a tree are reported when it is adopted, and stay.
#[test]
fn what_is_wrong_in_a_tree_is_reported_when_it_is_adopted() {
    let env = TestEnv::with(Needs::RenameFlags);
    env.sh(ODD);
    env.sh("mkdir -p old/col/sid.inpe.br/mtc-M13@80/2005/08.10.14.19/doc old/col/sid.inpe.br/backup_2/2005/x
        mkdir old/col/$'s\\xe3o paulo' old/col/sid.inpe.br/backup_2/2005/$'a\\xff%\\n'");
    let stray = "stray-name: col/sid.inpe.br/backup_2/2005/x\n\
         stray-name: col/sid.inpe.br/backup_2/2005/a%FF%25%0A\n\
         stray-name: col/s%E3o paulo";
    env.prints(
        "chmod 700 old; ibifs init --adopt old --host mtc-m18.sid.inpe.br 2>&1 > /dev/null | cut -d: -f1-3 | sed 's/^ibifs: //'",
        &format!("spelled-twice: col/sid.inpe.br/mtc-M13@80\n{stray}"),
    );
    for check in ["fsck", "reindex"] {
        env.prints(
            &format!("ibifs {check} old > report 2>&1 || true; grep -o 'stray-name: [^:]*' report"),
            stray,
        );
    }
    env.prints("ibifs ls old | wc -l", "11");
}

/// A table for the odd tree.
const TABLE: &str = "
    cat > table.csv <<'END'
rep,ibip,relations,language,target,state
sid.inpe.br/mtc-m18@80/2009/07.21.14.43,8JMKD3MGP8W/35MMLL8,metadata=sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05 nextedition=sid.inpe.br/mtc-m18.8080/2011/07.21.14.43,en,\"CCSDS 650,0-B-1.pdf\",Original
SID.inpe.br/mtc-m13@80/2005/08.10.14.18,,translation(en)=sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25,pt-BR,@relatorio.pdf,
sid.inpe.br/mtc-m13@80/2005/08.10.14.18.25,,,en,,
sid.inpe.br/mtc-m18.8080/2011/07.21.14.43,,,,,Original
END";

/// A table says what the tree does not: it is looked at whole, then written in the sidecars, and what it
/// says holds in the mount. A second time there is nothing to do.
#[test]
fn a_table_says_what_the_tree_does_not() {
    let env = TestEnv::new();
    env.sh(ODD);
    env.sh(&format!(
        "chmod 700 old; ibifs init --adopt old --host mtc-m18.sid.inpe.br\n{TABLE}"
    ));
    let planned = "line 2: sid.inpe.br/mtc-m18@80/2009/07.21.14.43: ibi, ibi.archiveservice, ibi.metadata, ibi.nextedition, language, target\n\
                   line 3: sid.inpe.br/MTC-m13@80/2005/08.10.14.18: ibi.translation(en), language, target\n\
                   line 4: sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25: language\n\
                   line 5: sid.inpe.br/mtc-m18.8080/2011/07.21.14.43: ibi.archiveservice, ibi.editionof\n\
                   4 rows: 4 items would be changed, 0 not";
    env.prints("ibifs import --dry-run old table.csv", planned);
    env.prints("find old/col -name .ibi | wc -l", "1");
    env.prints(
        "ibifs import old table.csv",
        "4 rows: 4 items changed, 0 unchanged",
    );
    env.prints(
        "ibifs import --json old table.csv",
        r#"{"rows":4,"faults":0,"changed":0,"unchanged":4,"written":true}"#,
    );
    env.prints("ibifs fsck old", "10 items, 0 findings");
    env.sh("mkdir A; ibifs mount old A");
    let holds = |env: &TestEnv| {
        let item = "A/sid.inpe.br/mtc-m18@80/2009/07.21.14.43";
        env.prints(
                &format!("readlink '{item}:' '{item}!'"),
                "../../../sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05\n../../../sid.inpe.br/mtc-m18.8080/2011/07.21.14.43",
            );
        env.prints(
            &format!("ibip {item}; echo; state {item}"),
            "8JMKD3MGP8W/35MMLL8\nOriginal",
        );
        env.prints("ls -d A/8JMKD3MGP8W/35MMLL8", "A/8JMKD3MGP8W/35MMLL8");
        let translated = "A/sid.inpe.br/MTC-m13@80/2005/08.10.14.18";
        env.prints(
                &format!(
                    "readlink '{translated}+(en)'; state {translated}; echo; cat {translated}/.ibi"
                ),
                "../../../sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25\nCopy\nibi {rep sid.inpe.br/MTC-m13@80/2005/08.10.14.18}\n\
             language pt-BR\ntarget @relatorio.pdf\n\
             ibi.translation(en) {rep sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25}",
            );
        env.prints(
            "grep editionof A/sid.inpe.br/mtc-m18.8080/2011/07.21.14.43/.ibi",
            "ibi.editionof {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}",
        );
    };
    holds(&env);
    // The same through a mount, by a table of a spreadsheet that writes decimal commas.
    env.sh("ibifs umount A; rm -r old A; rm table.csv");
    env.sh(ODD);
    env.sh(&format!("chmod 700 old; ibifs init --adopt old --host mtc-m18.sid.inpe.br; mkdir A; ibifs mount old A\n{TABLE}\nsed -i '1s/.*/rep;ibip;relations;language;target;state/; 2,$s/,/;/g; s/650;0/650,0/; s/$/\\r/' table.csv"));
    env.prints(
        "ibifs import A table.csv",
        "4 rows: 4 items changed, 0 unchanged",
    );
    holds(&env);
    env.sh("ibifs umount A");
    env.prints("ibifs fsck old", "10 items, 0 findings");
}

/// Each row that cannot be taken is named with its line and a remedy, and nothing is changed by the
/// others either. What is recorded gives way to a table only where that is said.
#[test]
fn a_table_with_bad_rows_changes_nothing() {
    let env = TestEnv::new();
    env.sh(ODD);
    env.sh("chmod 700 old; ibifs init --adopt old --host mtc-m18.sid.inpe.br");
    env.sh("cat > bad.csv <<'END'
rep,ibip,relations,language
sid.inpe.br/mtc-m18@80/2009/07.21.14.43,8JMKD3MGP8W/35MMLL8,,en
sid.inpe.br/mtc-m18@80/2009/07.21.14.44,,,en
SID.inpe.br/mtc-m18@80/2009/07.21.14.43,,,pt
sid.inpe.br/iris@1905/2005/07.28.18.19,8JMKD3MGP8W/35MMLL8,,
sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20,,nextedition=dpi.inpe.br/banon-pc3@80/2009/11.10.13.03,
dpi.inpe.br/banon-pc3@80/2009/11.10.13.03,,nextedition=sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20,
sid.inpe.br/mtc-m13@80/2005/08.10.14.18,,metadata=sid.inpe.br/mtc-m13@80/2005/08.10.14.18,
iconet.com.br/banon/2003/11.21.21.08,8JMKD3MGP8W/O,,
sid.inpe.br/mtc-m18.8080/2011/07.21.14.43,,,english
END
    find old -name '*sqlite3*' -prune -o -type f -printf '%p %T@\\n' | sort > before");
    let faults = "line 3: no item 'sid.inpe.br/mtc-m18@80/2009/07.21.14.44' is held here; copy it here first, or remove the row\n\
        line 4: line 2 names the same item; combine the two rows\n\
        line 5: line 2 names the same item; combine the two rows\n\
        line 6: the editions would form a cycle through dpi.inpe.br/banon-pc3@80/2009/11.10.13.03; an edition cannot follow itself\n\
        line 7: the editions would form a cycle through sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20; an edition cannot follow itself\n\
        line 8: its ibi.metadata would be the item itself; correct the row\n\
        line 9: character 'O' in the suffix at byte 13 of IBIp '8JMKD3MGP8W/O' does not belong there: only 2 to 9 and letters except I, O, V, Y and Z do\n\
        line 10: language 'english' is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR\n\
        9 rows, 8 of them invalid: nothing was changed\n";
    let output = env.run("ibifs import old bad.csv");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.starts_with(faults), "{printed}");
    assert_eq!(output.status.code(), Some(1));
    env.prints(
        "ibifs import --json old bad.csv | jq -c 'select(.line == 4 or .rows)' || true",
        "{\"line\":4,\"sentence\":\"line 2 names the same item; combine the two rows\"}\n\
         {\"rows\":9,\"faults\":8,\"changed\":1,\"unchanged\":0,\"written\":false}",
    );
    env.sh(
        "find old -name '*sqlite3*' -prune -o -type f -printf '%p %T@\\n' | sort | diff before -",
    );
    // The recorded values count, unless the table is said to be right.
    env.sh(TABLE);
    env.sh("ibifs import old table.csv; sed 's/pt-BR/pt/' table.csv > other.csv");
    env.prints(
        "ibifs import old other.csv || true",
        "line 3: its language is pt-BR already; leave it out, or use --replace if the table is right\n\
         4 rows, 1 of them invalid: nothing was changed",
    );
    env.prints(
        "ibifs import --replace old other.csv",
        "4 rows: 1 item changed, 3 unchanged",
    );
    env.prints(
        "grep language old/col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18/.ibi",
        "language pt",
    );
    env.exits("ibifs import old nothing.csv", 3);
    env.exits("ibifs import nowhere table.csv", 3);
    env.complains(
        "ibifs import old /dev/null",
        "neither a directory nor a table",
    );
}

/// The directory of the validators' own programs, which are installed once for all runs.
pub fn validators() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("validators");
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/validators.txt");
        let env = TestEnv::new();
        // aics-witness says that it needs Python 3.12, and runs with that of Debian 12.
        env.sh(&format!(
            "place='{}'; list='{}'
             mkdir -p $place; exec 9> $place/lock; flock 9
             cmp -s $list $place/list && exit
             rm -rf $place/env $place/list; python3 -m venv $place/env
             $place/env/bin/python -m pip install -q --no-compile --no-deps --ignore-requires-python --disable-pip-version-check -r $list
             cp $list $place/list",
            place.display(),
            list.display()
        ));
        place.join("env/bin")
    })
}

/// `bagit.py` and `ocfl-root.py` for scripts.
fn tools() -> String {
    let place = validators().display();
    format!(
        "{LOOK}
         bagit() {{ '{place}/python' '{place}/bagit.py' --quiet \"$@\"; }}
         ocfl() {{ '{place}/python' '{place}/ocfl-root.py' validate --root \"$1\" --validate-objects --check-digests 2>&1; }}"
    )
}

/// The odd tree with what else a filesystem has, and a table about it: store `old`.
fn odd_store(env: &TestEnv) {
    env.sh(ODD);
    env.sh(&format!(
        "cd old/col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18/doc
         ln @relatorio.pdf second; mkfifo fifo; setfattr -n user.comment -v 'a b=\u{e9}' @reference.bib
         setfacl -m u:1:r @reference.bib; setfacl -d -m u:1:rx empty
         echo long > $(printf '\\xe7%.0s' {{1..250}}); : > zero; chmod 750 empty; chmod 0 zero
         cd ../../../../../../..
         chmod 700 old; ibifs init --adopt old --host mtc-m18.sid.inpe.br
         {TABLE}
         ibifs import old table.csv"
    ));
}

/// Every item leaves as a bag that the format's own validator finds good, and comes back the same:
/// into a store, through a mount, and into the Archive that it is an original of.
#[test]
fn bags_are_valid_and_come_back_whole() {
    let env = TestEnv::with(Needs::HardLinks);
    let tools = tools();
    odd_store(&env);
    env.prints(
        "ibifs export --store old --bagit $(ibifs ls old | cut -c10- | cut -d' ' -f1) bags | tail -1; ls -A bags",
        "10 items: 10 written, 0 unchanged\ndpi.inpe.br\niconet.com.br\nsid.inpe.br",
    );
    env.sh(&format!(
        "{tools}\nfor bag in bags/*/*/*/*; do bagit --validate --completeness-only $bag; bagit --validate $bag; done"
    ));
    env.prints(
        "cd bags/sid.inpe.br/mtc-m18@80/2009/07.21.14.43; grep External bag-info.txt
         diff data/.ibi ../../../../../old/col/sid.inpe.br/mtc-m18@80/2009/07.21.14.43/.ibi",
        "External-Identifier: sid.inpe.br/mtc-m18@80/2009/07.21.14.43\n\
         External-Identifier: 8JMKD3MGP8W/35MMLL8",
    );
    // Into a store.
    env.sh("ibifs init B.store --host archive-b.example.net");
    env.prints(
        "ibifs import --dry-run B.store bags | tail -1; ibifs ls B.store | wc -l",
        "10 packages, 10 would be taken in\n1",
    );
    env.prints(
        "ibifs import --json B.store bags | tail -1",
        r#"{"packages":10,"taken":10,"dry_run":false}"#,
    );
    env.prints(
        "ibifs fsck B.store; ls -A B.store/staging",
        "11 items, 0 findings",
    );
    env.sh(&format!(
        "{tools}\nfor i in $(items); do diff <(look old/col/$i) <(look B.store/col/$i); done"
    ));
    env.prints(
        "ibifs ls B.store --state Copy | wc -l; ibifs ls B.store --state Original | wc -l",
        "10\n1",
    );
    // Through a mount, but for the rights of others, which are not given away.
    env.sh("ibifs init C.store --host archive-c.example.net; mkdir C; ibifs mount C.store C");
    env.prints("ibifs import C bags | tail -1", "10 packages, 10 taken in");
    env.sh("ibifs umount C");
    env.prints("ibifs fsck C.store", "11 items, 0 findings");
    env.sh(&format!(
        "{tools}\nfor i in $(items); do diff <(look old/col/$i) <(look C.store/col/$i); done"
    ));
    // Items that are here already stay; a removed one comes back as the original that it was.
    env.exits("ibifs import old bags > messages", 4);
    env.prints(
        "tail -1 messages; grep -c 'is here already$' messages",
        "10 packages, 0 taken in\n10",
    );
    env.sh("mkdir A; ibifs mount old A; rm -r A/sid.inpe.br/mtc-m18@80/2009/07.21.14.43; ibifs umount A");
    env.prints("ibifs ls old --state Deleted | wc -l", "1");
    env.exits("ibifs import old bags > messages", 4);
    env.prints(
        "tail -1 messages; ibifs show old/col/sid.inpe.br/mtc-m18@80/2009/07.21.14.43 | grep state",
        "10 packages, 1 taken in\nstate            Original",
    );
    env.prints("ibifs fsck old", "10 items, 0 findings");
}

/// Every item leaves as an OCFL object that the format's own validator finds good, a later export adds a
/// version with what is new, and the last version comes back the same.
#[test]
fn ocfl_objects_are_valid_and_come_back_whole() {
    let env = TestEnv::with(Needs::HardLinks);
    let tools = tools();
    odd_store(&env);
    let all = "$(ibifs ls old | cut -c10- | cut -d' ' -f1)";
    let valid = "Objects checked: 10 / 10 are VALID\nStorage root root is VALID";
    env.prints(
        &format!("ibifs export --store old --ocfl {all} root | tail -1"),
        "10 items: 10 written, 0 unchanged",
    );
    env.prints(
        &format!("{tools}\nocfl root | grep -v layout | sed '/^$/d'"),
        valid,
    );
    env.sh("find root -type f | sort > first");
    env.prints(
        &format!("ibifs export --store old --ocfl {all} root | tail -1; find root -type f | sort | diff first -; ls root/extensions"),
        "10 items: 0 written, 10 unchanged\n0003-hash-and-id-n-tuple-storage-layout",
    );
    // A changed item gets a version, and what is in it already is not there twice.
    let item = "sid.inpe.br/MTC-m13@80/2005/08.10.14.18";
    env.sh(&format!(
        "cd old/col/{item}/doc; echo more > new; rm @reference.bib; mv '=3D' moved"
    ));
    env.prints(
        &format!("ibifs export --json --store old --ocfl {item} root | jq -c '[.outcome, .version, .written]'"),
        "[\"version\",2,null]\n[null,null,1]",
    );
    env.prints(
        "find root -path '*/v2/content/*' -type f | sed 's|.*/v2/||' | sort",
        "content/data/doc/new\ncontent/ibifs.mtree",
    );
    env.prints(
        &format!("{tools}\nocfl root | grep -v layout | sed '/^$/d'"),
        valid,
    );
    env.sh("ibifs init B.store --host archive-b.example.net");
    env.prints(
        "ibifs import B.store root | tail -1",
        "10 packages, 10 taken in",
    );
    env.prints("ibifs fsck B.store", "11 items, 0 findings");
    env.sh(&format!(
        "{tools}\nfor i in $(items); do diff <(look old/col/$i) <(look B.store/col/$i); done"
    ));
    // One object alone, through a mount.
    env.sh(
        "ibifs init C.store --host archive-c.example.net; mkdir C; ibifs mount C.store C
        ibifs import C \"$(dirname \"$(find root -path '*/v2')\")\"; ibifs umount C",
    );
    env.sh(&format!(
        "{tools}\ndiff <(look old/col/{item}) <(look C.store/col/{item})"
    ));
}

/// A package that is not whole, or lies, is refused with its reason, and nothing of it is taken in.
#[test]
fn a_package_that_is_not_whole_is_not_taken_in() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs init B.store --host archive-b.example.net; mkdir spoilt; echo secret > secret
        item=$(mint A one); echo text > A/$item/doc/text; ln -s text A/$item/doc/link; echo $item > item
        ibifs export --bagit A/$item bags > /dev/null; mv bags/$item bag; ibifs export --ocfl A/$item root > /dev/null");
    let spoil = |script: &str, sentence: &str| {
        env.sh(&format!("rm -rf spoilt; cp -a bag spoilt; cd spoilt; rm ./*-sha512.txt; reseal() {{ \
            sha256sum ibifs.mtree bagit.txt bag-info.txt manifest-sha256.txt > tagmanifest-sha256.txt; }}; sed -i /Oxum/d bag-info.txt; reseal\n{script}"));
        env.exits("ibifs import B.store spoilt > messages", 1);
        let messages = env.sh("head -1 messages");
        assert!(messages.contains(sentence), "{messages}");
        env.prints("ibifs ls B.store | wc -l; ls -A B.store/staging", "1");
    };
    spoil(
        "echo other > data/doc/text",
        "'data/doc/text' is not what the package says; get the package again",
    );
    spoil(
        "rm data/doc/text",
        "'data/doc/text' is in the package's list of files, and is not there",
    );
    spoil(
        "echo x > data/doc/more",
        "'data/doc/more' is not in the package's list of files",
    );
    spoil(
        "echo x >> ibifs.mtree",
        "'ibifs.mtree' is not what the package says",
    );
    spoil(
        "echo x >> ibifs.mtree; reseal",
        "'ibifs.mtree' of the package is not valid: line 8: it begins with no path of the shape ./a/b",
    );
    spoil(
        "echo x >> manifest-sha256.txt",
        "'manifest-sha256.txt' of the package is not valid: line 3 is not a digest and a path",
    );
    spoil(
        "echo 'http://x 1 data/y' > fetch.txt",
        "'fetch.txt' of the package is not valid: the file data/y of the bag is elsewhere",
    );
    spoil(
        "rm manifest-sha256.txt",
        "'manifest-sha256.txt' is in the package's list of files, and is not there",
    );
    spoil(
        "echo 'ibi {rep x}' > data/.ibi; sha256sum data/.ibi data/doc/text > manifest-sha256.txt; reseal",
        "'data/.ibi' of the package is not valid",
    );
    // Neither out of the package nor out of the item.
    spoil(
        "rm data/doc/text; ln -s ../../../secret data/doc/text",
        "'data/doc/text' is a link",
    );
    spoil(
        "echo './../x type=file mode=0644 time=0.0 size=5 contents=data/doc/text' >> ibifs.mtree; reseal",
        "line 8: it begins with no path of the shape ./a/b",
    );
    spoil(
        "sed -i 's|^./doc/link .*|./doc/link type=link link=/tmp mode=0777 time=0.0|; $a ./doc/link/x type=file mode=0644 time=0.0 size=5 contents=data/doc/text' ibifs.mtree; reseal",
        "cannot make 'doc/link/x'",
    );
    spoil(
        "sed -i 's|contents=data/doc/text|contents=../secret|' ibifs.mtree; reseal",
        "'../secret' is not what the package says",
    );
    // An object.
    env.sh("rm -rf spoilt; cp -a root spoilt; echo x >> \"$(find spoilt -name text)\"");
    env.exits("ibifs import B.store spoilt > messages", 1);
    env.prints(
        "grep -c \"E092, '.*/text': it is missing, or its digest is not\" messages",
        "1",
    );
    env.sh("rm -rf spoilt; cp -a root spoilt; sed -i 's/ibifs export/other/' \"$(find spoilt -name inventory.json | head -1)\" \"$(find spoilt -name inventory.json | tail -1)\"");
    env.exits("ibifs import B.store spoilt > messages", 1);
    env.prints(
        "grep -c \"E060, 'inventory.json': it has another digest\" messages",
        "1",
    );
    // Directories and files that stand in the way of a good package.
    env.exits("mkdir nothing; ibifs import B.store nothing", 3);
    env.complains(
        "ibifs import B.store nothing",
        "holds neither a bag (bagit.txt) nor an OCFL object",
    );
    env.sh("ibifs import B.store bag");
    env.exits("ibifs import B.store bag", 4);
    // A name that this Archive has not handed out yet may not be brought by any user.
    env.sh("i=$(cat item); ibifs umount A; ibifs init D.store --host archive-a.example.org --service ${i%/*/*}/2020/01.01.00.00
        rm -rf spoilt; cp -a bag spoilt; cd spoilt; rm ./*-sha512.txt; sed -i 's|/20[0-9][0-9]/|/2999/|' data/.ibi
                sha256sum data/.ibi data/doc/text > manifest-sha256.txt
        sha256sum ibifs.mtree bagit.txt bag-info.txt manifest-sha256.txt > tagmanifest-sha256.txt");
    env.exits("ibifs import D.store spoilt > messages", 4);
    env.prints(
        "grep -c 'only minting creates it' messages; ls D.store/staging",
        "1",
    );
    env.sh("mkdir D; ibifs mount D.store D");
    env.exits("ibifs import D spoilt > messages", 4);
    env.prints(
        "grep -c 'only minting creates it' messages; ibifs umount D",
        "1",
    );
}

/// An item that is damaged, or holds what no package can, is not sealed as if it were sound; nothing that
/// is there is overwritten; and a package does not come to lie in a store.
#[test]
fn what_cannot_be_exported_is_named() {
    let env = TestEnv::new().with_a();
    env.sh("item=$(mint A one); echo $item > item; echo good > A/$item/doc/text; touch -d '2020-01-01' A/$item/doc/text
        ibifs scrub A > /dev/null; printf 'evil\\n' > A.store/col/$item/doc/text; touch -d '2020-01-01' A.store/col/$item/doc/text");
    for format in ["--bagit", "--ocfl"] {
        env.exits(
            &format!("ibifs export {format} A/$(cat item) out{format} > messages"),
            1,
        );
        env.prints(
            "head -1 messages | cut -d: -f3- | cut -c1-71",
            " 'doc/text' is damaged: its content differs from the last scrub, and it",
        );
    }
    env.prints("ls -A out--bagit", "");
    env.sh(
        "ibifs scrub A --accept $(cat item) > /dev/null; ibifs export --bagit A/$(cat item) out",
    );
    env.exits("ibifs export --bagit A/$(cat item) out > messages", 4);
    env.prints(
        "grep -c 'exists already; move it away, or name another directory' messages",
        "1",
    );
    env.sh("python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' A.store/s && mv A.store/s A.store/col/$(cat item)/doc/s");
    env.exits("ibifs export --ocfl A/$(cat item) root > messages", 1);
    env.prints("grep -c \"'doc/s' is a socket or a device\" messages", "1");
    env.sh("rm A.store/col/$(cat item)/doc/s");
    for inside in [
        "A.store/out",
        "A.store/col/out",
        "A/out",
        "A/$(cat item)/out",
    ] {
        env.exits(&format!("ibifs export --bagit A/$(cat item) {inside}"), 4);
    }
    env.exits("ibifs export --ocfl A/$(cat item) out", 4);
    env.complains(
        "ibifs export --ocfl A/$(cat item) out",
        "it is not empty and not an OCFL 1.1 storage root",
    );
    env.exits(
        "ibifs export --bagit A/nothing.org/x/2020/01.01.00.00 out",
        3,
    );
    env.exits("ibifs export A/$(cat item) out", 2);
    env.exits("flock out ibifs export --bagit A/$(cat item) out", 5);
}

/// A bag that others have made is taken in where it says which item it is of; what it does not say is as
/// with any file that is copied. Users, groups and the bits that act with their rights come back only
/// where that is asked for.
#[test]
fn bags_of_others_and_owners() {
    let env = TestEnv::new().with_a();
    let tools = tools();
    env.sh(&format!("{tools}
        mkdir -p foreign/doc; echo text > foreign/doc/a=3D; touch -d '2020-01-01T00:00:00Z' foreign/doc/a=3D
        bagit --sha256 --external-identifier sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20 foreign
        ibifs import A foreign"));
    env.prints(
        "cd A/sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20; find . -type f -printf '%p %T@\\n'; cat doc/*; state .",
        "./doc/a=3D 1577836800.0000000000\ntext\nCopy",
    );
    env.sh(&format!(
        "{tools}
        mkdir -p nameless/doc; echo text > nameless/doc/text; bagit --sha256 nameless"
    ));
    env.exits("ibifs import A nameless > messages", 1);
    env.prints("grep -c 'does not name its item' messages", "1");
    env.sh("item=$(mint A one); echo $item > item; echo x > A/$item/doc/x; chown 1:2 A/$item/doc/x; chmod 6755 A/$item/doc/x
        ibifs export --bagit A/$item bags; ibifs init B.store --host archive-b.example.net; ibifs init C.store --host archive-c.example.net
        ibifs import B.store bags; ibifs import --same-owner C.store bags");
    env.prints(
        "stat -c '%u:%g %a' [BC].store/col/$(cat item)/doc/x",
        "0:0 755\n1:2 6755",
    );
}
