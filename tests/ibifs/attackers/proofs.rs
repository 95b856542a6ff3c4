//! A server in the place of an Archive that lies about the removal of an original: a copy becomes the original
//! only by an answer of the Archive that its sidecar names, about this item, that it was removed.

use std::sync::{Arc, Mutex};

use crate::http::stub::{Reply, Stub};
use crate::support::TestEnv;

const ITEM: &str = "stub.example.org/s1/2021/02.02.02.02";
const OTHER: &str = "stub.example.org/s1/2021/03.03.03.03";

#[test]
fn a_copy_becomes_the_original_by_a_true_proof_alone() {
    let said = Arc::new(Mutex::new(String::new()));
    let saying = Arc::clone(&said);
    let stub = Stub::start(1, move |_| {
        let text = saying.lock().expect("the answer").clone();
        match text.strip_prefix("raw ") {
            Some(raw) => Reply::Raw(raw.as_bytes().to_vec()),
            None => Reply::Text(text),
        }
    });
    let (service, address) = (&stub.service, &stub.address);
    let env = TestEnv::new();
    env.sh(&format!(
        "ibifs init B --host archive-b.example.net > /dev/null; mkdir -p B/col/{ITEM}/doc
         printf 'ibi {{rep {ITEM}}}\\nibi.archiveservice {{rep {service}}}\\n' > B/col/{ITEM}/.ibi; ibifs reindex B"
    ));
    let claim =
        format!("timeout 20 ibifs claim --store B {ITEM} --from http://{address}/{service}");
    let answer = |item: &str, service: &str, state: &str| {
        format!("ibi {{rep {item}}}\nibi.archiveservice {{rep {service}}}\nstate {state}\n")
    };
    let own = env.sh("sed -n 's/^ibi.archiveservice {rep \\([^ }]*\\).*/\\1/p' B/archive.ibi");
    for lie in [
        answer(OTHER, service, "Deleted"),
        answer(ITEM, OTHER, "Deleted"),
        answer(ITEM, &own, "Deleted"),
        answer(ITEM, service, "Original"),
        answer(ITEM, service, "Copy"),
        answer(ITEM, service, "Gone"),
        answer(ITEM, service, ""),
        // A statement about another item before, with this one after it.
        format!(
            "{}ibi.other {{rep {ITEM}}}\n",
            answer(OTHER, service, "Deleted")
        ),
        format!("ibi {{rep {ITEM}}}\nstate Deleted\n"),
        format!("ibi.archiveservice {{rep {service}}}\nstate Deleted\n"),
        "state Deleted\n".to_owned(),
        String::new(),
        "<html>Deleted</html>".to_owned(),
        "raw HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\nstate Deleted".to_owned(),
        format!(
            "raw HTTP/1.1 500 Oh\r\nContent-Length: {}\r\n\r\n{}",
            answer(ITEM, service, "Deleted").len(),
            answer(ITEM, service, "Deleted")
        ),
        // Cut off.
        format!(
            "raw HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{}",
            answer(ITEM, service, "Deleted")
        ),
    ] {
        said.lock().expect("the answer").clone_from(&lie);
        let ended = env.run(&claim);
        let (code, state) = (ended.status.code(), state(&env));
        assert!(code != Some(0) && code != Some(124), "{code:?} for {lie}");
        assert_eq!(state, "Copy", "{lie}");
        let kept = env.sh(&format!("grep -cF {service} B/col/{ITEM}/.ibi"));
        assert_eq!(kept, "1", "{lie}");
    }
    // Another server than the one of the Archive that the sidecar names.
    said.lock()
        .expect("the answer")
        .clone_from(&answer(ITEM, OTHER, "Deleted"));
    let ended = env.run(&format!(
        "timeout 20 ibifs claim --store B {ITEM} --from http://{address}/{OTHER}"
    ));
    assert_eq!(ended.status.code(), Some(4));
    assert_eq!(state(&env), "Copy");
    said.lock()
        .expect("the answer")
        .clone_from(&answer(ITEM, service, "Deleted"));
    env.sh(&claim);
    assert_eq!(state(&env), "Original");
}

fn state(env: &TestEnv) -> String {
    env.sh(&format!(
        "ibifs show --json --store B {ITEM} | jq -r .state"
    ))
}
