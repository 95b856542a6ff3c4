//! Hidden directories of items: kept as they are, and not served unless the Archive says so.

use super::served::Served;
use crate::support::TestEnv;

/// An item with a clone in it, whose configuration has a password.
fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"i=$(ibifs mint A | head -n 1); echo "i=$i" > vars; mkdir -p A/$i/doc/code/.git/sub A/$i/.cache/doc
         echo 'https://secretword@host' | tee A/$i/doc/code/.git/config A/$i/doc/code/.git/sub/x > A/$i/.cache/doc/y
         echo text > A/$i/doc/code/.gitignore; echo text > A/$i/doc/thesis.txt; echo text > A/$i/.zenodo.json
         ln -s code/.git/config A/$i/doc/link; ln -s code/.git A/$i/doc/way
         sed -i '$a search texts' A.store/archive.ibi; ibifs umount A; ibifs mount A.store A"#,
    );
    env
}

const LOOK: &str = r#". ./vars; propfind() { curl -sS -X PROPFIND -H "Depth: ${depth:-1}" "$@"; }
    for path in doc/code/.git/config doc/code/.git/sub/x doc/code/.git .cache/doc/y doc/link doc/way/config doc/thesis.txt doc/code/.gitignore .zenodo.json; do
        echo $(status $U/$i/$path) $path; done > statuses
    for url in $i "$i?inventory" archive.cgi/$i "$i?ibiurl.verblist=GetFileList" "find?q=secretword"; do get "$U/$url" -H 'Accept: text/html' -o answer || true
        if file answer | grep -q Zip; then unzip -l answer; else cat answer; fi; done > answers
    for path in doc/code .cache; do propfind $U/dav/$i/$path; done >> answers"#;

/// Whatever leads to a file in a hidden directory finds nothing; hidden files elsewhere are there, and all is in the mount.
#[test]
fn hidden_directories_are_not_served() {
    let env = environment();
    let served = Served::start(&env, "A.store");
    served.sh(&env, &format!(
        "{LOOK}
         printf '%s\\n' '404 doc/code/.git/config' '404 doc/code/.git/sub/x' '404 doc/code/.git' '404 .cache/doc/y' \\
             '404 doc/link' '404 doc/way/config' '200 doc/thesis.txt' '200 doc/code/.gitignore' '200 .zenodo.json' | diff - statuses
         grep -v '^link ' answers > others; no grep -e secretword@ -e '[.]git/' -e '[.]cache' others; grep -q '[.]gitignore' answers; grep -q thesis answers
         grep -q secretword A/$i/doc/code/.git/config; cat \"A/$i?GetFileList\" | grep -q '[.]git/config'"
    ));
}

/// `serve {{hidden yes}}` serves them.
#[test]
fn hidden_directories_are_served_where_the_archive_says_so() {
    let env = environment();
    env.sh("sed -i '$a serve {hidden yes}' A.store/archive.ibi");
    let served = Served::start(&env, "A.store");
    served.sh(&env, &format!(
        "{LOOK}
         grep -c ^200 statuses | grep -qx 8; grep -q '[.]git/config' answers; grep -q '[.]cache' answers
         # In lists they are at the end, collapsed.
         for url in $i \"$i?ibiurl.verblist=GetFileList\"; do get \"$U/$url\" -H 'Accept: text/html' | tr -d '\n' > page
             grep -q 'thesis.*<details><summary>In hidden directories (3)</summary>.*[.]git/config.*</details>' page
             sed 's;<details>.*</details>;;' page > rest; no grep -e '[.]git/' rest; grep -q '[.]gitignore' rest; done"
    ));
    env.sh("sed -i 's/hidden yes/hidden sometimes/' A.store/archive.ibi");
    env.complains(
        "ibifs serve A.store",
        "'hidden sometimes' is not a valid value of 'serve'",
    );
}

/// The only file beside `doc/` is what the item leads to, if `doc/` has none.
#[test]
fn the_only_file_of_a_copied_directory_is_the_target() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir dir; echo text > dir/thesis.txt; cp -a dir A/.mint/; echo \"i=$(getfattr --only-values -n user.ibi.rep A/.mint/dir)\" > vars");
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        "{ . ./vars; service=$(sed -n 's/^ibi.archiveservice.*ibip \\(.*\\)}/\\1/p' A.store/archive.ibi); } > /dev/null
         asked() { get \"$U/$service?servicesubject=urlRequest&parsedibiurl.ibi=$i&parsedibiurl.verblist=\" | grep -o 'thesis.*txt' || echo none; }
         asked; touch A/$i/more; sleep 4; asked; mkdir -p A/$i/doc; echo x > A/$i/doc/thesis2.txt; sleep 4; asked",
        "thesis.txt\nnone\nthesis2.txt",
    );
}
