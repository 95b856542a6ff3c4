//! Levels (`/col/<path>?level`), from which `ibifs mount URL` lists an Archive.

use super::served::Served;
use crate::support::TestEnv;

/// The names of all pages of a level, and the lines that begin further pages.
const TOOLS: &str = r#"
names() { local url="$U/$1?level"; : > more; while test -n "$url"; do curl -sf "$url" > page || return 1
    sed -n '3,$s/^\(level\|prefix\|item\) \([^ ]* \)*/\1 /p' page; grep ^more page >> more || true
    url=$(sed -n "s|^more |$U/$1?level=|p" page); done; }
code() { local url; for url; do curl -s -o /dev/null -w '%{http_code}\n' "$url"; done; }
"#;

/// It has what the public may see, each item once.
#[test]
fn it_has_what_is_public() {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"for rep in a.org/w/2001/01.01.00.00 a.org/w/2001/02.02.00.00 A.net/W@80/1999/12.31.23.59.59 b.org/shut/2001/01.01.00.00 \
            c.org/w/2001/01.01.00.00; do mkdir -p A/$rep/doc; done
        mkdir -p A/8JMKD3MGP8W/34PGRBS/doc A/6RPa7umaZ/UaJFT; chmod 700 A/a.org/w/2001/02.02.00.00 A/b.org/shut A/c.org/w/2001/01.01.00.00 A/6RPa7umaZ/UaJFT
        chmod 750 A/a.org; chmod o+x A/a.org; touch -d '2001-02-03T04:05:06.789Z' A/a.org/w/2001 A/a.org/w"#,
    );
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{TOOLS}
        names "" | grep -v example; names col/a.org; curl -s $U/A.ORG/W/2001?level; names 8JMKD3MGP8W; names col/a.net/w@80; names A.net/W@80/1999
        curl -s $U/a.org?level | sed -n 3p; curl -s $U/a.org?level | sed -n 2p | cut -d ' ' -f 2,4
        code $U/b.org?level $U/c.org?level $U/6RPa7umaZ?level $U/a.or?level $U/a.org/w/2001/01.01.00.00?level $U/..%2fx?level $U/a.org?level=x
        curl -s "$U/a.org/w/2001?level=i1" "$U/a.org/w/2001?level=la.org/w/1" "$U/?level=la" | grep -c 02.02 || true"#
        ),
        "level A.net\nlevel a.org\nprefix 8JMKD3MGP8W\nlevel w\n\
         level 1\nof 1777 981173106.789000000 a.org/w/2001\nitem 01.01.00.00\nend\nitem 34PGRBS\nlevel 1999\nitem 12.31.23.59.59\n\
         level 755 981173106.789000000 w\n751 a.org\n404\n404\n404\n404\n404\n404\n400\n0",
    );
}

/// Its entity tag changes with what is below it, and with nothing else.
#[test]
fn its_tag_changes_with_the_level() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p A/a.org/w/2001/01.01.00.00/doc");
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        r#"tag() { line etag "$U/col/a.org/w/2001?level"; }
        asks() { : > body; curl -s -o body -w "%{http_code} $1\n" -H "If-None-Match: $first" "$U/col/a.org/w/2001?level"; }
        first=$(tag); asks same; wc -c < body; echo x > A/a.org/w/2001/01.01.00.00/doc/x; ibifs mint A > /dev/null; asks same
        # Other processes know a new item 10 ms later.
        mkdir A/a.org/w/2001/01.02.00.00; waits eval '[ "$(tag)" != "$first" ]'; asks made; first=$(tag); chmod 700 A/a.org/w/2001/01.02.00.00; asks hidden; first=$(tag)
        chmod 700 A/a.org/w/2001; curl -s -o /dev/null -w '%{http_code}\n' "$U/col/a.org/w/2001?level""#,
        "304 same\n0\n304 same\n200 made\n200 hidden\n404",
    );
}

/// A large level has pages, which have each name once and no hidden name.
#[test]
fn a_large_level_has_pages() {
    let env = TestEnv::new();
    env.sh(
        r#"ibifs init A.store --host archive-a.example.org > /dev/null
        python3 -c '
import os
def make(year, count, hidden):
    for number in range(count):
        path = "A.store/col/a.org/w/%d/%02d.%02d.%02d.%02d" % (year, number // 28 // 24 // 60 % 12 + 1, number // 24 // 60 % 28 + 1, number // 60 % 24, number % 60)
        os.makedirs(path, 0o700 if hidden(number) else 0o755)
make(2001, 5000, lambda number: False)
make(2002, 5000, lambda number: 100 <= number < 4700)
'
        ibifs reindex A.store > /dev/null; chmod 755 A.store/col/a.org/w/200? A.store/col/a.org/w A.store/col/a.org"#,
    );
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{TOOLS}
        names col/a.org/w/2001 > names; wc -l < names; sort -u names | wc -l; wc -l < more
        names col/a.org/w/2002 > names; wc -l < names; sort -u names | wc -l; sed 's/[0-9]*$//' more
        sed -n 's/item //p' names | while read -r name; do test $(stat -c %a A.store/col/a.org/w/2002/$name) = 755; done"#
        ),
        "5000\n5000\n2\n400\n400\nmore i",
    );
}
