//! A metadata text with an unknown field fails where its author writes it, and nowhere on the way of a
//! collection.

use crate::support::TestEnv;

/// In both trees, with the kernel's passthrough and without: what was written in place stays as it is, what
/// would replace the text does not, and close(2) or rename(2) fails.
#[test]
fn an_unknown_field_fails_where_it_is_written() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one; echo $(rep A/.mint/one) $(ibip A/.mint/one) > names; printf 'title: Rain\\n' > good; printf 'title: Rain\\ntitel: Rain\\n' > bad");
    for options in ["passthrough=yes", "passthrough=no"] {
        env.sh(&format!(
            "umount A; ibifs mount A.store A -o {options}
             for item in $(<names); do item=A/$item
                 cp good $item:; cmp good $item/.ibi.metadata
                 ! cp bad $item: 2> why; grep -q 'Invalid argument' why; cmp bad $item/.ibi.metadata
                 cat $item: | cmp - bad; grep -q 'Rain</dc:title>' \"$item:(oai_dc)\"
                 ! dd if=bad of=$item: status=none 2> why; grep -q 'Invalid argument' why
                 cp good $item:; echo 'author: Silva, Ana' >> $item:; cat $item: > good-2
                 ! sed -i s/title/titel/ $item: 2> why; grep -q 'Invalid argument' why
                 cmp good-2 $item/.ibi.metadata; test -z \"$(ls $(dirname $item) | grep ^sed)\"
                 rm $item:
                 ! sh -c \"cat bad > $item:\" 2> why; cmp bad $item/.ibi.metadata; rm $item:
             done"
        ));
    }
}

/// A text of which nothing can be read leaves the one before it in force, and is kept: in both trees, with the kernel's
/// passthrough and without.
#[test]
fn a_text_of_which_nothing_can_be_read_replaces_none() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one; echo $(rep A/.mint/one) $(ibip A/.mint/one) > names; printf 'title: Rain\\n' > good; printf 'it rained\\nfor days\\n' > bad
        same() { for try in $(seq 100); do cmp -s $1 $2 && return; sleep 0.05; done; cmp $1 $2; }; declare -f same > same");
    for options in ["passthrough=yes", "passthrough=no"] {
        env.sh(&format!(
            "umount A; ibifs mount A.store A -o {options}; . ./same
             for item in $(<names); do item=A/$item; rm -f $item/.ibi.broken-*
                 cp good $item:; ! cp bad $item: 2> why; grep -q 'Invalid argument' why
                 same good $item/.ibi.metadata; cmp bad $item/.ibi.broken-1; cat $item: | cmp - good
                 grep -q 'Rain</dc:title>' \"$item:(oai_dc)\"; ls -A $item | grep -q broken-1
                 ! cp bad $item: 2> why; same good $item/.ibi.metadata; test ! -e $item/.ibi.broken-2
                 (echo it rained; sh -c true; echo 'title: Snow') > $item: || true; grep -q Snow $item:
                 cp good $item:; : > $item:; test ! -s $item/.ibi.metadata
                 ! cp bad $item: 2> why; sleep 0.2; cmp bad $item/.ibi.metadata; test ! -e $item/.ibi.broken-2; rm $item:
             done"
        ));
    }
}

/// A shell that writes a text ignores that close(2) fails; `ibifs show`, which users type next, says what is wrong.
#[test]
fn what_a_shell_wrote_is_judged_when_the_item_is_shown() {
    let env = TestEnv::new().with_a();
    env.prints(
        "mint A one > /dev/null; item=$(rep A/.mint/one); echo 'title: Rain' > A/$item:; ibifs show A/$item 2>&1 | grep -c metadata: || true
         printf 'titel: Rain\nrain\ncreator: Silva\n' > A/$item:; ibifs show A/$item 2>&1 > /dev/null | cut -d';' -f1
         ibifs show A/$item --json 2> /dev/null | jq -r .state",
        "0\nibifs: metadata: line 1 has the unknown field 'titel'\n\
         ibifs: metadata: line 2 of the metadata is not 'name: value': 'rain'\n\
         ibifs: metadata: the record has no title\nOriginal",
    );
}

/// Old texts arrive with their items, whole, and fsck reports them.
#[test]
fn a_collection_with_unknown_fields_is_copied() {
    let env = TestEnv::new().with_a().with_b();
    env.sh(
        "mint A one; item=$(rep A/.mint/one); printf 'titel: Rain\\n' > A/$item/.ibi.metadata
         year=$(dirname $item); mkdir -p B/$year; cp -a A/$item B/$year/; cmp A/$item/.ibi.metadata B/$item/.ibi.metadata
         rm B/$item/.ibi.metadata; rsync -aHAX A/$item B/$year/; cmp A/$item/.ibi.metadata B/$item/.ibi.metadata
         echo longer >> A/$item/.ibi.metadata; rsync -aHAX A/$item B/$year/; cmp A/$item/.ibi.metadata B/$item/.ibi.metadata
         tar -C A -cf - $item | tar -C B -xf -; cp -a A/$item/. B/$item/; cmp A/$item/.ibi.metadata B/$item/.ibi.metadata
         umount B; ibifs fsck B.store > found; grep -q unknown-field found",
    );
}

/// Records of other programs are copied to the text as they are, and what ibifs writes too.
#[test]
fn records_of_other_formats_are_read() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A one; mint A two; one=A/$(rep A/.mint/one); two=A/$(rep A/.mint/two)
         printf 'TY  - JOUR\r\nTI  - Rain in Brazil\r\nAU  - Silva, Ana\r\nDA  - 2010/03/15/\r\nVL  - 3\r\nL1  - file:///home/u/x.pdf\r\nER  - \r\n' > x.ris
         cp x.ris \"$one:\"; grep -q '<dc:date>2010-03-15</dc:date>' \"$one:(oai_dc)\"
         for format in ris csl datacite datacite_json jsonld mods dspace cff bibtex BibINPE refer oai_dc; do
             ! grep -q /home/u \"$one:($format)\"
             cat \"$one:($format)\" > o; cp o \"$two:\"; cmp o \"$two:\"
             ibifs cite \"$two\" | grep -q 'Silva, A. (2010.*Rain in Brazil'
         done
         printf 'title: Old\\ndate: 15/03/2010\\n' > \"$two:\"; grep -q '<publicationYear>2010<' \"$two:(datacite)\"
         printf 'title: Old\\ndate: long ago\\n' > \"$two:\"; ibifs show \"$two\" 2>&1 | grep -q \"has the date 'long ago'\"
         grep -q '<publicationYear>0000<' \"$two:(datacite)\"",
    );
}
