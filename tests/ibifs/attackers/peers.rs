//! An Archive that lies: to those who mount its items, who follow where it redirects to, and who ask a resolver for
//! the original of another Archive's item.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::http::served::{Served, registry};
use crate::http::stub::{Reply, Stub};
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

/// A copy by root of a file that another Archive shows is not a program with root's rights.
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

/// An item of the stub Archive 0 by its rep, by other spellings, and by an IBIp of the address 127.0.0.1.
fn spellings() -> [String; 4] {
    let prefix = ibi::ibip::IbipPrefix::from_address([127, 0, 0, 1].into(), 80);
    [
        "stub.example.org/s0/2009/02.16.17.46".to_owned(),
        "Stub.Example.org/S0@80/2009/02.16.17.46".to_owned(),
        "stub.example.org./s0.1905/2009/02.16.17.46".to_owned(),
        format!("{prefix}/34PGRBT"),
    ]
}

/// Starts an Archive that claims the original of everything.
fn liar() -> Stub {
    Stub::start(1, |query| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
        let form = if ibi.matches('/').count() == 3 {
            "rep"
        } else {
            "ibip"
        };
        Reply::Text(format!(
            "ibi {{{form} {ibi}}} state Original contenttype Data url http://evil.example/x urlkey 1234567890 \
             state.lastedition Original contenttype.lastedition Data url.lastedition http://evil.example/y"
        ))
    })
}

/// Prints the status, and where a reader is sent, of an item as it is and with its original required.
fn goes(env: &TestEnv, resolver: &Served, item: &str) -> String {
    resolver.sh(
        env,
        &format!(
            "for path in '{item}' '{item}?ibiurl.requireditemstatus=Original'; do
                 curl -s -o /dev/null -w '%{{http_code}}%{{redirect_url}} ' \"$U/$path\"; done"
        ),
    )
}

const COPY_ONLY: &str = "302http://evil.example/x 503 ";
const ACCEPTED: &str = "302http://evil.example/x 302http://evil.example/x ";

/// While the Archive that made an identifier does not answer, another's claim to the original is worth a copy.
#[test]
fn no_original_is_claimed_of_an_archive_that_is_silent() {
    let env = TestEnv::new();
    let registry = registry(&env, "r.db");
    let is_silent = Arc::new(AtomicBool::new(true));
    let silence = Arc::clone(&is_silent);
    let maker = Stub::start(0, move |_| {
        if silence.load(Ordering::Relaxed) {
            Reply::Never
        } else {
            Reply::Text(String::new())
        }
    });
    maker.include(&registry);
    liar().include(&registry);
    let resolver = Served::resolver(&env, "");
    let items = spellings();
    for item in &items {
        assert_eq!(goes(&env, &resolver, item), COPY_ONLY, "{item}");
    }
    assert_eq!(
        goes(&env, &resolver, &format!("{}!", items[0])),
        "302http://evil.example/y 503 "
    );
    // Another maker's, of which no Archive is registered.
    assert_eq!(
        goes(&env, &resolver, "example.org/other/2009/02.16.17.46"),
        ACCEPTED
    );
    // The maker answers, and does not have it: it was transferred.
    is_silent.store(false, Ordering::Relaxed);
    assert_eq!(goes(&env, &resolver, &items[0]), ACCEPTED);
}

/// The same of an Archive that was stopped or has never been there, until it is unregistered.
#[test]
fn no_original_is_claimed_of_an_archive_that_was_stopped() {
    let env = TestEnv::new();
    let registry = registry(&env, "r.db");
    let maker = Stub::start(0, |_| Reply::Never);
    maker.include(&registry);
    maker.exclude(&registry);
    liar().include(&registry);
    let resolver = Served::resolver(&env, "");
    let items = spellings();
    for item in &items {
        assert_eq!(goes(&env, &resolver, item), COPY_ONLY, "{item}");
    }
    resolver.prints(
        &env,
        &format!(
            "ibifs resolver unregister --db r.db {}
             for i in $(seq 500); do curl -s -o /dev/null -w '%{{http_code}}' \"$U/{}?ibiurl.requireditemstatus=Original\" | grep 302 && break; sleep .02; done",
            maker.service, items[0]
        ),
        "302",
    );
}
