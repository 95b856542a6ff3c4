//! An Archive that lies to those who mount its items.

use crate::support::TestEnv;
use crate::world::proxy::answering;

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
