//! Items of other Archives as files (ibifs-world(1)): real services and a resolver on this machine, with a proxy between
//! that delays, cuts, stalls and corrupts.

mod archive;
mod beside;
pub mod cache;
mod copying;
mod life;
pub mod proxy;
mod reading;
mod tree;
mod trouble;

use crate::http::served::Served;
use crate::support::{TestEnv, assert_printed};
use proxy::Proxy;

/// An Archive with some items, which is served, and mounted at `M` by way of a proxy.
pub struct World {
    // Dropped in this order.
    proxy: Proxy,
    served: Served,
    env: TestEnv,
}

/// The functions that scripts use. `asked` prints the number of requests that a command causes.
const TOOLS: &str = r#"
. ./vars
requests() { ibifs world status M --json | jq .requests; }
asked() { local before=$(requests); "$@" > /dev/null; echo $(($(requests) - before)); }
# Mounts with the options that a test needs.
world() { ibifs world M --archive $PROXY --cache C "$@"; }
complains() { { LC_ALL=C "$@" 2>&1 > /dev/null && echo no error || echo $?; } | sed "s/'[^']*'/PATH/g"; }
# The process that uses the cache.
process() { cat C/lock; }
is_over() { ! kill -0 $1 2> /dev/null; }
# Unmounts, and removes the cache when its process is gone.
forget() { local used=$(process); ibifs umount M; waits is_over $used; rm -r C; }
"#;

impl World {
    /// The Archive A: item `one` has files of all kinds, `two` is its next edition.
    fn archive() -> TestEnv {
        let env = TestEnv::new().with_a();
        env.sh(
            r#"
            one=$(ibifs mint A | head -n 1) two=$(ibifs mint A --edition-of A/$one | head -n 1)
            mkdir -p A/6RPa7umaZ/UaJFT/doc; echo old > A/6RPa7umaZ/UaJFT/doc/x
            echo 'title: Rainfall' > "A/$one:"; echo second > A/$two/doc/y
            (cd A/$one/doc; mkdir -p 'a b/c' empty; echo deep > 'a b/c/deep'; echo text > x.txt; ln x.txt hard
            ln -s x.txt link; ln -s ../../../../../$two out; ln -s nowhere broken; ln -s /etc/passwd absolute; mkfifo pipe
            printf latin > $'Relat\xf3rio'; printf control > $'c\x01\n'; : > nothing; touch -d 2020-02-02T02:02:02.5 x.txt
            head -c 9000000 /dev/urandom > big; touch -d 2021-02-02 big; echo secret > secret; chmod 600 secret; mkdir shut; echo x > shut/x
            chmod 700 shut; chmod 755 x.txt)
            echo "one=$one two=$two ibip=$(ibip A/$one) D=$PWD/A/$one/doc" > vars; mkdir M"#,
        );
        env
    }

    /// The Archive, served behind a proxy.
    pub fn new() -> World {
        World::of(World::archive())
    }

    /// The same, where a scrub has recorded the digests of all files.
    fn scrubbed() -> World {
        let env = World::archive();
        env.sh("ibifs scrub A.store");
        World::of(env)
    }

    /// The same, after a script.
    fn archive_served(script: &str) -> World {
        let env = World::archive();
        env.sh(script);
        World::of(env)
    }

    fn of(env: TestEnv) -> World {
        let served = Served::start(&env, "A.store --url http://archive-a.example.org");
        let proxy = Proxy::start(served.address());
        env.sh(&format!("echo PROXY={} >> vars", proxy.url));
        World { proxy, served, env }
    }

    /// The same, mounted.
    fn mounted() -> World {
        let world = World::new();
        world.sh("world");
        world
    }

    #[track_caller]
    fn sh(&self, script: &str) -> String {
        self.served.sh(&self.env, &format!("{TOOLS}\n{script}"))
    }

    #[track_caller]
    pub fn prints(&self, script: &str, expected: &str) {
        let printed = self.sh(script);
        assert_printed(&printed, expected, script);
    }
}
