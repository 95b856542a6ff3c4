//! Labels in `.mint`: each user's own, and what is removed under one.

use crate::support::TestEnv;

const USERS: &str = "
    as() { local who=$1; shift; case $who in
        root) \"$@\";;
        alice) HOME=$PWD/home setpriv --reuid 60001 --regid 60001 --clear-groups \"$@\";;
        bob) HOME=$PWD/home setpriv --reuid 60002 --regid 60002 --clear-groups \"$@\";;
    esac; }
    # The item of the label $2 of $1.
    of() { local to; to=$(as $1 readlink A/.mint/.$2) && echo A/${to#../}; }
";

fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh("chmod 755 .; chmod 1777 A; mkdir home; printf '[safe]\n\tdirectory = *\n' | tee home/.gitconfig > .gitconfig; mkdir -p report/private report/doc; echo secret > report/private/x; echo text > report/doc/f
              ln -s f report/doc/l; chmod -R a+rX report");
    env
}

#[track_caller]
fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{USERS}\n{script}"))
}

/// A user has taken the label that others will use: what they deposit does not go there.
#[test]
fn a_deposit_does_not_go_into_another_users_item() {
    for tool in [
        "cp -a report A/.mint/",
        "cp -r report/. A/.mint/report",
        "rsync -a report A/.mint/",
        "tar -c report | tar -x -C A/.mint",
        "mkdir -p A/.mint/report; cp -a report/. A/.mint/report/",
        "mkdir A/.mint/report && cp -a report/. A/.mint/report/",
    ] {
        let env = environment();
        sh(
            &env,
            &format!(
                "as alice mkdir A/.mint/report; theirs=$(of alice report); before=$(ls -AR $theirs)
                 {tool}
                 [ \"$(ls -AR $theirs)\" = \"$before\" ]; mine=$(of root report); [ $mine != $theirs ]
                 [ $(stat -c %U $mine) = root ]; grep -qx secret $mine/private/x; no as bob ls A/.mint/report"
            ),
        );
    }
}

/// A label is found and listed, by either of its names, by its user alone; root has its own.
#[test]
fn labels_are_found_by_their_users_alone() {
    let env = environment();
    sh(
        &env,
        "as alice mkdir -p A/.mint/a/doc A/.mint/both/doc; as bob mkdir -p A/.mint/b/doc A/.mint/both/doc; mkdir A/.mint/r
         for i in 1 2; do
             [ \"$(as alice ls -A A/.mint)\" = $'a\\nboth' ]; [ \"$(as bob ls -A A/.mint)\" = $'b\\nboth' ]; [ \"$(ls -A A/.mint)\" = r ]
             for who in root bob; do for name in a a/doc a/.ibi .a .a/doc; do no as $who stat A/.mint/$name; done; no as $who rmdir A/.mint/a; done
             for name in r .r b; do no as alice stat A/.mint/$name; done
             as alice stat A/.mint/a/doc A/.mint/both/doc > /dev/null; as bob stat A/.mint/both/doc > /dev/null
             [ $(of alice both) != $(of bob both) ]
             [ $(as alice stat -c %i A/.mint/both) = $(stat -c %i $(of alice both)) ]; [ $(as bob stat -c %i A/.mint/both) = $(stat -c %i $(of bob both)) ]
         done
         no as alice mkdir A/.mint/a; as bob mkdir A/.mint/a; as bob rmdir A/.mint/a; as alice stat A/.mint/a > /dev/null
         as alice rm A/.mint/.both; as bob stat A/.mint/both > /dev/null
         # Who works under a label is not put out by another user's looks.
         cd A/.mint/r; no as alice stat ../r; touch here; cd - > /dev/null; [ -e $(of root r)/here ]",
    );
}

/// `rm -r .mint/NAME`, by whatever program, removes the item as its own names do, also by a depositor who may not write in
/// the year that minting made.
#[test]
fn to_remove_under_a_label_is_to_remove_the_item() {
    let env = environment();
    // More names than one call of a listing returns; alice's are fewer.
    for (who, many) in [("root", 300), ("alice", 20)] {
        env.sh(&format!("rm report/doc/[1-9]* 2> /dev/null || true; for i in $(seq {many}); do echo $i > report/doc/$i; done; chmod -R a+rX report"));
        for remove in [
            "rm -r A/.mint/report",
            "rm -rf A/.mint/report/",
            "find A/.mint/report -delete",
            "find A/.mint/report -depth -exec rm -d {} +",
            "/usr/bin/python3 -c 'import shutil; shutil.rmtree(\"A/.mint/report\")'",
            "perl -MFile::Path -e 'File::Path::remove_tree(\"A/.mint/report\")'",
            "rm -r A/.mint/report/*; rmdir A/.mint/report",
        ] {
            sh(
                &env,
                &format!(
                    "as {who} cp -a --no-preserve=ownership report A/.mint/; item=$(of {who} report); opaque=A/$(ibip $item); ls $item $opaque > /dev/null
                     no as {who} rmdir A/.mint/report; diff -r --no-dereference -x .ibi report $item
                     as {who} sh -c \"$(cat <<'END'\n{remove}\nEND\n)\"
                     for name in $item $opaque A/.mint/report A/.mint/.report; do no as {who} stat $name; done
                     [ -z \"$(as {who} ls -A A/.mint)\" ]; ibifs show ${{item#A/}} --store A --json | jq -r .state | grep -qx Deleted"
                ),
            );
        }
    }
    env.sh("ibifs umount A; ibifs fsck A.store");
}

/// `rm .mint/.NAME` removes the label and leaves the item, and the label may be given again.
#[test]
fn a_label_is_removed_alone_by_its_link() {
    let env = environment();
    for who in ["root", "alice"] {
        sh(
            &env,
            &format!(
                "as {who} cp -a --no-preserve=ownership report A/.mint/; item=$(of {who} report); no as bob rm A/.mint/.report
                 as {who} rm A/.mint/.report; no as {who} stat A/.mint/report; no as {who} stat A/.mint/.report
                 diff -r --no-dereference -x .ibi report $item; [ \"$(state $item)\" = Original ]
                 as {who} mkdir A/.mint/report; [ $(of {who} report) != $item ]; as {who} rmdir A/.mint/report; [ -e $item/doc/f ]"
            ),
        );
    }
}

/// A label gives no right over an item that is another user's by now, nor over files in it that are.
#[test]
fn a_label_removes_nothing_of_others() {
    let env = environment();
    sh(
        &env,
        "as alice mkdir A/.mint/given A/.mint/mixed; given=$(of alice given) mixed=$(of alice mixed); chown 60002 $given; no as alice rmdir A/.mint/given; [ -e $given/.ibi ]
         mkdir $mixed/roots; echo text > $mixed/roots/f; no as alice rm -r A/.mint/mixed; grep -qx text $mixed/roots/f
         no as alice rmdir $mixed; chmod 755 A; as alice mkdir $mixed/own; no as alice rmdir A/.mint/mixed; no as alice rm A/.mint/.mixed; [ -d $mixed/own ]",
    );
}

/// Tools that deposit remove their own temporary files under the label for good. What git tidies up after a
/// commit, by a process of its own with a lock file, is waited for.
#[test]
fn tools_that_deposit_tidy_up() {
    let env = environment();
    for who in ["root", "alice"] {
        sh(
            &env,
            &format!(
                r#"rm -rf work; mkdir -m 1777 work; cp -a report work/source; chmod -R a+rX work/source
                (cd work; git init -q -b main repo; cd repo; cp -r ../source/. .; git add .; git -c user.name=a -c user.email=a@b.c commit -qm 1; git repack -qad); chmod -R a+rX work/repo
                as {who} git clone -q file://$PWD/work/repo A/.mint/git; g=$(of {who} git)
                [ -z "$(find $g -name '*.keep' -o -name 'tmp_*' -o -name '*.lock')" ]; git -C $g status --short | no grep -v '?? .ibi'
                as {who} sh -c 'umask 022; cd A/.mint/git; echo more > more; git add more; git -c maintenance.autoDetach=false -c gc.autoDetach=false -c user.name=a -c user.email=a@b.c commit -qm more'
                [ -z "$(find $g -name '*.lock')" ]
                as {who} rsync -a work/source/ A/.mint/rs/; echo longer > work/source/doc/f; ln -sfn h work/source/doc/l; as {who} rsync -a work/source/ A/.mint/rs/
                diff -r --no-dereference -x .ibi work/source $(of {who} rs)
                tar -C work/source -cf work/tar .; as {who} mkdir A/.mint/tar; as {who} tar -x -C A/.mint/tar -f work/tar
                echo again > work/source/doc/f; tar -C work/source -cf work/tar .; as {who} tar -x -C A/.mint/tar -f work/tar
                grep -qx again $(of {who} tar)/doc/f; diff -r --no-dereference -x .ibi work/source $(of {who} tar)
                as {who} sed -i s/again/edited/ A/.mint/tar/doc/f; grep -qx edited $(of {who} tar)/doc/f; [ -z "$(find $(of {who} tar) -name 'sed*')" ]"#
            ),
        );
    }
}
