//! An Archive that lies: to those who mount its items, and who follow where it redirects to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::TestEnv;
use crate::world::proxy::{answering, serving};

/// An Archive that shows an item with these lines in its inventory, and returns its URL.
fn showing(lines: &str) -> String {
    let text = format!(
        "inventory 1\nibi {{ibip 8JMKD3MGP8W/34PGRBS}}\ndirectory 6755 1.0 .\n{lines}end\n"
    );
    answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/x-ibi-inventory\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    ))
}

/// A copy by root of a file that another Archive shows is no program with root's rights.
#[test]
fn no_inventory_gives_set_id_bits() {
    let env = TestEnv::new();
    let url = showing(
        "directory 2755 1.0 bin\nfile 2755 1.0 bin/a 0 1 -\nfile 4755 1.0 bin/b 0 1 -\nfile 7777 1.0 bin/c 0 1 -\n",
    );
    env.prints(
        &format!(
            "mkdir M; ibifs world M --archive {url} --cache C; cd M/8JMKD3MGP8W/34PGRBS; stat -c '%a %n' . bin bin/*
             cp -a bin ../../../copy; cd ../../..; stat -c %a copy copy/*; find copy -perm /6000; ibifs umount M"
        ),
        "755 .\n755 bin\n755 bin/a\n755 bin/b\n1777 bin/c\n755\n755\n755\n1777",
    );
}

/// An Archive at an address that is not public leads to no other service of its machine.
#[test]
fn no_redirection_leads_to_another_port() {
    let env = TestEnv::new();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let inner = serving(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
    });
    let url = answering(format!(
        "HTTP/1.1 302 Found\r\nLocation: {inner}/x\r\nContent-Length: 0\r\n\r\n"
    ));
    env.prints(
        &format!(
            "mkdir M; ibifs world M --archive {url} --cache C; {{ LC_ALL=C timeout 60 ls M/8JMKD3MGP8W/34PGRBS 2>&1 || true; }} | sed 's/.*: //'
             ibifs umount M; ibifs init B.store --host b.example.org > /dev/null
             timeout 60 ibifs copy --from {url} 8JMKD3MGP8W/34PGRBS B.store > /dev/null 2>&1 || echo $?"
        ),
        "No route to host\n1",
    );
    assert_eq!(requests.load(Ordering::Relaxed), 0);
}
