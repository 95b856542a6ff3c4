//! Modifiers: relations are declared and taken back in every way that a shell user would try, each
//! seen at once by all others, and metadata are read and written as plain files.

use crate::support::TestEnv;

/// Functions that the scripts here share.
const TOOLS: &str = r#"
# Mints in the mount $1 and notes the rep as the variable $2; its file doc/x says the same.
item() {
    declare -g "$2=$(ibifs mint "$1" | head -n 1)"
    echo "$2=${!2}" >> vars
    echo "$2" > "$1/${!2}/doc/x"
}
# Sets what the functions below speak of: sign, attribute, option, the pair and its inverse.
kind() {
    case $1 in
    edition) sign='!' attribute=nextedition option=--next-edition inverse=editionof ;;
    translation) sign='+(pt)' attribute=translation.pt option='--lang pt --translation' inverse=translationof ;;
    metadata) sign=: attribute=metadata option=--metadata inverse=metadataof ;;
    esac
    pair="ibi.$attribute" relation=$attribute
    if [ "$1" = translation ]; then pair='ibi.translation(pt)' relation='translation(pt)'; fi
    ibip=$(ibip "A/$one")
}
names_of() { echo "{rep $1 ibip $(ibip "A/$1")}"; }
seen() { test "$2" = "$3" || { echo "$1: '$2' is not '$3'" >&2; exit 1; }; }
# All answers say that $one is related to the item $1.
all_see() {
    seen rep-tree "$(readlink "A/$one$sign")" "../../../$1"
    seen ibip-tree "$(readlink "A/$ibip$sign")" "../$(ibip "A/$1")"
    seen content "$(cat "A/$one$sign/doc/x")" "$(cat "A/$1/doc/x")"
    seen attribute "$(getfattr --absolute-names --only-values -n "user.ibi.$attribute" "A/$one")" "$1"
    seen inverse "$(getfattr --absolute-names --only-values -n "user.ibi.$inverse" "A/$1")" "$one"
    seen show "$(ibifs show "A/$one" | grep -F "$relation " | tr -s ' ')" "$relation $1"
    seen pair "$(grep -F "$pair " "A/$one/.ibi")" "$pair $(names_of "$1")"
    seen inverse-pair "$(grep -F "ibi.$inverse " "A/$1/.ibi")" "ibi.$inverse $(names_of "$one")"
    seen disk "$(cat "A.store/col/$one/.ibi" "A.store/col/$1/.ibi")" "$(cat "A/$one/.ibi" "A/$1/.ibi")"
}
# Nothing says that $one is related to the item $1.
none_see() {
    if [ "$sign" = '!' ]; then
        seen rep-tree "$(readlink "A/$one!")" "../../../$one"
        seen ibip-tree "$(readlink "A/$ibip!")" "../$ibip"
    else
        seen rep-tree "$(stat "A/$one$sign" 2>&1 | grep -o 'No such file')" 'No such file'
        seen ibip-tree "$(stat "A/$ibip$sign" 2>&1 | grep -o 'No such file')" 'No such file'
    fi
    seen attribute "$(getfattr -n "user.ibi.$attribute" "A/$one" 2>&1 | grep -o 'No such attribute')" 'No such attribute'
    seen inverse "$(getfattr -n "user.ibi.$inverse" "A/$1" 2>&1 | grep -o 'No such attribute')" 'No such attribute'
    seen show "$(ibifs show "A/$one" | grep -c -F "$relation " || true)" 0
    seen pair "$(cat "A/$one/.ibi" "A/$1/.ibi" | grep -c -F -e "$pair " -e "ibi.$inverse " || true)" 0
    seen disk "$(cat "A.store/col/$one/.ibi" "A.store/col/$1/.ibi")" "$(cat "A/$one/.ibi" "A/$1/.ibi")"
}
with_pair() { grep -v -F "$pair " "A/$one/.ibi"; echo "$pair $(names_of "$1")"; }
offline() { ibifs umount A; "$@"; ibifs mount A.store A; }
test ! -e vars || . ./vars
set +o pipefail
"#;

/// Every way to declare that `$one` has `$1` as its relation `$sign`.
const DECLARING: [&str; 14] = [
    "ln -sfn ../../../$1 \"A/$one$sign\"",
    "ln -sfn ../$(ibip A/$1) \"A/$ibip$sign\"",
    "ln -sfn $PWD/A/$1 \"A/$one$sign\"",
    "ln -sfn ${1##*/} \"A/$one$sign\"",
    "setfattr -n user.ibi.$attribute -v $1 A/$one",
    "setfattr -n user.ibi.$attribute -v $(ibip A/$1) A/$ibip",
    "ibifs relate A/$one $option A/$1",
    "offline ibifs relate --store A.store $one $option $1",
    "with_pair $1 > new && cp new A/$one/.ibi",
    "with_pair $1 > new && mv new A/$ibip/.ibi",
    "with_pair $1 > A/$one/new && mv A/$one/new A/$one/.ibi",
    "with_pair $1 > new && rsync -I new A/$one/.ibi",
    "with_pair $1 > new && cat new > A/$one/.ibi",
    "sed -i -e \"/${pair//./\\.} /d\" -e \"1a $pair $(names_of $1)\" A/$one/.ibi",
];

/// Every way to take it back.
const REMOVING: [&str; 9] = [
    "rm \"A/$one$sign\"",
    "rm \"A/$ibip$sign\"",
    "unlink \"A/$one$sign\"",
    "setfattr -x user.ibi.$attribute A/$one",
    "ibifs unrelate A/$one ${option%--translation} $(test $sign != '+(pt)' || echo --translation)",
    "offline ibifs unrelate --store A.store $one ${option%--translation} \
     $(test $sign != '+(pt)' || echo --translation)",
    "grep -v -F \"$pair \" A/$one/.ibi > new && cp new A/$one/.ibi",
    "grep -v -F \"$pair \" A/$one/.ibi > A/$one/new && mv A/$one/new A/$one/.ibi",
    "sed -i \"/${pair//./\\.} /d\" A/$one/.ibi",
];

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}\n{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{TOOLS}\n{script}"), expected);
}

/// Declares, replaces and takes back one kind of relation in every way, and asks everybody after
/// each step; the sidecars were read before, so that no answer comes from a cache.
fn every_way(kind: &str) {
    let env = TestEnv::new().with_a();
    sh(&env, "item A one; item A two; item A three");
    let steps = DECLARING.len().max(REMOVING.len());
    for step in 0..steps {
        let declare = DECLARING[step % DECLARING.len()];
        let replace = DECLARING[(step + 5) % DECLARING.len()];
        let remove = REMOVING[step % REMOVING.len()];
        sh(
            &env,
            &format!(
                "kind {kind}
                 none_see $two; none_see $three
                 set -- $two; {declare}; all_see $two
                 set -- $three; {replace}; all_see $three
                 test $(grep -c 'ibi.{inverse} ' A/$two/.ibi) = 0
                 {remove}; none_see $two; none_see $three",
                inverse = match kind {
                    "edition" => "editionof",
                    "translation" => "translationof",
                    _ => "metadataof",
                }
            ),
        );
    }
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// The next edition can be declared, replaced and taken back by a link, an attribute, a command
/// mounted and offline, and a sidecar that is copied, moved, synced or edited in place.
#[test]
fn a_next_edition_is_declared_in_every_way() {
    every_way("edition");
}

/// So can a translation.
#[test]
fn a_translation_is_declared_in_every_way() {
    every_way("translation");
}

/// And metadata.
#[test]
fn metadata_are_declared_in_every_way() {
    every_way("metadata");
}

/// A plain `ln -s` at a free modifier's name declares a relation; `mkdir`, `mkdir -p` and `cp -a` of a directory mint
/// the related item at once.
#[test]
fn a_free_modifier_takes_a_link_or_a_directory() {
    let env = TestEnv::new().with_a();
    sh(&env, "item A one; item A two; item A three");
    sh(
        &env,
        "kind translation; ln -s ../../../$two \"A/$one$sign\"; all_see $two",
    );
    sh(
        &env,
        "kind metadata; ln -s ../$(ibip A/$three) \"A/$ibip$sign\"; all_see $three",
    );
    // A name that is taken stays as it is.
    prints(
        &env,
        "ln -sT ../../../$three \"A/$one+(pt)\" 2>&1 | grep -o 'File exists'; readlink \"A/$one+(pt)\"",
        &sh(&env, "echo 'File exists'; echo ../../../$two"),
    );
    sh(&env, "rm \"A/$one+(pt)\" A/$one:");
    for (sign, kind) in [("+(pt)", "translation"), (":", "metadata")] {
        for make in [
            "mkdir \"A/$one$sign\"",
            "mkdir \"A/$ibip$sign\"",
            "mkdir -p \"A/$one$sign/doc/deeper\"",
            "mkdir -p d/doc/more && echo text > d/doc/more/text && cp -a d \"A/$one$sign\"",
        ] {
            sh(
                &env,
                &format!(
                    "kind {kind}; none_see $two; {make}
                     new=$(readlink \"A/$one{sign}\"); new=${{new#../../../}}
                     mkdir -p A/$new/doc; echo new > A/$new/doc/x
                     all_see $new
                     test $(state A/$new) = Original
                     ls \"A/$one{sign}/doc\" > listed
                     rm \"A/$one{sign}\"; test -d A/$new; none_see $new"
                ),
            );
        }
        prints(&env, "cat listed", "more\nx");
    }
    // The last edition always has a name: the item's own.
    prints(
        &env,
        "mkdir A/$one! 2>&1 | grep -o 'File exists'",
        "File exists",
    );
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// Editions never go in a circle, an item is not its own relation, a target must name an item.
#[test]
fn what_makes_no_sense_is_refused() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "item A one; item A two; item A three; ln -sfn ../../../$two A/$one!; ln -sfn ../../../$three A/$two!",
    );
    for (script, complaint) in [
        (
            "ln -sfn ../../../$one A/$three!",
            "Too many levels of symbolic links",
        ),
        (
            "ln -sfn ../../../$one A/$one!",
            "Too many levels of symbolic links",
        ),
        (
            "setfattr -n user.ibi.nextedition -v $one A/$two",
            "Too many levels of symbolic links",
        ),
        ("ln -sfn nowhere A/$one!", "Invalid argument"),
        ("ln -s /etc/passwd A/$one:", "Invalid argument"),
        ("ln -s ../../../$two \"A/$one+\"", "Invalid argument"),
        ("ln -s ../../../$two \"A/$one!+\"", "Invalid argument"),
        (
            "ln -s ../../../$two \"A/$one:(marc21)\"",
            "Invalid argument",
        ),
        ("ln -s ../../../$two A/$one-x", "Operation not permitted"),
        ("rm A/$three!", "No such file"),
    ] {
        let output = env.run(&format!("{TOOLS}\n{script}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "should be refused: {script}");
        assert!(said.contains(complaint), "{script}\n{said}");
    }
    env.exits(
        &format!("{TOOLS}\nibifs relate A/$two --next-edition A/$one"),
        4,
    );
    prints(
        &env,
        "readlink A/$one! A/$two! A/$three!",
        &sh(
            &env,
            "printf '%s\\n' ../../../$three ../../../$three ../../../$three",
        ),
    );
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// One item may be the translation into two languages of another: each name leads to it, and each is
/// taken back by itself.
#[test]
fn one_item_is_the_translation_into_two_languages() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; mint A both > both; cd A/$(dirname $(< one)); one=$(basename $(< ../../../../one))
        ln -s ../../../$(< ../../../../both) $one'+(en)'; ln -s ../../../$(< ../../../../both) $one'+(pt)'
        test $one'+(en)' -ef $one'+(pt)'; test \"$(readlink $one'+(pt)')\" = ../../../$(< ../../../../both)
        rm $one'+(en)'; no readlink $one'+(en)'; readlink $one'+(pt)'; rm $one'+(pt)'; no readlink $one'+(pt)'");
}

/// `+` alone follows the mount's preferences, else the user's, else the item itself; `pt` is met by
/// `pt-BR`, an exact match is better, `pt-BR` is met by itself alone.
#[test]
fn the_reader_s_languages_choose_the_translation() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "item A one; item A brazil; item A french; item A english
         setfattr -n user.ibi.language -v es A/$one
         ln -s ../../../$french \"A/$one+(fr)\"; ln -s ../../../$brazil \"A/$one+(pt-BR)\"
         ln -s ../../../$english \"A/$one+(en)\"",
    );
    let remounted = |how: &str, expected: &str| {
        prints(
            &env,
            &format!(
                "ibifs umount A; {how} A.store A
                 for from in one french brazil; do cat \"A/${{!from}}+/doc/x\"; done"
            ),
            &format!("{expected}\n{expected}\n{expected}"),
        );
    };
    remounted("ibifs mount -o lang=pt-BR,pt,en", "brazil");
    remounted("ibifs mount -o lang=pt,en", "brazil");
    remounted("ibifs mount -o lang=pt-PT,en,ro", "english");
    remounted("ibifs mount -o lang=de:en", "english");
    remounted("ibifs mount -o lang=es", "one");
    remounted("LANGUAGE=pt_BR:en ibifs mount", "brazil");
    remounted(
        "LANGUAGE= LC_ALL= LC_MESSAGES=fr_FR.UTF-8 LANG=en_US.UTF-8 ibifs mount",
        "french",
    );
    remounted(
        "LANGUAGE= LC_ALL= LC_MESSAGES= LANG=en_US.UTF-8 ibifs mount",
        "english",
    );
    remounted("LANGUAGE=pt_BR ibifs mount -o lang=en", "english");
    // Nothing fits: the item itself, or any translation if its language is not known.
    prints(
        &env,
        "ibifs umount A; ibifs mount -o lang=ja A.store A; cat A/$one+/doc/x A/$french+/doc/x
         setfattr -x user.ibi.language A/$one; test $(cat A/$one+/doc/x) != one && echo another
         setfattr -n user.ibi.language -v es A/$one",
        "one\nfrench\nanother",
    );
    prints(
        &env,
        "cat \"A/$one+(pt)/doc/x\" \"A/$french+(pt)/doc/x\" \"A/$french+(es)/doc/x\"",
        "brazil\nbrazil\none",
    );
    prints(
        &env,
        "stat \"A/$one+(pt-PT)\" 2>&1 | grep -o 'No such file'",
        "No such file",
    );
    // An exact match is better than one that merely fits.
    sh(
        &env,
        "item A portuguese; ln -sfn ../../../$portuguese \"A/$one+(pt)\"",
    );
    prints(
        &env,
        "cat \"A/$one+(pt)/doc/x\" \"A/$one+(pt-BR)/doc/x\"",
        "portuguese\nbrazil",
    );
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// A translation here of another user's item is found from that item, survives its next rsync and
/// changes nothing in it; between two copies nothing can be declared.
#[test]
fn a_translation_of_another_users_item_survives_rsync() {
    let env = TestEnv::new().with_a().with_b();
    sh(
        &env,
        "item A one; item A two; mkdir B/example.org
         rsync -aHAX --delete A/example.org/ B/example.org/
         echo ours=$(ibifs mint B --translation-of B/$one --lang pt | head -n 1) >> vars; . ./vars
         echo ours > B/$ours/doc/x",
    );
    let found = "readlink \"B/$one+(pt)\" \"B/$(ibip B/$one)+(pt)\"
        getfattr --absolute-names --only-values -n user.ibi.translation.pt B/$one; echo
        grep -F ibi.translationof B/$ours/.ibi
        cmp A/$one/.ibi B/$one/.ibi && echo same";
    let expected = sh(
        &env,
        "printf '%s\\n' ../../../$ours ../$(ibip B/$ours) $ours \
         \"ibi.translationof {rep $one ibip $(ibip A/$one)}\" same",
    );
    prints(&env, found, &expected);
    prints(
        &env,
        "rsync -aHAXni --delete A/example.org/ B/example.org/",
        "",
    );
    sh(
        &env,
        "echo changed > A/$one/doc/x; setfattr -n user.ibi.language -v en A/$one
         rsync -aHAX --delete A/example.org/ B/example.org/",
    );
    prints(&env, found, &expected);
    prints(
        &env,
        "readlink \"B/$ours+(en)\"",
        &sh(&env, "echo ../../../$one"),
    );
    for refused in [
        "ln -sfn ../../../$two B/$one!",
        "ln -s ../../../$two \"B/$one+(fr)\"",
        "setfattr -n user.ibi.metadata -v $two B/$one",
    ] {
        let output = env.run(&format!("{TOOLS}\n{refused}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("Operation not permitted"),
            "{refused}\n{said}"
        );
    }
    env.exits(
        &format!("{TOOLS}\nibifs relate B/$one --next-edition B/$two"),
        4,
    );
    sh(
        &env,
        "ibifs umount B; lose_index B.store; ibifs reindex B.store; ibifs mount B.store B",
    );
    prints(&env, found, &expected);
    sh(
        &env,
        "ibifs umount A; ibifs umount B; ibifs fsck A.store; ibifs fsck B.store",
    );
}

/// `<ibi>:` of an item whose metadata are no item is a text file: written, edited, copied and
/// removed like any other, the same file in both trees.
#[test]
fn a_metadata_text_is_edited_like_any_file() {
    let env = TestEnv::new().with_a();
    sh(&env, "item A one; echo ibip=$(ibip A/$one) >> vars");
    prints(
        &env,
        "cat A/$one: 2>&1 | grep -o 'No such file'",
        "No such file",
    );
    for (write, expected) in [
        ("echo 'title: By cat' > t; cat t > A/$one:", "title: By cat"),
        (
            "echo 'creator: Ana' >> A/$ibip:",
            "title: By cat\ncreator: Ana",
        ),
        ("sed -i s/cat/sed/ A/$one:", "title: By sed\ncreator: Ana"),
        (
            "sed -i.bak s/sed/dots/ A/$ibip: || sed -i s/sed/dots/ A/$ibip:",
            "title: By dots\ncreator: Ana",
        ),
        ("echo 'title: By cp' > t; cp t A/$one:", "title: By cp"),
        (
            "echo 'title: By cp -f' > t; cp --remove-destination t A/$ibip:",
            "title: By cp -f",
        ),
        (
            "echo 'title: By rsync' > t; rsync -I t A/$one:",
            "title: By rsync",
        ),
        (
            "echo 'title: Again by rsync' > t; rsync -a --inplace t A/$ibip:",
            "title: Again by rsync",
        ),
        (
            "vim -es -u NONE -c 's/Again by rsync/By vim/' -c wq A/$one:",
            "title: By vim",
        ),
        (
            "vim -es -u NONE --cmd 'set backup' -c 's/vim/vim with backup/' -c wq A/$ibip:",
            "title: By vim with backup",
        ),
        (
            "printf 'title: By dd' | dd of=A/$one: status=none; echo >> A/$one:",
            "title: By dd",
        ),
        (
            "printf '1s/dd/ed/\\nw\\nq\\n' | ed -s A/$one:",
            "title: By ed",
        ),
    ] {
        // Read through the other tree first, so that an old page would be seen.
        prints(
            &env,
            &format!(
                "cat A/$one: A/$ibip: > /dev/null 2>&1 || true
                {write}
                cat A/$one:; cmp A/$one: A/$ibip: && cmp A/$one: \"A/$one?GetMetadata\""
            ),
            expected,
        );
    }
    prints(
        &env,
        "stat -c %F A/$one: A/$ibip:",
        "regular file\nregular file",
    );
    // A file is no relation, and what was staged beside it is not listed.
    prints(
        &env,
        "ibifs show A/$one | grep -c '^metadata ' || true",
        "0",
    );
    prints(
        &env,
        "find A A/$ibip/.. -name '*:*' -o -name '.*sw?' -o -name 'sed*' | wc -l",
        "0",
    );
    sh(&env, "rm A/$ibip:");
    prints(
        &env,
        "cat A/$one: 2>&1 | grep -o 'No such file'",
        "No such file",
    );
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// `<ibi>:(oai_dc)` is always there, valid against the schema of OAI-PMH, with both identifiers, the
/// persistent URL, date, type, and what the metadata item or text, the language and the relations say.
#[test]
fn oai_dc_is_always_there_and_valid() {
    let env = TestEnv::new().with_a();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema/oai_dc.xsd");
    let titled = "<dc:title>The Report";
    let silva = "<dc:creator>Silva, Ana";
    for (name, deposit, expected) in [
        (
            "bibtex",
            "mkdir -p A/$item:/doc; echo '@book{k, title = {The Report}, author = {Silva, Ana}, year = 2009}' \
             > A/$item:/doc/@reference.bib",
            vec![titled, silva, "<dc:date>2009<"],
        ),
        (
            "refer",
            "mkdir -p A/$item:/doc; printf '%%0 Book\\n%%T The Report\\n%%A Silva, Ana\\n%%D 2009\\n' > A/$item:/doc/@refer.txt",
            vec![titled, silva, "<dc:date>2009<"],
        ),
        (
            "xml",
            "mkdir -p A/$item:/doc; echo '<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>The Report &lt;1&gt;</dc:title>\
             <dc:creator>Silva, Ana</dc:creator><dc:type>Text</dc:type></oai_dc:dc>' > A/$item:/doc/oai_dc.xml",
            vec![titled, silva, "<dc:type>Text<"],
        ),
        (
            "text",
            "printf 'title: The Report & more\\ncreator: Silva, Ana\\n' > A/$item:",
            vec!["<dc:title>The Report &amp; more<", silva],
        ),
        ("nothing", "true", vec!["<dc:type>Collection<"]),
    ] {
        sh(
            &env,
            &format!(
                "item A {name}; item A next; item A translated; item=${name}
                 {deposit}
                 setfattr -n user.ibi.language -v en A/$item
                 ln -sfn ../../../$next A/$item!; ln -s ../../../$translated \"A/$item+(pt)\""
            ),
        );
        let both = &format!(
            "item=${name}; cat \"A/$item:(oai_dc)\" > {name}.xml
             cmp {name}.xml \"A/$(ibip A/$item):(oai_dc)\"; cmp {name}.xml \"A/$item?GetMetadata(oai_dc)\"
             stat -c '%F %A' \"A/$item:(oai_dc)\"
             test $(stat -c %s \"A/$item:(oai_dc)\") = $(stat -c %s {name}.xml)"
        );
        prints(&env, both, "regular file -r--r--r--");
        sh(
            &env,
            &format!("xmllint --noout --nonet --schema '{schema}' {name}.xml"),
        );
        let xml = sh(&env, &format!("cat {name}.xml"));
        let names = sh(
            &env,
            &format!(
                "printf '%s\\n' \"<dc:identifier>${name}<\" \"<dc:identifier>$(ibip A/${name})<\" \
                 \"<dc:identifier>http://archive-a.example.org/$(ibip A/${name})<\" \
                 \"<dc:relation>http://archive-a.example.org/$(ibip A/$next)<\" \
                 \"<dc:relation>http://archive-a.example.org/$(ibip A/$translated)<\" '<dc:date>' '<dc:language>en<' '<dc:type>'"
            ),
        );
        for part in names.lines().chain(expected) {
            assert!(xml.contains(part), "{name}: no {part} in\n{xml}");
        }
        prints(
            &env,
            &format!("stat \"A/${name}:(marc21)\" 2>&1 | grep -o 'No such file'"),
            "No such file",
        );
        prints(
            &env,
            &format!("echo x 2> /dev/null > \"A/${name}:(oai_dc)\" || echo refused"),
            "refused",
        );
    }
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// The oai_dc follows each change of the text, the relations and the metadata item.
#[test]
fn oai_dc_follows_every_change() {
    let env = TestEnv::new().with_a();
    sh(&env, "item A one; item A two");
    let title = "for i in 1 2; do grep -o '<dc:title>[^<]*' \"A/$one:(oai_dc)\"; done | uniq";
    sh(&env, "echo 'title: First' > A/$one:");
    prints(&env, title, "<dc:title>First");
    sh(&env, "echo 'title: Other' > A/$one:");
    prints(&env, title, "<dc:title>Other");
    sh(
        &env,
        "rm A/$one: && ln -s ../../../$two A/$one: && echo '@misc{k, title = {Item}}' > A/$two/doc/a.bib",
    );
    prints(&env, title, "<dc:title>Item");
    sh(&env, "echo '@misc{k, title = {Thing}}' > A/$two/doc/a.bib");
    prints(&env, title, "<dc:title>Thing");
    sh(&env, "rm A/$one:");
    prints(&env, title, "");
}

/// `?GetFileList` lists the item's files and nothing that ibifs keeps beside them, of the item or of
/// what other verbs lead to, wherever it stands among them.
#[test]
fn a_file_list_has_the_item_s_files() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "item A one; item A two; ln -sfn ../../../$two A/$one!
         mkdir -p A/$one/doc/deep/er A/$one/doc/empty; echo > \"A/$one/doc/deep/er/a b [c] @é\"
         echo > A/$one/doc/$'new\\nline%'; echo 'title: T' > A/$one:; ln -s x A/$one/doc/link",
    );
    prints(
        &env,
        "LC_ALL=C sort \"A/$one?GetFileList\"",
        "doc/deep/er/a b [c] @é\ndoc/link\ndoc/new%0Aline%25\ndoc/x",
    );
    prints(
        &env,
        "cat \"A/$(ibip A/$one)?GetFileList+GetLastEdition\" \"A/$one?GetLastEdition+GetFileList\"",
        "doc/x\ndoc/x",
    );
    sh(&env, "touch A/$one/doc/y");
    prints(&env, "grep -c doc/y \"A/$one?GetFileList\"", "1");
    prints(
        &env,
        "stat \"A/$one?GetFileList+GetTranslation\" 2>&1 | grep -o 'No such file'",
        "No such file",
    );
}

/// `!` changes the moment that a new edition is declared, however often it was asked before, and
/// while programs keep asking.
#[test]
fn no_memory_of_a_modifier_outlives_its_truth() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "item A one; item A last
         ibip=$(ibip A/$one)
         # Whatever comes of it, whoever asks in the background must end.
         trap 'touch stop; wait' EXIT
         (while test ! -e stop; do readlink A/$one! A/$ibip!; cat A/$one!/doc/x; done > asked 2>&1) &
         for i in $(seq 25); do
             for path in A/$one! A/$ibip! A/$last! \"A/$one?GetLastEdition\"; do
                 stat -L \"$path/doc/x\" > /dev/null; readlink \"$path\" > /dev/null
                 test $(cat \"$path/doc/x\") = $(cat A/$last/doc/x) || echo \"old $path\"
             done
             before=$last
             item A last; echo $i > A/$last/doc/x
             test $i = 1 && before=$one
             ln -sfn ../../../$last A/$before!
             test $(readlink A/$one!) = ../../../$last
             test $(readlink A/$ibip!) = ../$(ibip A/$last)
             test $(cat A/$one!/doc/x) = $i
         done > complaints",
    );
    prints(&env, "grep -c . complaints || true", "3");
    prints(
        &env,
        "grep -c -v -e '^\\.\\./' -e '^[0-9]*$' -e one asked || true",
        "0",
    );
    // It goes back as quickly.
    prints(
        &env,
        "editions=$(ibifs ls A.store | wc -l); cat A/$one!/doc/x; rm A/$one!; cat A/$one!/doc/x; readlink A/$one!",
        &sh(&env, "printf '%s\\n' 25 one ../../../$one"),
    );
}

/// A related item that is not held here is a link that dangles and shows its name; it leads there as
/// soon as the item comes.
#[test]
fn a_link_to_an_item_not_held_here_shows_its_name() {
    let env = TestEnv::new().with_a().with_b();
    sh(&env, "item A one; item B theirs");
    sh(
        &env,
        "ln -sfn ../../../$theirs A/$one!
         ibifs relate --store A.store $one --metadata dpi.inpe.br/banon/1998/08.02.08.56
         setfattr -n user.ibi.translation.pt -v LK47B6W/362SFKH A/$one",
    );
    prints(
        &env,
        "readlink A/$one! A/$one: A/$(ibip A/$one): \"A/$one+(pt)\" \"A/$(ibip A/$one)+(pt)\"",
        &sh(
            &env,
            "printf '%s\\n' ../../../$theirs ../../../dpi.inpe.br/banon/1998/08.02.08.56 \
             ../dpi.inpe.br/banon/1998/08.02.08.56 ../../../LK47B6W/362SFKH ../LK47B6W/362SFKH",
        ),
    );
    for path in ["A/$one!", "A/$one:", "A/$one+(pt)"] {
        prints(
            &env,
            &format!("test -L \"{path}\" && test ! -e \"{path}\" && echo dangles"),
            "dangles",
        );
    }
    sh(
        &env,
        "mkdir -p A/${theirs%/*} && cp -a B/$theirs A/${theirs%/*}/",
    );
    prints(
        &env,
        "cat A/$one!/doc/x; readlink A/$(ibip A/$one)!",
        &sh(&env, "echo theirs; echo ../$(ibip B/$theirs)"),
    );
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// An older pair of names found in the wild is an alias: a path to the item like the others.
#[test]
fn an_alias_leads_to_the_item() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "item A one; item A two; ln -sfn ../../../$two A/$one!
         test ! -e A/6RPa7umaZ/UaJFT
         setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/$one",
    );
    prints(
        &env,
        "cat A/6RPa7umaZ/UaJFT/doc/x; cat A/6RPa7umaZ/UaJFT!/doc/x; rep A/6RPa7umaZ/UaJFT",
        &sh(&env, "echo one; echo two; echo $one"),
    );
    prints(
        &env,
        "readlink A/6RPa7umaZ/UaJFT",
        &sh(&env, "echo ../$(ibip A/$one)"),
    );
    // These pairs are case-sensitive.
    prints(
        &env,
        "ls A/6RPa7umaZ/uajft A/6rpa7umaz/UaJFT 2>&1 | grep -c 'No such file'",
        "2",
    );
    prints(
        &env,
        "grep alias A/$one/.ibi; ibifs show 6RPa7umaZ/UaJFT --store A.store | grep '^rep' | tr -s ' '",
        &sh(&env, "echo 'ibi.alias {6RPa7umaZ/UaJFT}'; echo rep $one"),
    );
    prints(&env, "find A -name 'UaJFT*' | wc -l", "0");
    sh(
        &env,
        "ibifs umount A; lose_index A.store; ibifs reindex A.store; ibifs mount A.store A",
    );
    prints(&env, "cat A/6RPa7umaZ/UaJFT/doc/x", "one");
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// Declaring a relation writes both items, and a stat of them shows the new times at once: a
/// recursive copy made now and one made in a minute find the same.
#[test]
fn the_times_of_a_related_item_are_not_old() {
    let env = TestEnv::new().with_a();
    sh(&env, "item A one; item A two");
    for declare in [
        "ln -sfn ../../../$two A/$one!",
        "rm A/$one!",
        "setfattr -n user.ibi.metadata -v $two A/$one",
        "grep -v metadata A/$one/.ibi > new; cp new A/$one/.ibi",
        "rm A/$one/.ibi",
    ] {
        prints(
            &env,
            &format!(
                "times() {{ stat -c %y $1/$one $1/$two $1/$one/.ibi $1/$two/.ibi; }}
                 times A > /dev/null; stat A/$(ibip A/$one) > /dev/null
                 {declare}
                 times A > a; times A.store/col > disk; diff a disk
                 test $(stat -c %Y A/$(ibip A/$one)) = $(stat -c %Y A/$one)"
            ),
            "",
        );
    }
}

/// A user who removes a sidecar and insists on making it again, as mv between filesystems, tar and
/// `cp --remove-destination` do, can; for all others it is never gone.
#[test]
fn a_sidecar_is_replaced_by_tools_that_remove_it_first() {
    let env = TestEnv::new().with_a();
    sh(&env, "item A one; item A two; cp A/$one/.ibi bare");
    for replace in [
        "mv new A/$one/.ibi",
        "cp --remove-destination new A/$one/.ibi",
        "mkdir d && cp new d/.ibi && tar -C d -cf t.tar .ibi && tar -C A/$one -xf t.tar && rm -r d",
        "perl -e '$p = shift; unlink $p or die;
         use Fcntl; sysopen(F, $p, O_CREAT | O_EXCL | O_WRONLY) or die \"$!\"; die unless -e $p;
         unlink $p; open(N, \"new\"); open(F, \">\", \"${p}x\");
         print F <N>; close F; rename \"${p}x\", $p or die; die unless -e $p' A/$one/.ibi",
    ] {
        sh(
            &env,
            &format!(
                "kind metadata; none_see $two; with_pair $two > new; cp new kept; {replace}
                 cmp kept A/$one/.ibi; all_see $two
                 cp bare A/$one/.ibi; none_see $two"
            ),
        );
    }
    sh(&env, "rm A/$one/.ibi; cmp bare A/$one/.ibi");
    sh(&env, "ibifs umount A; ibifs fsck A.store");
}

/// Two items may have the same next edition, translation or metadata, which says so of one of them;
/// where that one takes it back, it says so of the other.
#[test]
fn what_two_items_share_says_so_of_one_of_them() {
    for (modifier, pair) in [
        ("!", "ibi.editionof"),
        ("+(pt)", "ibi.translationof"),
        (":", "ibi.metadataof"),
    ] {
        let env = TestEnv::new().with_a();
        sh(
            &env,
            &format!(
                "says() {{ test \"$(grep '^{pair} ' A/$three/.ibi)\" = \"{pair} {{rep $1 ibip $(ibip A/$1)}}\"; }}
                 sound() {{ ibifs fsck A.store > found; grep -q ' 0 findings$' found; }}
                 item A one; item A two; item A three
                 ln -sfn ../../../$three 'A/'$one'{modifier}'; says $one
                 ln -sfn ../../../$three 'A/'$two'{modifier}'; says $two; sound
                 rm 'A/'$two'{modifier}'; says $one; sound
                 ln -sfn ../../../$three 'A/'$two'{modifier}'; says $two
                 ln -sfn ../../../$one 'A/'$two'{modifier}'; says $one; sound
                 grep -v '^ibi\\.[ntm].* {{rep '$three A/$one/.ibi > new; cp new A/$one/.ibi
                 no grep -q {pair} A/$three/.ibi; sound"
            ),
        );
    }
}

/// An old sidecar that is brought back claims what it said then: it is accepted, what the other item
/// says of itself counts there, and fsck reports that the two differ.
#[test]
fn an_old_sidecar_claims_what_it_said() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "item A one; item A two; item A three
         ln -sfn ../../../$two A/$one!; cp A/$two/.ibi old
         ln -sfn ../../../$three A/$one!; no grep -q editionof A/$two/.ibi
         cp old A/$two/.ibi; cmp old A/$two/.ibi",
    );
    prints(&env, "cat A/$one!/doc/x", "three");
    prints(
        &env,
        "{ ibifs fsck A.store || true; } | cut -d: -f1",
        "relations-differ\n4 items, 1 finding",
    );
    sh(
        &env,
        "setfattr -x user.ibi.editionof A/$two; no grep -q editionof A/$two/.ibi",
    );
    prints(&env, "cat A/$one!/doc/x", "three");
    sh(&env, "ibifs fsck A.store | grep ' 0 findings$'");
}

/// `<ibi>??` is the name that four of the five source documents print for the metadata of an item.
#[test]
fn two_question_marks_name_the_metadata() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "item A one; item A record; item A last; ln -s ../../../$record A/$one:; ln -sfn ../../../$last \"A/$one!\"
         for name in $one $(ibip A/$one); do test \"$(readlink \"A/$name??\")\" = \"$(readlink A/$name:)\"; done
         echo 'title: Map' > \"A/$last??\"; cmp A/$last: \"A/$one!??\"; grep -q Map A/$last/.ibi.metadata
         rm \"A/$last??\"; no cat A/$last:; no ls \"A/$one???\"",
    );
}
