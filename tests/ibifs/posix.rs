//! The POSIX table: each row is run in a native directory and inside an item, in both trees and with
//! and without passthrough, by root and by two ordinary users; what is answered, and everything
//! about every path afterwards, is the same.

mod calls;
mod exceptions;
mod exerciser;
mod listing;
mod places;
pub mod row;
mod rows;
mod snapshot;
mod stress;
pub mod system;

use crate::http::served::Served;
use exceptions::{Difference, EXCEPTIONS, Exception};
use places::{Place, Places, Seen};
use row::{Expected, Row};

/// Whether a chapter is run without passthrough, too: where content matters it is.
#[derive(Clone, Copy)]
enum Through {
    Kernel,
    KernelAndDaemon,
}

/// Runs a chapter's rows everywhere.
#[track_caller]
fn same_everywhere(rows: Vec<Row>, through: Through) {
    let places = Places::new(matches!(through, Through::KernelAndDaemon));
    check(&rows, || compare(&places, &rows, &|_| {}));
}

/// Runs rows on a thread of their own, because a row changes directory, umask, descriptors and user.
#[track_caller]
fn check(rows: &[Row], run: impl FnOnce() -> Vec<String> + Send) {
    let wrong = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            system::detach();
            run()
        });
        thread.join().expect("a thread that runs rows")
    });
    assert!(
        wrong.is_empty(),
        "{} differences in {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

/// Returns the differences, row by row and place by place. `between` is called with the name of the place after a row
/// is prepared and before it is tested.
fn compare(places: &Places, rows: &[Row], between: &dyn Fn(&Place)) -> Vec<String> {
    let native = places.native.run("row", rows, || between(&places.native));
    let mut wrong: Vec<String> = rows
        .iter()
        .zip(&native)
        .filter_map(|(row, seen)| defect(row, seen))
        .collect();
    for (number, place) in places.mounted.iter().enumerate() {
        let mounted = place.run(&format!("row-{number}"), rows, || between(place));
        for ((row, native), mounted) in rows.iter().zip(&native).zip(&mounted) {
            let ignored = if row.reads_before() { "a" } else { "" };
            let (native, mounted) = (&native.without(ignored), &mounted.without(ignored));
            let known: Vec<&Exception> = EXCEPTIONS
                .iter()
                .filter(|known| row.name.contains(known.rows))
                .filter(|known| known.place.is_none_or(|at| at == place.name))
                .collect();
            let printed = if known.is_empty() {
                differences(row, native, mounted)
            } else {
                excepted(row, native, mounted, &known)
            };
            wrong.extend(
                printed.map(|printed| format!("{} in {}\n{printed}", row.name, place.name)),
            );
        }
    }
    wrong
}

/// Returns the difference between the native filesystem and the row's expectation, if there is one.
fn defect(row: &Row, seen: &Seen) -> Option<String> {
    let steps = row.before.iter().chain(&row.tested);
    let wrong = steps.zip(&seen.answers).find(|(step, answer)| {
        let success = "ok".to_owned();
        match &step.expected {
            Expected::Whatever => false,
            Expected::Exactly(expected) => *answer != expected,
            Expected::Success => is_errno(answer) && **answer != success,
        }
    });
    wrong.map(|(step, answer)| {
        format!(
            "{} is wrong of the native filesystem\n    {} -- {answer}",
            row.name, step.text
        )
    })
}

fn is_errno(answer: &str) -> bool {
    answer.starts_with('E')
        && answer
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn differences(row: &Row, native: &Seen, mounted: &Seen) -> Option<String> {
    let mut printed = Vec::new();
    let steps = row.before.iter().chain(&row.tested);
    for (at, step) in steps.enumerate() {
        let (one, other) = (&native.answers[at], &mounted.answers[at]);
        if one != other {
            printed.push(format!(
                "    {} -- native {one}, mounted {other}",
                step.text
            ));
        }
    }
    let mut paths: Vec<_> = native.paths.keys().chain(mounted.paths.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let nothing = "nothing".to_owned();
        let one = native.paths.get(path).unwrap_or(&nothing);
        let other = mounted.paths.get(path).unwrap_or(&nothing);
        if one != other {
            printed.push(format!(
                "    {}\n      native  {one}\n      mounted {other}",
                path.display()
            ));
        }
    }
    (!printed.is_empty()).then(|| printed.join("\n"))
}

/// A row that may differ differs in one of the ways that are documented.
fn excepted(row: &Row, native: &Seen, mounted: &Seen, known: &[&Exception]) -> Option<String> {
    let all = differences(row, native, mounted);
    let steps: Vec<_> = row.before.iter().chain(&row.tested).collect();
    let first = (0..steps.len()).find(|at| native.answers[*at] != mounted.answers[*at]);
    let first = first.map(|at| (&steps[at].text, &native.answers[at], &mounted.answers[at]));
    let mut letters = String::new();
    let mut must_differ = false;
    let mut answers_so = false;
    for known in known {
        match known.difference {
            Difference::Answer(step, answer) => {
                must_differ = true;
                answers_so |= first
                    .is_some_and(|(text, _, mounted)| text.contains(step) && mounted == answer);
            }
            Difference::Allows(step, refused) => {
                answers_so |= first.is_some_and(|(text, native, mounted)| {
                    text.contains(step) && native == refused && !is_errno(mounted)
                });
            }
            Difference::Times(some) => letters.push_str(some),
        }
    }
    let rest = differences(row, &native.without(&letters), &mounted.without(&letters));
    let as_documented = answers_so || (!must_differ && rest.is_none());
    (!as_documented).then(|| {
        let printed = all.unwrap_or_else(|| "    no longer differs".to_owned());
        format!("    differs otherwise than documented\n{printed}")
    })
}

/// The least number of rows.
const AT_LEAST: usize = 3_000;

/// Opening, with every flag, every kind of file.
#[test]
fn files_are_opened_as_natively() {
    same_everywhere(rows::opening::rows(), Through::KernelAndDaemon);
}

/// Permission by mode, on files, directories, and every component of a path.
#[test]
fn permissions_are_as_natively() {
    same_everywhere(rows::permissions::all(), Through::Kernel);
}

/// Making and removing names, and files that live on without one.
#[test]
fn names_are_made_and_removed_as_natively() {
    same_everywhere(rows::making::rows(), Through::Kernel);
    same_everywhere(rows::removing::rows(), Through::KernelAndDaemon);
}

/// Renaming, and sticky directories.
#[test]
fn names_are_changed_as_natively() {
    let mut rows = rows::renaming::rows();
    rows.extend(rows::sticky::rows());
    same_everywhere(rows, Through::Kernel);
}

/// Modes, owners, set-id bits.
#[test]
fn modes_and_owners_are_as_natively() {
    let mut rows = rows::attributes::rows();
    rows.extend(rows::owners::rows());
    same_everywhere(rows, Through::Kernel);
    same_everywhere(rows::setid::rows(), Through::KernelAndDaemon);
}

/// Times, extended attributes, access control lists.
#[test]
fn times_and_attributes_are_as_natively() {
    same_everywhere(rows::times::rows(), Through::KernelAndDaemon);
    same_everywhere(rows::extended::rows(), Through::Kernel);
}

/// Content, mappings, direct I/O, programs, holes, allocation.
#[test]
fn content_is_as_natively() {
    let mut rows = rows::content::rows();
    rows.extend(rows::space::rows());
    same_everywhere(rows, Through::KernelAndDaemon);
}

/// Locks, listings, flags, handles.
#[test]
fn what_is_shared_is_as_natively() {
    same_everywhere(rows::sharing::rows(), Through::KernelAndDaemon);
}

/// On a read-only mount, which is writable while the rows are prepared.
#[test]
fn read_only_mounts_are_as_natively() {
    let rows = rows::read_only::rows();
    for tree in 0..2 {
        let mut places = Places::new(false);
        places.mounted = vec![places.mounted.swap_remove(tree)];
        let env = &places.env;
        check(&rows, || {
            compare(&places, &rows, &|place| {
                env.sh(match place.name {
                    "native" => "mount --bind native native; mount -o remount,bind,ro native",
                    _ => "ibifs umount A; ibifs mount -o ro,allow_other,suid,dev A.store A",
                });
            })
        });
    }
}

/// Items of another Archive (ibifs-world(1)), whose extended attributes are not published: the calls answer as on a
/// read-only mount. The item is written in a store, whose mount then gives place to that of the other Archives.
#[test]
fn items_of_other_archives_are_as_natively() {
    let mut rows = rows::read_only::rows();
    rows.retain(|row| !row.name.starts_with(rows::read_only::ATTRIBUTE));
    let answers = |seen: Vec<Seen>| seen.into_iter().map(|seen| seen.answers);
    for tree in 0..2 {
        let mut places = Places::new(false);
        let mounted = places.mounted.swap_remove(tree);
        let (env, native) = (&places.env, &places.native);
        let service = Served::start(env, "A.store");
        check(&rows, || {
            let natively = native.run("row", &rows, || {
                env.sh("mount --bind native native; mount -o remount,bind,ro native");
            });
            let there = mounted.run("row", &rows, || {
                let url = &service.url;
                env.sh(&format!(
                    "ibifs umount A; ibifs world A --archive {url} --cache C"
                ));
            });
            let both = answers(natively).zip(answers(there)).zip(&rows);
            both.filter(|((natively, there), _)| natively != there)
                .map(|((natively, there), row)| format!("{}: {natively:?}, {there:?}", row.name))
                .collect()
        });
        env.sh("ibifs umount A");
    }
}

/// The table is large enough, and says what each exception of it says in the manual.
#[test]
fn the_table_is_large_and_its_exceptions_are_in_the_manual() {
    let chapters = [
        rows::opening::rows(),
        rows::permissions::all(),
        rows::making::rows(),
        rows::removing::rows(),
        rows::renaming::rows(),
        rows::sticky::rows(),
        rows::attributes::rows(),
        rows::owners::rows(),
        rows::setid::rows(),
        rows::times::rows(),
        rows::extended::rows(),
        rows::content::rows(),
        rows::space::rows(),
        rows::sharing::rows(),
        rows::read_only::rows(),
    ];
    let rows: Vec<&Row> = chapters.iter().flatten().collect();
    assert!(rows.len() >= AT_LEAST, "{} rows", rows.len());
    let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "two rows of one name");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("man/ibifs-tree.7");
    let manual = std::fs::read_to_string(path).expect("the manual");
    let manual = manual.split_whitespace().collect::<Vec<_>>().join(" ");
    for known in EXCEPTIONS {
        assert!(
            manual.contains(known.manual),
            "not in the manual: {known:?}"
        );
        assert!(
            names.iter().any(|name| name.contains(known.rows)),
            "no such rows: {known:?}"
        );
    }
}
