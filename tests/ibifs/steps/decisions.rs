//! What an owner decides about an item is stopped at each durable step: the item is as it was or as decided, its files are
//! whole, and the same command completes it.

use super::command::{MANY, stop_at};
use super::stride;
use super::supervisor::What;
use crate::support::TestEnv;

/// State, draft, sealed and withdrawn, as `ibifs show` has them.
const SHOWN: &str = r#"shown() { ibifs show --store S $(< one) --json | jq -c '[.state, .draft, .sealed != null, .withdrawn != null]'; }"#;

/// Stops a command at a step after the other. What is shown then is one of `before`, or `after` if it had ended.
#[track_caller]
fn stopped(prepare: &str, words: &[&str], before: &[&str], after: &str) {
    let env = TestEnv::new().with_index_file();
    env.sh(&format!(
        "ibifs init S --host archive-a.example.org > /dev/null; mkdir M; ibifs mount S M; ibifs mint M | head -n 1 > one
         echo 'title: Rain' > M/$(< one):; echo one > M/$(< one)/doc/file; ibifs umount M; {prepare}; mv S before"
    ));
    let rep = env.sh("cat one");
    for at in (1..MANY).step_by(stride(7)) {
        env.sh("rm -rf S; cp -a before S");
        let (name, options) = words.split_first().expect("a command");
        let arguments = [&[*name, "--store", "S", rep.as_str()], options].concat();
        let ended = stop_at(&env, &arguments, env.root(), (at, What::Kill));
        assert!(ended.reached || at > 2, "it has steps");
        let [again, options] = [name, options.join("' '").as_str()].map(str::to_owned);
        let options = if options.is_empty() {
            options
        } else {
            format!("'{options}'")
        };
        let found = env.sh(&format!(
            "{SHOWN}; shown; ibifs {again} --store S $(< one) {options} > out 2>&1 || case $? in 3|4) ;; *) cat out;; esac; shown
             case $(shown) in *Deleted*) ;; *) cat S/col/$(< one)/doc/file;; esac; ibifs mount S M; ibifs umount M; ibifs fsck S | tail -n 3"
        ));
        let mut lines = found.lines();
        let first = lines.next().expect("what is shown");
        let is_whole = if ended.reached {
            before.contains(&first) || first == after
        } else {
            first == after
        };
        let rest: Vec<&str> = lines.collect();
        let count = if after.contains("Deleted") {
            vec![after]
        } else {
            vec![after, "one"]
        };
        assert!(
            is_whole
                && rest.starts_with(&count)
                && rest.last().is_some_and(|it| it.ends_with("0 findings")),
            "{words:?}, {}: {found}",
            ended.step
        );
        if !ended.reached {
            return;
        }
    }
    panic!("{words:?} has no end");
}

const PUBLIC: &str = r#"["Original",false,false,false]"#;

#[test]
fn a_seal() {
    let sealed = r#"["Original",false,true,false]"#;
    stopped("true", &["seal"], &[PUBLIC], sealed);
    stopped("true", &["seal", "--after", "30d"], &[PUBLIC], sealed);
    let announce = "ibifs seal --store S $(< one) --after 1s > /dev/null; sleep 2";
    stopped(announce, &["seal"], &[sealed], sealed);
    let seal = "ibifs seal --store S $(< one) > /dev/null";
    stopped(seal, &["unseal", "--reason", "typo"], &[sealed], PUBLIC);
}

#[test]
fn a_withdrawal() {
    let withdrawn = r#"["Original",false,false,true]"#;
    stopped(
        "true",
        &["withdraw", "--reason", "wrong"],
        &[PUBLIC],
        withdrawn,
    );
    let withdraw = "ibifs withdraw --store S $(< one) --reason wrong";
    stopped(withdraw, &["restore"], &[withdrawn], PUBLIC);
}

/// Until all of it is gone, it is withdrawn.
#[test]
fn a_removal() {
    let before = [PUBLIC, r#"["Original",false,false,true]"#];
    let removed = r#"["Deleted",false,false,true]"#;
    stopped("true", &["remove", "--reason", "twice"], &before, removed);
}

#[test]
fn a_publication() {
    let draft = r#"["Original",true,false,false]"#;
    stopped("chmod 700 S/col/$(< one)", &["publish"], &[draft], PUBLIC);
}
