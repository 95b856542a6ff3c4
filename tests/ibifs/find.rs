//! Searches by words of descriptions: the command, `.find` in the mount, and `/search`; what each user finds, and that
//! what is found follows each change.

mod texts;

use crate::http::served::{Fixture, Served};
use crate::support::{TestEnv, switch};

/// Items with descriptions, by names: tides, maps, banon.
fn library() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        describe() { printf 'title: %s\ncreator: %s\ndate: %s\nsubject: sea\n' "$2" "$3" "$4" > "A/$(< $1):"; }
        for name in tides maps banon; do mint A $name > $name; done
        describe tides 'Marés da Amazônia' 'Souza, Maria' 2009-02-16
        describe maps 'Rainfall maps' 'Banon, Gerald Jean Francis' 2011
        describe banon 'Notes on Banon' 'Lima, Ana' 2010/2012
    "#);
    env
}

/// `found QUERY...`: the names of the items that the command finds.
const FOUND: &str = r#"
found() { ibifs find --store A.store --json "$@" > found.json 2> why || test $? = 3; named < found.json; }
named() { jq -r '.[].rep' | while read -r rep; do grep -lx "$rep" tides maps banon; done | tr '\n' ' '; }
"#;

#[test]
fn items_are_found_by_words_and_fields() {
    let env = library();
    // Items of one rank may have either order: the seconds in a name make an item longer.
    env.prints(
        &format!(
            r#"{FOUND}
            found mares; found MARÉS amazonia; found banon; found creator:banon; found --creator banon --year 2011
            found year:2012; found --year 2009-2010 | sorted; found sea -- -rainfall | sorted; found 'rain*'; found '"maps rainfall"'; echo
            ibifs find rainfall --store A | sed "s;$(< maps);MAPS;"
            ibifs find sea --limit 1 --store A 2>&1 | tail -n 1
            ibifs show A/$(< maps) | grep title; ibifs ls --titles A | grep -c 'Rainfall maps$'; ibifs ls --titles A --json | jq -c '[.[].title | strings] | sort'
            "#
        ),
        "tides tides banon maps maps maps banon banon tides banon tides maps \n\
         MAPS  Rainfall maps  Banon, Gerald Jean Francis\n\
         ibifs: only the first 1 are shown; see --limit\n\
         title            Rainfall maps\n1\n[\"Marés da Amazônia\",\"Notes on Banon\",\"Rainfall maps\"]",
    );
    env.exits("ibifs find nothing-like-it --store A", 3);
    env.complains("ibifs find '\"' --store A", "has no word");
    // Most commands name the store first.
    env.complains(
        "ibifs find A nothing-like-it --store A",
        "name a store with '--store A'",
    );
    // It has words of items that not everybody may read.
    env.prints("stat -c %a A.store/search.sqlite3", "600");
    env.prints("ibifs umount A; ibifs fsck A.store", "4 items, 0 findings");
}

/// A year that is none would be a word that no item has, and so would a field.
#[test]
fn what_is_neither_a_year_nor_a_field_is_said() {
    let env = library();
    for year in ["abcd", "2009-", "-", "2009-x", "99999"] {
        let find = format!("ibifs find sea --year={year} --store A");
        env.exits(&find, 2);
        env.complains(&find, &format!("'{year}' is not a year"));
    }
    env.exits("ibifs find foo:bar --store A", 3);
    for query in ["foo:bar", "sea foo:bar", "'sea -foo:bar nothing'"] {
        let find = format!("ibifs find {query} --store A");
        env.complains(
            &find,
            "'foo' is not a field, so 'foo:' was searched for as a word; the fields are ",
        );
    }
    // A colon in a found text, and in an identifier, does not separate fields.
    env.sh("printf 'title: Ratio 3:4\\n' > A/$(< maps):; cat A/$(< maps):; ibifs find ratio --store A; ibifs find 3:4 --store A | grep Ratio");
    env.sh("! ibifs find creator:nothing-like-it --store A 2> why; ! grep 'not a field' why");
}

/// The items of an index that an older ibifs has made are found.
#[test]
fn items_of_an_older_index_are_found() {
    let env = library();
    env.prints(
        "ibifs umount A
         in_database A.store/relations.sqlite3 'DROP TABLE event; DROP TABLE event_item; DROP TABLE event_log; DROP INDEX item_with_life; ALTER TABLE item DROP COLUMN life; DROP TABLE content; DROP TABLE content_mark; DROP TABLE relation_change; DROP TABLE epoch; DROP INDEX item_by_change;
            DROP INDEX relation_by_rep_and_speaker; DROP INDEX relation_by_ibip_and_speaker; DROP INDEX relation_unspoken;
            ALTER TABLE relation DROP COLUMN speaker; ALTER TABLE item DROP COLUMN changed; PRAGMA user_version = 7'
         ibifs mount A.store A; ibifs find sea --store A | wc -l",
        "3",
    );
}

/// Each way in which a description can change is found at once.
#[test]
fn what_is_found_follows_changes() {
    let env = library();
    env.prints(
        &format!(
            r#"{FOUND}
            found rainfall; echo
            # By its name in the item, in place and by a rename; beside the item; removed.
            sed -i 's/Rainfall/Drought/' "A/$(< maps)/.ibi.metadata"; found drought; found rainfall; echo
            printf 'title: Wind\n' > new; cp new "A/$(< maps)/.ibi.metadata"; found wind; found drought; echo
            printf 'title: Storm\n' | tee "A/$(< maps):" > /dev/null; found storm; found wind; echo
            rm "A/$(< maps):"; found storm; echo
            # Copied with its sidecar by cp and by rsync, and changed without the mount.
            ibifs init B.store --host b.example.org > /dev/null; mkdir B; ibifs mount B.store B
            (cd A; cp -a --parents "$(< ../tides)" ../B/); rsync -aR "A/./$(< banon)" B/
            ibifs find amazonia --store B | wc -l; ibifs find notes --store B | wc -l
            ibifs umount B; sed -i 's/Notes/Words/' "B.store/col/$(< banon)/.ibi.metadata"; ibifs reindex B.store > /dev/null
            ibifs find words --store B.store | wc -l; ibifs find notes --store B.store | wc -l || true
            # An item that is removed, or becomes the metadata of another.
            found tides; rm -r "A/$(< tides)"; found amazonia; echo
            ibifs relate "A/$(< maps)" --metadata "A/$(< banon)"  > /dev/null; cp "A/$(< banon)/.ibi.metadata" "A/$(< banon)/doc/record.txt"
            found lima; echo
            "#
        ),
        "maps \nmaps \nmaps \nmaps \n\n1\n1\n1\n0\n\nmaps ",
    );
}

/// A description is found as soon as the program that wrote it has closed it, also if another one, here `sleep`, still has it
/// open: the kernel does not wait for the answer to the last close.
#[test]
fn a_description_is_found_when_it_was_closed() {
    let env = TestEnv::new().with_a();
    env.sh(
        "one=A/$(mint A one); finds() { ibifs find $1 --store A | grep -qF ${one#A/}; }; echo 'title: Maps' > $one:; finds maps
        exec 3>> $one:; sleep 1000 3>&3 & trap \"kill $!\" EXIT; finds maps; echo 'keywords: rainfall' >&3; exec 3>&-; finds rainfall",
    );
}

/// A user who may not enter the store finds through the mount what this user may list.
#[test]
fn users_find_through_the_mount() {
    let env = library();
    env.prints(
        r#"
        chmod 755 .; chmod 700 A.store "A/$(< maps)"
        as_user() { setpriv --reuid=60001 --regid=60001 --clear-groups "$@"; }
        as_user ibifs find sea --store A | wc -l; IBIFS_STORE=$PWD/A as_user ibifs find sea | wc -l
        ibifs find --store A sea | wc -l
        as_user ibifs find --store A amazonia | cut -d ' ' -f 3- | sed 's/  */ /'
        as_user ibifs find --store A --creator 'lima ana' --year 2000-2020 --json sea | jq -r '.[].title'
        as_user ibifs find --store A --limit 1 sea 2>&1 | tail -n 1
        { as_user ibifs find --store A nothing/such 2>&1 || true; }
        "#,
        "2\n2\n3\nMarés da Amazônia  Souza, Maria\nNotes on Banon\n\
         ibifs: only the first 1 are shown; see --limit\nibifs: no item has all of these words",
    );
}

/// `.find` has directories of links, nested, for every program; each user finds what this user could list.
#[test]
fn the_tree_has_directories_of_what_is_found() {
    let env = library();
    env.sh("chmod 755 . A.store; chmod 700 \"A/$(< maps)\"");
    env.prints(
        r#"
        cd A
        ls .find | wc -l; ls -a | grep -c find || true
        ls .find/amazonia | sed "s;$(ibip $(< ../tides) | tr / _);TIDES;"
        readlink .find/amazonia/* | sed "s;$(< ../tides);TIDES;"
        ls -L .find/creator:banon/year:2011/*/.ibi > /dev/null && cat .find/sea/*/.ibi.metadata | grep -c ^title
        ls .find/sea | wc -l; ls .find/sea/year:2010 | wc -l; ls '.find/"maps rainfall"' | wc -l
        setpriv --reuid=60001 --regid=60001 --clear-groups ls .find/sea | wc -l
        setpriv --reuid=60001 --regid=60001 --clear-groups ls .find/rainfall | wc -l
        # Found by name as by listing; what another query finds is not here.
        link=$(ls .find/rainfall); test -e ".find/rainfall/$link"; ! test -L ".find/amazonia/$link"
        ! setpriv --reuid=60001 --regid=60001 --clear-groups test -L ".find/rainfall/$link"
        find .find/sea -type l | wc -l; cp -rL .find/amazonia ../copied; ls ../copied/*/.ibi | wc -l
        ! ls .find/.git 2> /dev/null; ! ls .find/-- 2> /dev/null
        "#,
        "0\n0\nTIDES\n../../TIDES\n3\n3\n1\n0\n2\n0\n3\n1",
    );
    for (script, why) in [
        ("mkdir A/.find/new", "Operation not permitted"),
        ("mkdir A/.find/sea/new", "File exists"),
        ("touch A/.find/sea/x/y", "Operation not permitted"),
        ("rm A/.find/sea/*", "Operation not permitted"),
        ("mv A/.find/sea A/.find/tides", "not permitted"),
        ("chmod 700 A/.find/sea", "Operation not permitted"),
        ("ln -s x A/.find/sea/l", "not permitted"),
    ] {
        let output = env.run(script);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && !said.is_empty(),
            "{script}: {said} ({why})"
        );
    }
    let long = "a/".repeat(17);
    env.complains(&format!("ls A/.find/{long}"), "File name too long");
    env.prints("ls A/.find/rainfall | wc -l", "1");
}

/// `/search` finds what the public may read, also when permissions have changed since it was read.
#[test]
fn readers_find_what_is_public() {
    let env = library();
    env.sh(r#"chmod 700 "A/$(< maps)""#);
    let served = Served::start(&env, "A.store");
    let ask = r#"
        ask() { curl -sS --globoff -G "$U/search" "$@"; }
        json() { ask -H 'Accept: application/json' "$@"; }
        titles() { json --data-urlencode "q=$1" | jq -c '[.items[].title] | sort'; }
    "#;
    Fixture::new(env, served, ask).prints(
        r#"
        titles sea; titles rainfall; titles amazônia; titles 'creator:lima year:2010'; titles ' '; titles '") OR NEAR('
        json -d by=year | jq -c '[.values[] | [.value, .items]]'; json -d by=creator | jq -r '.values[0].url'
        ask -d q=amazonia > body; xmllint --noout body; grep -c "href=\"/$(< tides)?page\"" body
        ask --data-urlencode 'q="><script>' > body; xmllint --noout body; grep -c '<script' body || true
        ask > body; xmllint --noout body; grep -o 'name="q"' body; curl -sS $U/ | grep -o 'action="/search"'
        chmod 700 "A/$(< banon)"; titles banon
        printf 'title: New\n' > "A/$(< tides):"; titles new; titles amazonia
        json -d q=new -d page=99999999999999999999 | jq -c '.items | length'; json -d q=new -d page=3 | jq -c .items
        stat -c %a A.store/search-public.sqlite3; grep -q -a -i rainfall A.store/search-public.sqlite3* || echo none
        "#,
        "[\"Marés da Amazônia\",\"Notes on Banon\"]\n[]\n[\"Marés da Amazônia\"]\n[\"Notes on Banon\"]\n[]\n[]\n\
         [[\"2009\",1],[\"2010\",1],[\"2012\",1]]\n/search?q=creator:%22Lima,%20Ana%22\n1\n0\nname=\"q\"\naction=\"/search\"\n\
         []\n[\"New\"]\n[]\n1\n[]\n600\nnone",
    );
}

/// A store of many items: a query takes no more than some milliseconds, and the index keeps up with minting.
#[test]
fn many_items_are_searched_at_once() {
    let count = switch("IBIFS_TEST_SEARCHED").unwrap_or(2_000);
    let env = TestEnv::new();
    env.sh(&format!(
        r#"ibifs init A.store --host archive-a.example.org > /dev/null; mkdir A
        python3 - <<'END'
import os
words = "sea rain wind cloud river forest fire ice soil wave".split()
for i in range({count}):
    at = "A.store/col/x.org/y/2020/%02d.%02d.%02d.%02d" % (1 + i // 40320, 1 + i // 1440 % 28, i // 60 % 24, i % 60)
    os.makedirs(at)
    open(at + "/.ibi", "w").write("ibi {{rep %s}}\n" % at[12:])
    text = "title: %s and %s number%d\ncreator: Author%d, A\ndate: %d\n" % (words[i % 10], words[i // 10 % 10], i, i % 97, 1950 + i % 70)
    open(at + "/.ibi.metadata", "w").write(text)
END
        ibifs reindex A.store > /dev/null; ibifs find number7 --store A.store; ibifs mount A.store A"#
    ));
    env.prints(
        &format!(
            r#"
            ls A/.find/sea | wc -l; ls A/.find/number{last} | wc -l; ls A/.find/year:1950/sea | wc -l
            ls A/.find/sea > all; for i in 1 2 3; do TIMEFORMAT=%R; {{ time ls A/.find/number3$i > /dev/null; }} 2>> times; done
            sort -n times | head -n 1 | awk '{{ print ($1 < 0.5) ? "quick" : $1 }}'
            "#,
            last = count - 1
        ),
        &format!("{}\n1\n{}\nquick", 2 * count / 10 - count / 100, count.div_ceil(70)),
    );
}
