//! Ordinary owners of items declare beside them with the tools that people use, on a mount of root, in
//! both trees; what is shown for that opens nothing, and what one user stages is not another's.

use crate::support::TestEnv;

const USERS: &str = r#"
as() { setpriv --reuid 60001 --regid 60001 --clear-groups "$@"; }
other() { setpriv --reuid 60002 --regid 60002 --clear-groups "$@"; }
"#;

/// A mount of root; `one` and `two` are items of one user, `theirs` of another.
fn environment() -> TestEnv {
    let env = TestEnv::new();
    env.sh(&format!(
        "{USERS} chmod 755 .; mkdir A; ibifs init A.store --host archive-a.example.org > /dev/null
         ibifs mount A.store A; chmod 1777 A; as mkdir -p A/.mint/one/doc A/.mint/two/doc; other mkdir -p A/.mint/theirs/doc
         for i in one two; do labelled A $i as > $i.rep; done; labelled A theirs other > theirs.rep
         for i in one two theirs; do ibip A/$(<$i.rep) > $i.ibip; done; chmod 755 A"
    ));
    env
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{USERS}{script}"), expected);
}

#[test]
fn owners_declare_with_every_tool_in_both_trees() {
    let env = environment();
    for form in ["rep", "ibip"] {
        let script = format!(
            r#"one=A/$(<one.{form}); two=$(<two.{form}); says() {{ cat A.store/col/$(<one.rep)/.ibi; }}
            case {form} in rep) up=../../..;; ibip) up=..;; esac
            as ln -sfn $up/$two "$one!"; readlink "$one!" | grep -cF $two; other readlink "$one!" | grep -cF $two
            as rm "$one!"; says | grep -c nextedition || :
            as ln -sfn $up/$two "$one!"; as ln -sfn $up/$two "$one!"; says | grep -c nextedition
            other ls -l "$one!" > /dev/null; no other rm "$one!"; no other ln -sfn $up/$(<theirs.{form}) "$one!"
            as rm "$one!"; mkdir -p from; ln -sfn $up/$two "from/$(basename $one)!"
            as rsync -l "from/$(basename $one)!" $(dirname $one)/; says | grep -c nextedition; as setfattr -x user.ibi.nextedition $one
            as bash -c "echo 'title: Old' > '$one:'"; as sed -i s/Old/New/ "$one:"; other cat "$one:"
            as bash -c "echo 'title: Third' > '$one:~'; mv '$one:~' '$one:'"; cat "$one:"
            echo 'title: Fourth' > text; chmod 644 text; as rsync text "$one:"; cat "$one:"; as rm "$one:"; no cat "$one:"
            as mkdir "$one+(pt)"; stat -Lc %u "$(dirname $one)/$(readlink "$one+(pt)")"; as rm "$one+(pt)"
            as ibifs mint A --translation-of $(<one.rep) --lang fr > /dev/null; says | grep -c 'translation(fr)'
            as ibifs unrelate $one --translation --lang fr
            as ibifs relate $one --next-edition $(<two.rep); says | grep -c nextedition; as ibifs unrelate $one --next-edition"#
        );
        let expected = "1\n1\n0\n1\n1\ntitle: New\ntitle: Third\ntitle: Fourth\n60001\n1\n1";
        prints(&env, &script, expected);
    }
}

/// The mode that is shown lets in no other user, and is not taken over by the disk.
#[test]
fn levels_are_open_to_declarations_alone() {
    let env = environment();
    let script = r#"year=A/$(dirname $(<one.rep)); stored() { stat -c %a A.store/col/$(dirname $(<one.rep)); }
        stat -c %a $year; stored
        no as mkdir $year/01.01.00.00 && no as mkdir A/$(dirname $(<one.ibip))/3 && no as touch $year/x && no as touch $year
        no as setfattr -n user.x -v y $year; no as chmod 1777 $year; no other rmdir A/$(<one.rep); no other rm -r "A/$(<one.rep)"
        no as mv A/$(<one.rep) $year/x; no as ln A/$(<one.rep)/.ibi $year/.x
        chmod 1777 $year; stored; chmod 775 $year; stored; chmod 755 $year; stored; chmod 777 $year; stored; stat -c %a $year"#;
    prints(&env, script, "1777\n755\n755\n775\n755\n777\n777");
}

/// A user neither takes over nor renames nor removes what another user has staged.
#[test]
fn staged_names_are_their_makers() {
    let env = environment();
    let script = r#"chmod 777 A; year=A/$(dirname $(<one.rep)); prefix=A/$(dirname $(<one.ibip)); chmod 777 $year
        for d in $year $prefix; do
            as bash -c "umask 077; echo mine > $d/.staged.AbCdEf"; as ln -s x $d/CuAbCdEf
            no other rm -f $d/.staged.AbCdEf; no other mv $d/.staged.AbCdEf $d/.taken.AbCdEf; no other cat $d/.staged.AbCdEf
            no other mv -f $d/CuAbCdEf "A/$(<theirs.rep)!"; other bash -c "echo theirs > $d/.theirs.AbCdEf"
            no other mv -f $d/.theirs.AbCdEf $d/.staged.AbCdEf; no other ln -sfn y $d/CuAbCdEf
            cat $d/.staged.AbCdEf; readlink $d/CuAbCdEf; as rm $d/.staged.AbCdEf $d/CuAbCdEf; other rm $d/.theirs.AbCdEf
        done; no as bash -c 'for n in $(seq 1100); do : > '$year'/.n$n; done'; other touch $year/.still"#;
    prints(&env, script, "mine\nx\nmine\nx");
}

/// A sticky directory protects the metadata text of another user there.
#[test]
fn sticky_directories_protect_the_metadata_text() {
    let env = environment();
    let script = r#"one=A/$(<one.rep); as chmod 1777 $one; other bash -c "echo 'title: Theirs' > $one/.ibi.metadata"
        root=A/$(<theirs.rep); other chmod 1777 $root; other bash -c "echo 'title: Theirs' > $root/.ibi.metadata"
        for i in "$root" A/$(<theirs.ibip); do
            no as rm -f "$i:"; no as bash -c "echo x > '$i:~'; mv -f '$i:~' '$i:'"; no as mv "$i:" "$i:~"; no as sed -i s/T/X/ "$i:"
        done; cat "$root:"
        as rm $one/.ibi.metadata; other rm "$root:"; no cat "$root:""#;
    prints(&env, script, "title: Theirs");
}

/// Copies from mount to mount, and to another filesystem, converge, and open no level.
#[test]
fn copies_converge_and_open_nothing() {
    let env = environment().with_b();
    let script = r#"year=$(dirname $(<one.rep)); as bash -c "echo text > A/$(<one.rep)/doc/f"; mkdir native tared
        mode() { stat -c %a $1/$year; }
        rsync -aHAX A/ B/; rsync -aHAXi A/ B/; mode B.store/col
        rsync -aHAX A/ native/; rsync -aHAXi A/ native/; mode native
        no other rm -r native/$(<one.rep); no other mv native/$(<one.rep) native/$year/x
        ibifs umount B; rm -r B.store; ibifs init B.store --host archive-b.example.net > /dev/null; ibifs mount B.store B
        cp -a A/example.org B/; mode B.store/col; tar -C A -cf - example.org | tar -C tared -xpf -; mode tared
        tar -C A -cf - example.org | tar -C B -xpf - --overwrite; mode B.store/col; ibifs fsck B.store | grep -c ' 0 findings'"#;
    prints(&env, script, "755\n1777\n755\n1777\n755\n1");
}
