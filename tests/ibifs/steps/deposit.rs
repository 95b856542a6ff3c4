//! `ibifs mint --from` is killed before each of its durable steps, in the store and in the directory.

use super::fixture::Fixture;
use super::stride;
use super::supervisor::{Supervised, What};

/// No deposit has so many steps.
const MANY: usize = 1000;

/// Kills the deposit at each step: each file is then in the directory or in an item. Run again, it leaves all files in
/// one item, and the directory is gone.
#[track_caller]
fn at_each_step(prepare: &str, directory: &str, place: &str) {
    let fixture = Fixture::new("");
    let env = fixture.environment();
    env.sh(
        "mkdir -p like/doc/sub like/empty; echo 1 > like/doc/one; echo 2 > like/doc/sub/two; echo 3 > like/three
         ln like/three like/doc/hard; ln -s three like/link; chmod 750 like; touch -d @5 like like/doc",
    );
    for at in (1..MANY).step_by(stride(4)) {
        fixture.put_back();
        env.sh(&format!("{prepare}; cp -a like {directory}"));
        let mut command = fixture.command(&["mint", place, "--from", directory]);
        let armed = Some((at, What::Kill));
        let (supervised, child) = Supervised::start(&mut command, env.root(), armed);
        let output = child.wait_with_output().expect("it ends");
        let (is_killed, step) = (supervised.reached(), supervised.step());
        supervised.wait();
        if is_killed {
            env.sh(&format!(
                "for file in doc/one doc/sub/two three doc/hard; do
                     find {directory} S/col -path \"*/$file\" -exec cat {{}} + 2> /dev/null | sort -u > had || true
                     cmp <(cat like/$file) <(cat had) || {{ echo \"$file is lost: {step}\" >&2; exit 1; }}
                 done
                 [ ! -e {directory} ] || [ -z \"$(ls -A {directory})\" ] || ibifs mint {place} --from {directory}"
            ));
        } else {
            assert!(output.status.success(), "{output:?}");
        }
        // A command that ended in time was killed after it had removed the directory's content.
        env.sh(&format!(
            "full=$(dirname S/col/*/*/*/*/three); [ $(echo $full | wc -w) = 1 ] || {{ echo 'not once: {step}' >&2; exit 1; }}
             diff -r --no-dereference -x .ibi like $full || {{ echo 'differs: {step}' >&2; exit 1; }}
             # The time of the directory itself is lost if its mark was begun and not complete.
             [ \"$(stat -c '%a %u' like)$(stat -c '%a %Y' like/doc)\" = \"$(stat -c '%a %u' $full)$(stat -c '%a %Y' $full/doc)\" ] || {{ echo 'times: {step}' >&2; exit 1; }}
             [ $full/doc/hard -ef $full/three ]
             rm -rf {directory}; ! mountpoint -q M || ibifs umount M; ibifs fsck S > /dev/null"
        ));
        if !is_killed {
            println!("{place} --from {directory}: killed at {} steps", at - 1);
            assert!(at > 8, "it has steps");
            return;
        }
    }
    panic!("it has no end");
}

#[test]
fn by_rename() {
    at_each_step("true", "dir", "S");
}

#[test]
fn by_rename_into_a_mount() {
    at_each_step("ibifs mount S M", "dir", "M");
}

#[test]
fn by_copy_from_another_filesystem() {
    let other = "mkdir -p T; mountpoint -q T || mount -t tmpfs none T";
    at_each_step(other, "T/dir", "S");
}
