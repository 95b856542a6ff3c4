use std::os::fd::AsFd;

use super::*;
use crate::os::testing::TemporaryDirectory;

fn present(text: &str) -> RecordState {
    RecordState::Present {
        digest: text.as_bytes().to_vec(),
        has_form: text.is_empty(),
    }
}

fn names(page: &HarvestPage) -> Vec<(&str, i64, bool)> {
    let records = page.records.iter();
    records
        .map(|record| (record.name.as_str(), record.datestamp, record.is_deleted))
        .collect()
}

/// A new service may receive its first requests at the same time.
#[test]
fn a_new_database_is_kept_by_all_who_open_it_at_once() {
    for _ in 0..20 {
        let path = TemporaryDirectory::new();
        let directory = path.opened();
        std::thread::scope(|scope| {
            let open = || Harvest::open(directory.as_fd(), None).expect("a database");
            let opening: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            for opened in opening {
                assert!(opened.join().expect("no panic").is_kept());
            }
        });
    }
}

#[test]
fn only_what_differs_gets_a_new_datestamp() {
    let harvest = Harvest::temporary().expect("a database");
    let note = |name: &str, state: RecordState, now: i64| {
        let noted = harvest.note(&[(name.to_owned(), state)], &|| now);
        let noted = noted.expect("noted").pop().flatten();
        noted.map(|record| (record.datestamp, record.is_deleted))
    };
    assert_eq!(note("a", RecordState::Withdrawn, 1), None);
    assert_eq!(note("a", present("x"), 2), Some((2, false)));
    assert_eq!(note("a", present("x"), 3), Some((2, false)));
    assert_eq!(note("a", present("y"), 4), Some((4, false)));
    assert_eq!(note("a", RecordState::Withdrawn, 5), Some((5, true)));
    assert_eq!(note("a", RecordState::Removed, 6), Some((5, true)));
    assert_eq!(note("a", present("y"), 7), Some((7, false)));
    assert_eq!(note("b", RecordState::Removed, 8), Some((8, true)));
    // The clock was set back.
    assert_eq!(note("a", present("z"), 3), Some((8, false)));
    assert_eq!(harvest.earliest().expect("read"), Some(8));
    assert_eq!(harvest.names_after("", 9).expect("read"), ["a"]);
    assert_eq!(harvest.names_after("a", 9).expect("read"), [""; 0]);
}

#[test]
fn records_below_a_name() {
    let harvest = Harvest::temporary().expect("a database");
    let page = |window: Window, most: usize| harvest.page(&window, most, &|| 99).expect("a page");
    let within = |below: &str| Window {
        below: Some(below.to_owned()),
        ..Window::default()
    };
    for name in ["b", "a", "x/y/1", "x/y-z/1", "x/y0/1"] {
        let noted = harvest.note(&[(name.to_owned(), present(name))], &|| 99);
        noted.expect("noted");
    }
    assert_eq!(names(&page(within("x/y"), 9)), [("x/y/1", 99, false)]);
    assert_eq!(page(within("x"), 9).records.len(), 3);
    assert_eq!(page(within(""), 9).records.len(), 0);
    let count = |window: &Window| harvest.count(window).expect("a count");
    assert_eq!(
        (
            count(&Window::default()),
            count(&within("x")),
            count(&within(""))
        ),
        (5, 3, 0)
    );
    let of = |name: &str| match name.rsplit_once('/') {
        Some((above, _)) => above.to_owned(),
        None => name.to_owned(),
    };
    let beginnings = |most: usize| harvest.beginnings(&of, most).expect("beginnings");
    assert_eq!(beginnings(99), ["a", "b", "x/y-z", "x/y", "x/y0"]);
    assert_eq!(beginnings(2), ["a", "b"]);
}

#[test]
fn pages_follow_one_another() {
    let harvest = Harvest::temporary().expect("a database");
    assert_eq!(harvest.earliest().expect("read"), None);
    for (name, now) in [("c", 10), ("a", 10), ("b", 10), ("e", 20), ("d", 30)] {
        let noted = harvest.note(&[(name.to_owned(), present(name))], &|| now);
        noted.expect("noted");
    }
    let page = |window: Window, most: usize| harvest.page(&window, most, &|| 99).expect("a page");
    let first = page(Window::default(), 2);
    assert_eq!(names(&first), [("a", 10, false), ("b", 10, false)]);
    assert!(first.has_more && first.at == 99);
    let after = |datestamp: i64, name: &str| Window {
        after: Some((datestamp, name.to_owned())),
        ..Window::default()
    };
    let second = page(after(10, "b"), 3);
    assert_eq!(
        names(&second),
        [("c", 10, false), ("e", 20, false), ("d", 30, false)]
    );
    assert!(!second.has_more);
    assert_eq!(names(&page(after(30, "d"), 3)), []);
    let both = Window {
        from: Some(20),
        until: Some(20),
        after: None,
        ..Window::default()
    };
    assert_eq!(names(&page(both, 3)), [("e", 20, false)]);
    // A changed record moves to the end of the list, where a later page contains it.
    let changed = harvest.note(&[("a".to_owned(), RecordState::Removed)], &|| 40);
    changed.expect("noted");
    assert_eq!(
        names(&page(after(20, "e"), 3)),
        [("d", 30, false), ("a", 40, true)]
    );
}

/// The lists of a form leave out items without it, but not deleted ones.
#[test]
fn records_with_a_form() {
    let harvest = Harvest::temporary().expect("a database");
    for (name, state) in [
        ("a", present("x")),
        ("b", present("")),
        ("c", RecordState::Removed),
    ] {
        let noted = harvest.note(&[(name.to_owned(), state)], &|| 1);
        noted.expect("noted");
    }
    let window = |with_form: bool| Window {
        with_form,
        ..Window::default()
    };
    let read = |with_form: bool| {
        let page = harvest.page(&window(with_form), 9, &|| 99).expect("a page");
        let count = harvest.count(&window(with_form)).expect("a count");
        assert_eq!(count, page.records.len() as u64);
        page
    };
    assert_eq!(names(&read(true)), [("b", 1, false), ("c", 1, true)]);
    assert_eq!(read(false).records.len(), 3);
}

#[test]
fn pages_go_by_the_index() {
    let harvest = Harvest::temporary().expect("a database");
    let with_form = harvest.run(|connection| Ok(with_form(connection)));
    let with_form = with_form.expect("a condition");
    for (condition, index) in [("TRUE", "record_by_date"), (with_form, "record_with_form")] {
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT name, datestamp, mark IS NULL FROM record
             WHERE (datestamp, name) > (1, 'a') AND datestamp <= 9 AND {condition}
             ORDER BY datestamp, name LIMIT 10"
        );
        let plan = harvest.run(|connection| connection.first(&sql, &[], |row| row.get("detail")));
        let plan: String = plan.expect("a plan").expect("a line");
        let expected = format!("SEARCH record USING INDEX {index} ");
        assert!(plan.starts_with(&expected), "{plan}");
    }
}
