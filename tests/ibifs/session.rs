//! Whole sessions: what a user would type to deposit, relate, copy, link, collect and remove, with
//! the real cp and rsync on two mounted Archives.

use crate::support::TestEnv;

/// Functions that the scripts here share.
const TOOLS: &str = r#"
# Makes the directory $1 with a few hundred files of all sorts and the names that people give.
document_tree() {
    mkdir -p "$1"/{pages,figures/{small,large},empty/{a,b}} && cd "$1"
    for i in $(seq 150); do
        echo "<a href='page-$((i + 1)).html'>page $i</a>" > "pages/page-$i.html"
        head -c "$((i * 37))" /dev/zero > "figures/small/$i.img"
    done
    echo '@misc{key, title = {Report}}' > @reference.bib
    echo pdf > '@relatorio.pdf'
    echo spaces > 'CCSDS 650.0-B-1 (blue book) [final].pdf'
    echo quotes > "it's \"quoted\" \$HOME \`id\` \\ back"
    echo newline > $'two\nlines'
    echo latin > $'caf\xe9.txt'
    echo utf8 > 'relatório 日本.txt'
    echo signs > '-n!+(pt):(oai_dc)?GetFileList'
    echo dotted > .hidden
    mkdir 'year 2009' && echo inside > 'year 2009/02.16.17.46'
    echo data > figures/large/data && ln figures/large/data figures/large/same-data
    truncate -s 64M figures/large/sparse && echo end >> figures/large/sparse
    ln -s pages/page-1.html index.html
    ln -s ../figures/small/1.img pages/figure
    ln -s nowhere dangling
    mkfifo pipe
    chmod 640 @reference.bib && chmod 2750 figures
    touch -d '2009-02-16 17:46:01.123456789' @reference.bib pages
    cd "$OLDPWD"
}
# Mints with the options given and prints the rep.
mint_with() { ibifs mint A "$@" | head -n 1; }
# How an item of the mount $1 is called there: by its rep, by its IBIp.
copied_by() { mkdir -p "B/${1%/*}" && cp -a "A/$1" "B/${1%/*}/"; }
upper() { tr a-z A-Z <<< "$1"; }
lower() { tr A-Z a-z <<< "$1"; }
# The fifteen items that give all fourteen modifiers of $first an answer.
related_items() {
    first=$(mint_with)
    second=$(mint_with --edition-of "$first")
    pt=$(mint_with --translation-of "$first" --lang pt)
    meta=$(mint_with --metadata-of "$first")
    meta_pt=$(mint_with --translation-of "$meta" --lang pt)
    second_pt=$(mint_with --translation-of "$second" --lang pt)
    second_meta=$(mint_with --metadata-of "$second")
    second_pt_meta=$(mint_with --metadata-of "$second_pt")
    second_meta_pt=$(mint_with --translation-of "$second_meta" --lang pt)
    second_pt_meta_pt=$(mint_with --translation-of "$second_pt_meta" --lang pt)
    pt_second=$(mint_with --edition-of "$pt")
    pt_meta=$(mint_with --metadata-of "$pt")
    pt_second_meta=$(mint_with --metadata-of "$pt_second")
    pt_meta_pt=$(mint_with --translation-of "$pt_meta" --lang pt)
    pt_second_meta_pt=$(mint_with --translation-of "$pt_second_meta" --lang pt)
    for name in first second pt meta meta_pt second_pt second_meta second_pt_meta second_meta_pt \
        second_pt_meta_pt pt_second pt_meta pt_second_meta pt_meta_pt pt_second_meta_pt; do
        echo "$name=${!name}" >> vars
        echo "$name" > "A/${!name}/doc/x"
    done
}
# All answers of the mount $1 of the store $2: lists, attributes, and every modifier in both trees.
answers() {
    ibifs ls "$2" | sort
    ibifs ls "$2" | sort | while read -r state rep ibip; do
        ibifs show --json --store "$2" "$rep"
        for attribute in rep ibip state archiveservice language target alias lastedition nextedition \
            metadata editionof metadataof translationof translation.pt translation.en; do
            echo "$rep $attribute $(getfattr --absolute-names --only-values \
                -n "user.ibi.$attribute" "$1/$rep" 2>&1 || true)"
        done
        for name in "$rep" "$ibip"; do
            for modifier in : :+ ! !+ !: !+: !:+ !+:+ + +! +: +!: +:+ +!:+ '+(pt)' '+(pt-BR)' '+(fr)' \
                '?GetLastEdition' '?GetMetadata+GetTranslation'; do
                echo "$name$modifier $(readlink "$1/$name$modifier" || stat -c %F "$1/$name$modifier" 2>&1)"
            done
            for modifier in ':(oai_dc)' '!:(oai_dc)' '?GetFileList'; do
                echo "$name$modifier $(cat "$1/$name$modifier" 2>&1 || true)"
            done
        done
    done
}
test ! -e vars || . ./vars
"#;

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}\n{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{TOOLS}\n{script}"), expected);
}

/// An item reads the same by its rep and by its IBIp, in lower and in upper case: content, names of any bytes, links,
/// hard links, holes, modes and times.
#[test]
pub fn a_document_reads_the_same_by_every_name() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "document_tree tree
         mkdir -p A/.mint/report/doc
         cp -a tree/. A/.mint/report/doc/
         echo report=$(rep A/.mint/report) >> vars
         echo ibip=$(ibip A/.mint/report) >> vars",
    );
    for name in [
        "A/$report",
        "A/$ibip",
        "A/$(upper $report)",
        "A/$(lower $ibip)",
        "A/.mint/report",
        "A/.mint/.report",
    ] {
        prints(
            &env,
            &format!("diff -r --no-dereference -x pipe tree {name}/doc"),
            "",
        );
        prints(
            &env,
            &format!("rsync -aHAXni --delete --checksum tree/ {name}/doc/"),
            "",
        );
        prints(
            &env,
            &format!(
                "native=$(stat -c %b tree/figures/large/sparse); cd {name}/doc
                 test figures/large/data -ef figures/large/same-data
                 stat -c %h figures/large/data
                 # MooseFS counts holes as blocks.
                 test $(stat -c %b figures/large/sparse) -lt $((native < 1000 ? 1000 : native + 1)) && echo sparse
                 cat index.html pages/figure | wc -c
                 find . | wc -l"
            ),
            &sh(
                &env,
                "cd tree; echo 2; echo sparse; cat index.html pages/figure | wc -c; find . | wc -l",
            ),
        );
    }
    // The recorded spelling is what the others lead to.
    prints(
        &env,
        "readlink -f A/$(upper $report)",
        &sh(&env, "echo $PWD/A/$report"),
    );
    prints(
        &env,
        "readlink -f A/$(lower $ibip)",
        &sh(&env, "echo $PWD/A/$ibip"),
    );
    prints(
        &env,
        "ibifs umount A; ibifs fsck A.store | tail -n 1",
        "2 items, 0 findings",
    );
}

/// The table of modifiers in ibi(7): every row, with the name of its target in [`TOOLS`], and its verbs.
const ROWS: [(&str, &str, &str); 14] = [
    (":", "meta", "GetMetadata"),
    (":+", "meta_pt", "GetMetadata+GetTranslation"),
    ("!", "second", "GetLastEdition"),
    ("!+", "second_pt", "GetLastEdition+GetTranslation"),
    ("!:", "second_meta", "GetLastEdition+GetMetadata"),
    (
        "!+:",
        "second_pt_meta",
        "GetLastEdition+GetTranslation+GetMetadata",
    ),
    (
        "!:+",
        "second_meta_pt",
        "GetLastEdition+GetMetadata+GetTranslation",
    ),
    (
        "!+:+",
        "second_pt_meta_pt",
        "GetLastEdition+GetTranslation+GetMetadata+GetTranslation",
    ),
    ("+", "pt", "GetTranslation"),
    ("+!", "pt_second", "GetTranslation+GetLastEdition"),
    ("+:", "pt_meta", "GetTranslation+GetMetadata"),
    (
        "+!:",
        "pt_second_meta",
        "GetTranslation+GetLastEdition+GetMetadata",
    ),
    (
        "+:+",
        "pt_meta_pt",
        "GetTranslation+GetMetadata+GetTranslation",
    ),
    (
        "+!:+",
        "pt_second_meta_pt",
        "GetTranslation+GetLastEdition+GetMetadata+GetTranslation",
    ),
];

/// All fourteen modifiers lead to the targets of the table in ibi(7), as relative links in the tree in which
/// they are looked up, in any case of the identifier, with parameters and by verbs.
#[test]
fn fourteen_modifiers_lead_where_the_table_says() {
    let env = TestEnv::new().with_a();
    sh(&env, "related_items");
    let mut script = String::from("ibip=$(ibip A/$first)\n");
    let mut expected = String::new();
    for (signs, target, verbs) in ROWS {
        let spellings = [
            signs.to_owned(),
            format!("?{verbs}"),
            signs.replace('+', "+(pt)"),
            format!("?{}", verbs.replace("GetTranslation", "GetTranslation(pt)")),
        ];
        for spelling in spellings {
            script.push_str(&format!(
                "readlink \"A/$first{spelling}\" \"A/$ibip{spelling}\" \"A/$(upper $first){spelling}\" \
                 \"A/$(lower $ibip){spelling}\"
                 cat \"A/$first{spelling}/doc/x\" \"A/$ibip{spelling}/doc/x\"\n"
            ));
            expected.push_str(&format!(
                "printf '%s\\n' ../../../${target} ../$(ibip A/${target}) ../../../${target} \
                 ../$(ibip A/${target}) {target} {target}\n"
            ));
        }
    }
    prints(&env, &script, &sh(&env, &expected));
    // An edition without a next one is its own last edition, in both trees.
    prints(
        &env,
        "readlink A/$second! A/$(ibip A/$second)!",
        &sh(&env, "printf '%s\\n' ../../../$second ../$(ibip A/$second)"),
    );
    // An item already in the wanted language is its own translation.
    prints(
        &env,
        "readlink \"A/$pt+(pt)\"",
        &sh(&env, "echo ../../../$pt"),
    );
    // Other signs than the fourteen compositions name nothing.
    for signs in [
        "!!",
        ":!",
        "+!+",
        "++",
        ":+!",
        "!(pt)",
        "+(por)",
        "+(PT)",
        "?GetMetadata+GetLastEdition",
    ] {
        prints(
            &env,
            &format!("stat \"A/$first{signs}\" 2>&1 | grep -c 'No such file' || true"),
            "1",
        );
    }
}

/// An HTML file and a symbolic link reach another item by a relative path where both are deposited,
/// dangle where the other is not, and hold again once it is copied.
#[test]
fn links_between_items_hold_wherever_both_are() {
    let env = TestEnv::new().with_a().with_b();
    sh(
        &env,
        r#"here=$(mint A here) other=$(mint A other)
         echo "here=$here other=$other" >> vars
         echo "reached" > "A/$other/doc/x"
         mkdir "A/$here/doc/cgi"
         target="../../../../../../$other/doc/x"
         echo "<p><a href=\"$target\">the other</a></p>" > "A/$here/doc/cgi/page.html"
         ln -s "$target" "A/$here/doc/cgi/link""#,
    );
    let by_html = |mount: &str| {
        format!(
            r#"page={mount}/$here/doc/cgi/page.html
            href=$(sed -n 's/.*href="\([^"]*\)".*/\1/p' "$page")
            cat "$(realpath -s -m "${{page%/*}}/$href")""#
        )
    };
    let by_links = |mount: &str| {
        format!(
            "ibip=$(ibip {mount}/$here)
             cat {mount}/$here/doc/cgi/link {mount}/$ibip/doc/cgi/link
             cd {mount}/$ibip/doc/cgi && cat link"
        )
    };
    prints(&env, &by_html("A"), "reached");
    prints(&env, &by_links("A"), "reached\nreached\nreached");
    sh(&env, "copied_by $here");
    let dangles = "ibip=$(ibip B/$here)
        for link in B/$here/doc/cgi/link B/$ibip/doc/cgi/link; do
            test -L $link && test ! -e $link && echo dangles
        done";
    prints(&env, dangles, "dangles\ndangles");
    let output = env.run(&format!("{TOOLS}\n{}", by_html("B")));
    assert!(!output.status.success(), "the page leads nowhere yet");
    sh(&env, "copied_by $(ibip A/$other)");
    prints(&env, &by_html("B"), "reached");
    prints(&env, &by_links("B"), "reached\nreached\nreached");
    // On the disk the link is what was written, whatever tree it was copied through.
    prints(
        &env,
        "readlink B.store/col/$here/doc/cgi/link",
        &sh(&env, "echo ../../../../../../$other/doc/x"),
    );
    sh(
        &env,
        "mkdir C.d; cp -a A/$(ibip A/$here) C.d/; rm -r B/$here; copied_by $(ibip A/$here)",
    );
    prints(
        &env,
        "readlink B.store/col/$here/doc/cgi/link",
        &sh(&env, "echo ../../../../../../$other/doc/x"),
    );
    sh(
        &env,
        "ibifs umount A; ibifs umount B; ibifs fsck A.store; ibifs fsck B.store",
    );
}

/// An item copied by its IBIp, and another by its rep, keep both names and their relations, and
/// know that they are copies; the Archive that they came from keeps the originals.
#[test]
fn a_copy_keeps_names_and_relations() {
    let env = TestEnv::new().with_a().with_b();
    sh(
        &env,
        "related_items; copied_by $(ibip A/$first); copied_by $second",
    );
    for item in ["first", "second"] {
        prints(
            &env,
            &format!("rep B/${item}; echo; ibip B/$(ibip A/${item}); echo; state B/${item}"),
            &sh(
                &env,
                &format!("echo ${item}; ibip A/${item}; echo; echo Copy"),
            ),
        );
        prints(&env, &format!("state A/${item}"), "Original");
        prints(&env, &format!("diff -r A/${item} B/${item}"), "");
        prints(&env, &format!("diff -r A/${item} B/$(ibip A/${item})"), "");
        prints(&env, &format!("cat B/${item}/doc/x"), item);
    }
    prints(&env, "find B -name .ibi | wc -l", "3");
    // Relations travel along; a related item not held here is named all the same.
    prints(
        &env,
        "readlink B/$first!",
        &sh(&env, "echo ../../../$second"),
    );
    prints(
        &env,
        "readlink B/$(ibip B/$first)!",
        &sh(&env, "echo ../$(ibip A/$second)"),
    );
    prints(
        &env,
        "readlink \"B/$first+(pt)\" B/$first:",
        &sh(&env, "printf '%s\\n' ../../../$pt ../../../$meta"),
    );
    prints(
        &env,
        "test ! -e \"B/$first+(pt)\" && echo dangles",
        "dangles",
    );
    let relations = |store: &str| {
        format!("ibifs show --store {store} $first | grep -v -e state -e '^link' -e '^page' | sort")
    };
    prints(
        &env,
        &relations("B.store"),
        &sh(&env, &relations("A.store")),
    );
}

/// rsync copies a collection whole; the second run finds nothing to do, and every tool that walks
/// the tree meets each item once.
#[test]
fn a_collection_is_copied_once() {
    let env = TestEnv::new().with_a().with_b();
    sh(
        &env,
        "related_items
         document_tree tree && rsync -aHAX tree/ A/$first/doc/tree/
         ln -s ../../../../../$second/doc/x A/$first/doc/next
         mkdir B/example.org
         rsync -aHAX --delete A/example.org/ B/example.org/",
    );
    // MooseFS gives a directory another time when something in it gets its rights, after rsync has set it: a second run sets
    // it again there.
    sh(
        &env,
        "reread() { find \"$@\" -exec stat --cached=never {} + > /dev/null; }
         rsync -aHAX tree/ native/; reread native; native=$(rsync -aHAXi tree/ native/)
         reread A.store/col B.store/col A/example.org B/example.org
         second=$(rsync -aHAXi --delete A/example.org/ B/example.org/)
         if [[ $native != '' ]]; then second=$(grep -v '^[.]d[.][.]t[.]' <<< \"$second\" || true); fi; test \"$second\" = ''
         reread B.store/col B/example.org",
    );
    prints(
        &env,
        "rsync -aHAXni --delete A/example.org/ B/example.org/",
        "",
    );
    prints(
        &env,
        "rsync -aHAXni --delete --checksum A/example.org/ B/example.org/",
        "",
    );
    prints(
        &env,
        "diff -r --no-dereference -x pipe A/example.org B/example.org",
        "",
    );
    // Both with A's service item, B with its own besides.
    prints(
        &env,
        "find A -name .ibi | wc -l; find B -name .ibi | wc -l",
        "16\n17",
    );
    prints(
        &env,
        "ibifs ls A.store | wc -l; ibifs ls B.store | wc -l",
        "16\n17",
    );
    prints(&env, "ibifs ls B.store --state Copy | wc -l", "16");
    prints(
        &env,
        "(cd A && du -sk . && du -sb . && find . -printf '%P %y %s\\n' | LC_ALL=C sort | md5sum)",
        &sh(
            &env,
            "cd A.store/col && du -sk . && du -sb . && find . -printf '%P %y %s\\n' | LC_ALL=C sort | md5sum",
        ),
    );
    prints(&env, "tar -C A -cf - . | tar -t | grep -c '/\\.ibi$'", "16");
    sh(&env, "ibifs umount A; ibifs umount B");
    prints(
        &env,
        "ibifs fsck A.store | tail -n 1; ibifs fsck B.store | tail -n 1",
        "16 items, 0 findings\n17 items, 0 findings",
    );
}

/// A removed item leaves a tombstone; its name answers nothing and is never minted again, not even
/// with the rebuilt index; it comes back from a copy, as the original that it was.
#[test]
pub fn a_removed_item_comes_back_as_the_original_it_was() {
    let env = TestEnv::new().with_a().with_b();
    sh(
        &env,
        "related_items
         echo ibip=$(ibip A/$first) >> vars
         copied_by $first
         rm -r A/$first",
    );
    let is_gone = "for path in A/$first A/$ibip A/$(upper $first) A/$(lower $ibip) A/$first! A/$ibip: \
        A/$first/doc; do
            stat \"$path\" 2>&1 | grep -o 'No such file or directory' || true
        done | sort | uniq -c | tr -s ' '
        ibifs show --json --store A.store $first | grep '\"state\"\\|\"timestamp\"' | sed 's/20.*Z/T/'
        ls A/${first%/*} | grep -c -x -F ${first##*/} || true";
    let gone =
        " 7 No such file or directory\n  \"state\": \"Deleted\",\n  \"timestamp\": \"T\",\n0";
    prints(&env, is_gone, gone);
    let mint_many = "for i in $(seq 60); do ibifs mint A; done > minted.$1
        grep -c -x -F -e $first -e $ibip minted.$1 || true
        sort minted.* | uniq -d | wc -l";
    prints(&env, &format!("set -- one; {mint_many}"), "0\n0");
    let reindexed =
        "ibifs umount A; lose_index A.store; ibifs reindex A.store >&2; ibifs mount A.store A";
    sh(&env, reindexed);
    prints(&env, is_gone, gone);
    prints(&env, &format!("set -- two; {mint_many}"), "0\n0");
    sh(&env, "cp -a B/$first A/${first%/*}/");
    prints(&env, "state A/$first", "Original");
    prints(
        &env,
        "rep A/$ibip; echo; cat A/$ibip/doc/x",
        &sh(&env, "echo $first; echo first"),
    );
    prints(
        &env,
        "readlink A/$first! A/$ibip!",
        &sh(&env, "printf '%s\\n' ../../../$second ../$(ibip A/$second)"),
    );
    prints(&env, "diff -r A/$first B/$first", "");
    prints(&env, "ibifs ls A.store --state Deleted | wc -l", "0");
    // The same by the other name: removed and brought back by the IBIp.
    sh(
        &env,
        "rm -r A/$ibip && test ! -e A/$first && cp -a B/$ibip A/${ibip%/*}/",
    );
    prints(
        &env,
        "state A/$first; echo; rep A/$ibip",
        &sh(&env, "echo Original; echo $first"),
    );
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// The tree is the truth: without relations.sqlite3, `ibifs reindex` brings every answer back, of
/// originals, copies, removed items, aliases and relations in both directions.
#[test]
fn every_answer_is_the_same_with_a_rebuilt_index() {
    let env = TestEnv::new().with_a().with_b();
    sh(
        &env,
        "related_items
         echo '@book{k, title = {The Report}, author = {Ana Silva}, year = 2009}' > A/$meta/doc/@reference.bib
         echo 'title: A text' > A/$second_pt_meta_pt:
         setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/$first
         setfattr -n user.ibi.language -v en A/$first
         setfattr -n user.ibi.target -v 'a report.pdf' A/$first
         mkdir B/example.org && rsync -aHAX --delete A/example.org/ B/example.org/
         french=$(ibifs mint B --translation-of $first --lang fr | head -n 1)
         echo french=$french >> vars
         copied_by $pt_meta_pt
         rm -r A/$pt_second_meta_pt B/$second_meta_pt
         mkdir -p A/example.net/archive-b && rsync -aHAX B/example.net/ A/example.net/
         answers A A.store > A.before; answers B B.store > B.before",
    );
    // The files to be compared are not empty.
    prints(
        &env,
        "grep -c '^Copy' A.before; grep -c '^Copy' B.before; grep -c '^Deleted' A.before B.before",
        "2\n15\nA.before:1\nB.before:1",
    );
    prints(
        &env,
        "grep \"^$first+(fr) \" B.before",
        &sh(&env, "echo \"$first+(fr) ../../../$french\""),
    );
    sh(
        &env,
        "for X in A B; do
             ibifs umount $X; lose_index $X.store
             ibifs reindex $X.store; ibifs mount $X.store $X
             answers $X $X.store > $X.after
         done",
    );
    prints(&env, "diff A.before A.after; diff B.before B.after", "");
    sh(&env, "ibifs umount A; ibifs umount B");
    prints(
        &env,
        "for X in A B; do ibifs fsck $X.store | grep -v '^removed-target: ' | sed 's/.* items, .*/all/'; done",
        "all\nall",
    );
}
