//! The formats of files: `ibifs scrub --formats` has them identified, and what is then known of them.

use crate::collections::validators;
use crate::support::TestEnv;

/// A mounted Archive with an item of a PDF file, a text, a file of no known format, a link and a FIFO, all of an hour ago.
/// `FIDO` is the program, `record` what is recorded of the item: PUIDs and paths.
fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "mkdir -p A/.mint/x/doc; {}
         printf '%%PDF-1.4\\n%%%%EOF\\n' > $item/doc/report.pdf; echo text > $item/doc/'read me.txt'
         echo nothing > $item/unknown; ln -s /etc/passwd $item/link.pdf; mkfifo $item/fifo.pdf
         touch -d '1 hour ago' $item/doc/* $item/unknown",
        tools()
    ));
    env
}

fn tools() -> String {
    format!(
        "item=$(realpath A/.mint/.x); there=A.store/col/${{item#*/A/}}; kept=A.store/fixity/col/${{item#*/A/}}
         FIDO='{}/fido'; record() {{ sed 's/^[0-9a-f]* \\([^ ]*\\) [^ ]* [^ ]* /\\1/' $kept/formats.txt; }}",
        validators().display()
    )
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    let printed = env.sh(&format!("{}\n{script}", tools()));
    assert_eq!(printed.trim_end(), expected, "{script}");
}

/// FIDO finds what its signatures say, once for each content.
#[test]
fn each_content_is_identified_once() {
    let env = environment();
    prints(
        &env,
        "ibifs scrub A --formats $FIDO | sed 's/.*, //'; record; cut -d ' ' -f 3 $kept/formats.txt | tr 0-9 d | sort -u",
        "formats of 3 files identified\nx-fmt/111,fmt/1085,fmt/1591 doc/read me.txt\nfmt/18 doc/report.pdf\n- unknown\ndddd-dd-dd",
    );
    prints(
        &env,
        "grep -c ' FIDO%20v1.6.1%20(formats-v109.xml,%20container-signature-20200121.xml,%20format_extensions.xml)  ' $kept/formats.txt",
        "3",
    );
    prints(
        &env,
        "ibifs scrub A --formats $FIDO",
        "2 items, 3 files, 28 bytes",
    );
    // A text that is called a PDF file may be any of them.
    prints(
        &env,
        "echo text > $item/doc/report.pdf; touch -d '30 minutes ago' $item/doc/report.pdf; rm $item/unknown
         ibifs scrub A --formats $FIDO | tail -n 1; record | wc -l
         [ \"$(record | tail -n 1)\" = \"$($FIDO -q $item/doc/report.pdf | cut -d , -f 3 | paste -sd ,) doc/report.pdf\" ] && echo same",
        "2 items, 2 files, 10 bytes, 1 changed, 1 missing, format of 1 file identified\n2\nsame",
    );
}

/// Damaged content is not what was identified, and does not count.
#[test]
fn damaged_files_are_not_identified() {
    let env = environment();
    prints(
        &env,
        "ibifs scrub A > printed; touch -r $there/doc/report.pdf time; printf 'XPDF' | dd of=$there/doc/report.pdf conv=notrunc status=none
         touch -r time $there/doc/report.pdf
         { ibifs scrub A --formats $FIDO || true; } | tail -n 1; record | grep -c report || true",
        "2 items, 3 files, 28 bytes, 1 damaged, formats of 2 files identified\n0",
    );
}

/// Items are found by the formats of their files, and bags and OCFL objects have them.
#[test]
fn formats_are_found_and_go_into_packages() {
    let env = environment();
    env.sh(&format!("{}\nibifs scrub A --formats $FIDO", tools()));
    prints(
        &env,
        "for words in format:fmt/18 'format:fmt/18 format:x-fmt/111' 'format:fmt/18 year:1900-2100' 'format:fmt/19' \
             'format:fmt/18 year:1900'; do
             ibifs find \"$words\" --store A --json 2> /dev/null | jq -r '.[].ibip' | grep -c . || true; done",
        "1\n1\n1\n0\n0",
    );
    env.complains(
        "ibifs find format:fmt/19 --store A",
        "no item has all of these words",
    );
    prints(
        &env,
        "ibifs export --bagit $item bags > said 2>&1 || cat said
         premis=$(find bags -name premis.xml); xmllint --xpath '//*[local-name()=\"formatRegistryKey\"]/text()' $premis
         xmllint --xpath 'count(//*[local-name()=\"formatNote\"][starts-with(., \"FIDO v1.6.1\")])' $premis",
        "x-fmt/111\nfmt/1085\nfmt/1591\nfmt/18\n4",
    );
    // What was written since is not what was identified.
    prints(
        &env,
        "echo other > $item/doc/report.pdf; ibifs scrub A > printed; ibifs find format:fmt/18 --store A 2>&1 || true",
        "ibifs: no item has all of these words",
    );
}

/// A file on which the program fails keeps no other from being identified, and a file that is exchanged while the program looks
/// for it is not what it sees.
#[test]
fn bad_files_do_no_harm() {
    let env = environment();
    env.sh(&format!(
        "{}
         mkdir bin; cat > bin/fido << END
#!/bin/bash
[ \\$1 = -q ] || exec $FIDO \"\\$@\"
for name; do ! grep -qs poison \"\\$name\" || exit 1; done
mv $PWD/$there/doc/report.pdf $PWD/$there/doc/away; ln -s $PWD/secret $PWD/$there/doc/report.pdf
exec $FIDO \"\\$@\"
END
         chmod +x bin/fido; printf 'GIF89a' > secret; echo poison > $item/doc/bad; touch -d '1 hour ago' $item/doc/bad",
        tools()
    ));
    prints(
        &env,
        "mkdir tmp; TMPDIR=$PWD/tmp ibifs scrub A --formats bin/fido > printed || true; grep -o 'not-identified: .*bad' printed | sed 's/: .*\\//: /'; record | grep -v bad",
        "not-identified: bad\nx-fmt/111,fmt/1085,fmt/1591 doc/read me.txt\nfmt/18 doc/report.pdf\n- unknown",
    );
    prints(&env, "ls tmp", "");
}

/// Siegfried is asked for JSON. This one prints what Siegfried 1.9 does.
#[test]
fn siegfried_is_understood() {
    let env = environment();
    env.sh(
        r#"mkdir bin; cat > bin/sf << 'END'
#!/bin/bash
if [ "$1 $3" = '-sig -version' ]; then
    printf 'siegfried 1.9.1\n%s (2020-10-06T19:13:40+02:00)\nidentifiers: \n  - pronom: DROID_SignatureFile_V97.xml\n' "$2"; exit
fi
[ "$1 $3" = '-sig -json' ] || exit 2
shift 3; between=; printf '{"siegfried":"1.9.1","files":['
for file; do
    id=UNKNOWN; [[ $(head -c 4 "$file") != %PDF ]] || id=fmt/18
    printf '%s{"filename":"%s","filesize":1,"errors":"","matches":[{"ns":"pronom","id":"%s"}]}' "$between" "$file" $id; between=,
done
echo ']}'
END
        chmod +x bin/sf; touch own.sig"#,
    );
    prints(
        &env,
        "ibifs scrub A --formats bin/sf --signatures own.sig | sed 's/.*, //'; record; cut -d ' ' -f 4 $kept/formats.txt | sort -u",
        "formats of 3 files identified\n- doc/read me.txt\nfmt/18 doc/report.pdf\n- unknown\n\
         siegfried%201.9.1%20-%20pronom:%20DROID_SignatureFile_V97.xml",
    );
}

#[test]
fn other_programs_are_refused() {
    let env = TestEnv::new().with_a();
    for (program, said) in [
        ("true", "is no program by which formats are identified"),
        ("/nowhere/fido", "'/nowhere/fido' does not run: "),
    ] {
        env.complains(&format!("ibifs scrub A --formats {program}"), said);
    }
    env.sh("mkdir bin; printf '#!/bin/sh\\n' > bin/sf; chmod +x bin/sf");
    env.complains(
        "ibifs scrub A --formats bin/sf",
        "'bin/sf' does not print its version",
    );
}
