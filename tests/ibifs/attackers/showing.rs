//! A user who puts FIFOs, links and files without end in the place of an item's texts: commands that show the item to other
//! users end.

use crate::support::TestEnv;

/// The replacements for `.ibi` and `.ibi.metadata`.
const PUT: [&str; 4] = [
    "mkfifo -m 666",
    "ln -s /dev/zero",
    "ln -s /proc/kmsg",
    "truncate -s 100G",
];

/// Users who may not enter the store read what the mount has.
#[test]
fn texts_that_are_no_files_keep_no_reader_waiting() {
    let env = TestEnv::new().with_a();
    env.sh("chmod 1777 A; chmod 755 .; chmod 700 A.store
            as() { setpriv --reuid=$1 --regid=$1 --clear-groups \"${@:2}\"; }
            as 1001 mkdir -p A/.mint/1/doc; labelled A 1 as 1001 > one; as 1001 sh -c 'echo \"title: Rain\" > A/'$(< one)'/.ibi.metadata'
            mkdir -p A/.mint/other; labelled A other > other; ln -sfn ../../../../$(< one) \"A/$(< other)!\" || true");
    for put in PUT {
        for name in [".ibi.metadata", ".ibi"] {
            env.prints(
                &format!(
                    "as() {{ setpriv --reuid=$1 --regid=$1 --clear-groups \"${{@:2}}\"; }}
                     as 1001 sh -c 'cd A/'$(< one)'; {put} .x; mv -Tf .x {name} 2> /dev/null || rm .x'
                     for user in 0 1002; do for command in 'show' 'cite' 'ls' 'find title:rain' 'claim'; do
                         case $command in ls | find*) what=;; *) what=A/$(< one);; esac
                         (ulimit -v 4000000; as $user timeout -s KILL 20 ibifs $command $what > /dev/null 2>&1 < /dev/null) && code=0 || code=$?
                         test $code != 137 || echo $user $command does not end
                     done; done"
                ),
                "",
            );
        }
    }
}
