//! A client of `ibifs serve` who takes all connections, a page elsewhere that takes what is not for it, and
//! the holder of a token who speaks for other Archives.

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

use crate::http::served::Served;
use crate::support::TestEnv;

/// More than one client may have, and fewer than there are in all.
const MANY: usize = 600;

/// A connection from an address of this machine.
pub fn connect_from(source: &str, served: &Served) -> TcpStream {
    let named = |text: &str| {
        let address: SocketAddrV4 = text.parse().expect("an address");
        libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: address.port().to_be(),
            sin_addr: libc::in_addr {
                s_addr: u32::from_ne_bytes(address.ip().octets()),
            },
            sin_zero: [0; 8],
        }
    };
    let (from, to) = (named(&format!("{source}:0")), named(served.address()));
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the addresses live as long as the calls and are as long as said; the descriptor is new, and
    // given to the stream alone.
    let stream = unsafe {
        let made = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(made >= 0, "a socket");
        let bound = libc::bind(made, (&raw const from).cast(), length);
        assert_eq!(bound, 0, "{source} is of this machine");
        let connected = libc::connect(made, (&raw const to).cast(), length);
        assert_eq!(connected, 0, "it listens");
        TcpStream::from_raw_fd(made)
    };
    let timeout = Some(Duration::from_secs(30));
    stream.set_read_timeout(timeout).expect("a time limit");
    stream
}

/// A client that opens connections and continues to send requests on each takes so many, and no other is denied an
/// answer.
#[test]
fn one_client_does_not_take_all_connections() {
    let env = TestEnv::new().with_a();
    let served = Served::start(&env, "A.store");
    let request = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut kept: Vec<TcpStream> = Vec::new();
    let (mut refused, mut requested) = (0, Instant::now());
    for _ in 0..MANY {
        // A connection without a request is closed after 30 seconds, which pass on a busy machine.
        if requested.elapsed() > Duration::from_secs(5) {
            for stream in &mut kept {
                let _ = stream.write_all(request);
            }
            requested = Instant::now();
        }
        let mut stream = connect_from("127.0.0.2", &served);
        let _ = stream.write_all(request);
        let mut answer = [0; 64];
        match stream.read(&mut answer) {
            Ok(count) if answer[..count].starts_with(b"HTTP/1.1 404") => kept.push(stream),
            _ => refused += 1,
        }
    }
    assert_eq!((kept.len(), refused), (256, MANY - 256));
    for other in ["127.0.0.3", "127.0.0.1"] {
        let script =
            format!("curl -s -o /dev/null --interface {other} -w '%{{http_code}}' $U/nothing");
        served.prints(&env, &script, "404");
    }
    drop(kept);
    served.prints(
        &env,
        "waits eval 'test $(status --interface 127.0.0.2 $U/nothing) = 404'",
        "",
    );
}

/// Every answer says that no referrer is sent, and whose pages may hold it: content is
/// for all, since a page in an item has no origin, and the rest is for this service.
#[test]
fn answers_say_who_may_hold_them() {
    let env = TestEnv::new().with_a();
    env.sh(
        "ibifs mint A | head -n 1 > x; echo x > A/$(< x)/doc/x.png; echo y > A/$(< x)/doc/y.html",
    );
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        "of() { line referrer-policy \"$@\"; line cross-origin-resource-policy \"$@\"; }
         for path in / /nothing /oai?verb=Identify \"/$(< x)?ibiurl.verblist=GetFileList\" \"/$(< x):(oai_dc)\" /%; do of $U$path; done | sort | uniq -c | tr -s ' '
         of -X DELETE $U/; of -X POST $U/; of $U/col/$(< x)/doc/x.png; of -H 'Range: bytes=0-0' $U/col/$(< x)/doc/y.html; of $U/col/$(< x)/doc",
        " 6 no-referrer\n 6 same-origin\nno-referrer\nsame-origin\nno-referrer\nsame-origin\n\
         no-referrer\ncross-origin\nno-referrer\ncross-origin\nno-referrer\ncross-origin",
    );
    let resolver = Served::resolver(&env, "");
    resolver.prints(
        &env,
        "for path in / /x /8JMKD3MGP8W/34PGRBS; do line referrer-policy $U$path; line cross-origin-resource-policy $U$path; done | sort | uniq -c | tr -s ' '",
        " 3 no-referrer\n 3 same-origin",
    );
}

/// With a token that names no Archive copies are sent; originals are taken from the Archive that the line of
/// the token names, and from no other.
#[test]
fn a_token_speaks_for_its_own_archive_alone() {
    let env = TestEnv::new();
    env.sh(
        "for s in A B C; do ibifs init $s --host archive-$s.example.org > /dev/null; sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' $s/archive.ibi > $s.service; done
         ibifs mint A | head -n 1 > one; for t in any a c; do head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > $t; done
         (cat any; echo; echo \"$(< a) $(< A.service)\"; echo \"$(< c) $(< C.service)\") > tokens; chmod 600 tokens any a c",
    );
    let served = Served::start(&env, "B --transfer-token-file tokens");
    served.prints(
        &env,
        "ibifs copy --store A --token-file any $(< one) $U/ | head -n 1 | cut -d : -f 1
         post() { curl -s -X POST -o answer -w '%{http_code}\\n' -H \"Authorization: Bearer $T\" \"$U/transfer?step=$1&rep=$(< one)&from.rep=$(< A.service)&word=${2-}\"; }
         for t in any c; do T=$(< $t); post expect; grep -o 'not that of the Archive' answer; done
         T=$(< a) post expect; w=$(tr -d '\\r' < answer | sed 's/word //')
         for t in any c; do T=$(< $t) post take $w; done; ibifs show --store B $(< one) | sed -n 's/^state *//p'
         ibifs transfer --store A --token-file any $(< one) $U/ > /dev/null 2>&1 || true; ibifs show --store A $(< one) | sed -n 's/^state *//p'
         ibifs transfer --store A --token-file a $(< one) $U/ > /dev/null; for s in A B; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; done",
        "copied\n409\nnot that of the Archive\n409\nnot that of the Archive\n200\n409\n409\nCopy\nOriginal\nCopy\nOriginal",
    );
}
