//! Many at once: processes that mint, write, relate, remove and copy in both trees together.

use crate::support::{World, switch};

/// What each process does, for `$2` seconds from the seed `$1`; it prints how many operations it
/// did, its longest one in seconds, and what it was refused.
const BUSY: &str = r#"
import errno, os, random, shutil, sys, time
seed, seconds = int(sys.argv[1]), float(sys.argv[2])
random.seed(seed)
end, count, refused, longest = time.time() + seconds, 0, set(), 0
base = 'A/example.org/archive-a'
while time.time() < end:
    count += 1
    started = time.time()
    try:
        items = [base + '/' + year + '/' + date for year in os.listdir(base)
                 for date in os.listdir(base + '/' + year)]
        item, other = random.choice(items), random.choice(items)
        if random.random() < .5:
            item = 'A/' + os.getxattr(item, 'user.ibi.ibip').decode()
        what = random.random()
        if what < .15: os.mkdir('A/.mint/s%d-%d' % (seed, count))
        elif what < .3: open(item + '/doc/f%d' % random.randrange(5), 'w').write('x' * random.randrange(100000))
        elif what < .4: os.rename(item + '/doc/f0', item + '/doc/f1')
        elif what < .5: os.setxattr(item, 'user.ibi.nextedition', other[2:].encode())
        elif what < .55: os.setxattr(item, 'user.ibi.translation.pt', other[2:].encode())
        elif what < .6: os.unlink(item + '!')
        elif what < .63: shutil.rmtree(item)
        elif what < .7: os.readlink(item + '!')
        elif what < .75: open(item + ':(oai_dc)').read()
        elif what < .8: open(item + ':', 'w').write('title: x%d\n' % count)
        elif what < .85:
            staged = os.path.dirname(item) + '/.tmp%d-%d' % (seed, count)
            os.symlink('../' + other[2:], staged)
            os.rename(staged, item + '+(en)')
        elif what < .9: os.mkdir(item + '+(fr)')
        elif what < .95: os.listdir(item + '/doc')
        else:
            os.makedirs(item + '/doc/a/b/c', exist_ok=True)
            os.symlink('../../../../../../x', item + '/doc/a/l%d' % count)
    except OSError as error:
        refused.add(errno.errorcode[error.errno])
    longest = max(longest, time.time() - started)
print(count, longest, *refused)
"#;

/// Eight processes at once for a few seconds (`IBIFS_TEST_SECONDS` for longer): nobody waits five
/// seconds for anything, nobody is refused but for a reason, the tree and the index agree, and the
/// index made anew says the same.
#[test]
fn eight_processes_at_once_leave_a_sound_store() {
    let seconds = switch("IBIFS_TEST_SECONDS").unwrap_or(5);
    let world = World::new().with_a();
    std::fs::write(world.root().join("busy.py"), BUSY).expect("a script");
    world.sh(&format!(
        "for seed in 1 2 3 4 5 6 7 8; do python3 busy.py $seed {seconds} > told-$seed & done; wait"
    ));
    let reasons = [
        "ENOENT",
        "EEXIST",
        "ELOOP",
        "EPERM",
        "ENOTEMPTY",
        "ENODATA",
        "ENOTDIR",
    ];
    for seed in 1..=8 {
        let told = world.sh(&format!("cat told-{seed}"));
        let mut words = told.split_whitespace();
        let mut number = || -> f64 {
            let word = words.next().expect("a number");
            word.parse().expect("a number")
        };
        assert!(number() > 10.0, "seed {seed} did {told}");
        assert!(number() < 5.0, "seed {seed} waited: {told}");
        for refused in words {
            assert!(
                reasons.contains(&refused),
                "seed {seed} was refused: {told}"
            );
        }
    }
    world.sh("ibifs umount A; ibifs fsck A.store");
    world.prints("ls A.store/staging", "");
    world.sh("ibifs ls A.store > before; rm A.store/relations.sqlite3*; ibifs reindex A.store");
    world.sh("ibifs ls A.store | cmp - before; ibifs fsck A.store");
}
