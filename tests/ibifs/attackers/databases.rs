//! A server that pretends to be the database of a store: it gets no password that is not for it, and no command
//! waits for it. And a second database for one tree.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::TestEnv;

/// A server that requests the password in clear text, and refuses TLS. Its threads end with the process of the tests.
struct FakeServer {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl FakeServer {
    fn start(address: &str) -> FakeServer {
        let listener = TcpListener::bind((address, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let hears = Arc::clone(&hears);
                std::thread::spawn(move || {
                    let heard = password_of(client).unwrap_or_else(|| "none".to_owned());
                    let mut hears = hears.lock().unwrap_or_else(PoisonError::into_inner);
                    hears.push(heard);
                });
            }
        });
        FakeServer { port, heard }
    }

    /// Returns the passwords that clients have sent since the last call.
    fn heard(&self) -> Vec<String> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut heard: Vec<String> = heard.drain(..).filter(|heard| heard != "none").collect();
        heard.dedup();
        heard
    }
}

/// Speaks as a server of PostgreSQL until the client has sent a password or left.
fn password_of(mut client: TcpStream) -> Option<String> {
    const TLS: u32 = 80_877_103;
    let number = |client: &mut TcpStream| {
        let mut bytes = [0; 4];
        client.read_exact(&mut bytes).ok()?;
        Some(u32::from_be_bytes(bytes))
    };
    let rest = |client: &mut TcpStream, length: u32| {
        let mut rest = vec![0; usize::try_from(length).ok()?];
        client.read_exact(&mut rest).ok()?;
        Some(rest)
    };
    loop {
        let length = number(&mut client)?;
        if number(&mut client)? != TLS {
            rest(&mut client, length.checked_sub(8)?)?;
            break;
        }
        client.write_all(b"N").ok()?;
    }
    // AuthenticationCleartextPassword.
    client.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).ok()?;
    let mut kind = [0];
    client.read_exact(&mut kind).ok()?;
    let length = number(&mut client)?;
    let password = rest(&mut client, length.checked_sub(4)?)?;
    Some(
        String::from_utf8_lossy(&password)
            .trim_end_matches('\0')
            .to_owned(),
    )
}

/// A password goes to a server that the caller has named, not to one that only a store names.
#[test]
fn a_password_goes_where_it_belongs() {
    let env = TestEnv::new().with_index_file();
    let near = FakeServer::start("127.0.0.1");
    let far = FakeServer::start("127.0.0.2");
    env.sh("ibifs init S --host a.example.org; cp S/archive.ibi facts");
    let (here, there) = (near.port, far.port);
    let plain = format!("postgres://ibifs@127.0.0.1:{here}/d");
    let url = |tail: &str| format!("{plain}{tail}");
    let near_line = format!("127.0.0.1:{here}:*:ibifs:secret");
    let far_line = format!("127.0.0.2:{there}:*:ibifs:secret");
    let both = format!("{near_line}\\n{far_line}");
    let cases = [
        // The URL in archive.ibi, the file of passwords, the environment, and whether the password is heard.
        (url(""), "*:*:*:ibifs:secret", "", false),
        (url(""), "127.0.0.1:*:*:ibifs:secret", "", false),
        (url(""), near_line.as_str(), "", true),
        (url(""), "", "PGPASSWORD=secret", false),
        (url(""), "", "PGPASSWORD=secret PGHOST=127.0.0.1", false),
        (
            url(""),
            "",
            &*format!("PGPASSWORD=secret PGHOST=127.0.0.1 PGPORT={here}"),
            true,
        ),
        // A connection that refuses TLS is not a TLS connection.
        (url("?sslmode=require"), near_line.as_str(), "", false),
        (
            format!("postgres://ibifs@127.0.0.2:{there}/d"),
            far_line.as_str(),
            "",
            false,
        ),
        (
            format!("postgres://ibifs@127.0.0.2:{there}/d?sslmode=prefer"),
            far_line.as_str(),
            "",
            false,
        ),
        (
            format!("postgres://ibifs@127.0.0.2:{there}/d?sslmode=disable"),
            far_line.as_str(),
            "",
            true,
        ),
        // A connection that goes to another address than the trusted name, and several servers.
        (
            format!("postgres://ibifs@localhost:{here}/d?hostaddr=127.0.0.1&sslmode=disable"),
            &*format!("localhost:{here}:*:ibifs:secret"),
            "",
            false,
        ),
        (
            format!("postgres://ibifs@127.0.0.1:{here},127.0.0.2:{there}/d?sslmode=disable"),
            near_line.as_str(),
            "",
            false,
        ),
        (
            format!("postgres://ibifs@127.0.0.1:{here},127.0.0.2:{there}/d?sslmode=disable"),
            both.as_str(),
            "",
            true,
        ),
    ];
    for owner in ["0", "1001"] {
        for (url, passwords, variables, is_heard) in &cases {
            env.sh(&format!(
                "printf '{passwords}\\n' > .pgpass; chmod 600 .pgpass; cp facts S/archive.ibi
                 echo 'index {url}' >> S/archive.ibi; chown {owner} S S/archive.ibi
                 code=0; {variables} timeout -k 1 20 ibifs ls S 2> said || code=$?; test $code -gt 0 -a $code -lt 100
                 grep -q 'the index in' said"
            ));
            let mut heard = near.heard();
            heard.extend(far.heard());
            heard.dedup();
            let expected = if *is_heard {
                vec!["secret".to_owned()]
            } else {
                Vec::new()
            };
            assert_eq!(heard, expected, "{owner} {url} {passwords} {variables}");
        }
    }
    // The message says what is withheld, with the remedy; on the command line the caller names the server.
    env.sh(&format!(
        "rm .pgpass; cp facts S/archive.ibi; echo 'index {plain}' >> S/archive.ibi
         no env PGPASSWORD=secret ibifs ls S; {{ PGPASSWORD=secret ibifs ls S 2>&1 || true; }} | grep -q 'PGHOST and PGPORT'"
    ));
    assert_eq!(near.heard(), Vec::<String>::new());
    env.sh(&format!(
        "PGPASSWORD=secret timeout -k 1 20 ibifs resolver list --db '{plain}' 2> said && exit 1; test $? -lt 100"
    ));
    assert_eq!(near.heard(), ["secret"]);
}

/// A dump of the index in a second database, which archive.ibi names while hosts write the first one: it is not written
/// beside that. When nothing writes the first one any more, the index has moved.
#[test]
fn a_second_database_of_one_tree_is_refused() {
    let env = TestEnv::new().with_postgres();
    env.sh(
        r#"ibifs init S --host a.example.org --index "$(database)" > /dev/null; first=$(sed -n 's/^index //p' S/archive.ibi)
        mkdir m n; ibifs mount -o shared S m; mkdir m/.mint/one; second=$(database)
        pg_dump "$first" | psql -q "$second" > /dev/null; psql -q "$second" -c 'DELETE FROM host'; cp S/archive.ibi facts; sed -i "s|^index .*|index $second|" S/archive.ibi
        code=0; timeout -k 1 30 ibifs mount -o shared S n 2> said || code=$?; test $code = 4
        grep -q "the index of this store is in ${first#*@} (process [0-9]* of" said; grep -q "remove '$PWD/S/database'" said
        no timeout -k 1 30 ibifs mint S
        cp facts S/archive.ibi; ibifs mount -o shared S n; mkdir n/.mint/two; test $(ibifs ls S | wc -l) = 3; ibifs umount n; ibifs umount m
        sed -i "s|^index .*|index $second|" S/archive.ibi; ibifs reindex S; ibifs mint S > /dev/null
        test "$(cat S/database)" = "$second"; ibifs fsck S; ibifs backup S copy; test ! -e copy/database
        ibifs reindex S --to file; test ! -e S/database"#,
    );
}

/// A server that takes connections and says nothing is away after some seconds.
#[test]
fn a_silent_server_is_given_up() {
    let env = TestEnv::new().with_index_file();
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = silent.local_addr().expect("bound").port();
    env.sh(&format!(
        "ibifs init S --host a.example.org; echo 'index postgres://ibifs@127.0.0.1:{port}/d' >> S/archive.ibi
         code=0; timeout -k 1 30 ibifs ls S 2> said || code=$?; test $code -lt 100; grep -q 'does not answer' said"
    ));
}
