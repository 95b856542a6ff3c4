//! Many at once: processes that mint, write, relate, remove and copy in both trees together.

pub mod crowd;

use crate::support::{TestEnv, switch};
use crowd::Crowd;

/// Eight processes at once for a few seconds (`IBIFS_TEST_SECONDS` for longer), `mkdir`, `cp`, `rm`,
/// `ln`, `rsync` and `tar` among what they do: no process waits five seconds for anything,
/// or much longer than for all else on a busy machine, none is refused but for a reason, the tree and the index agree, and the
/// rebuilt index says the same.
#[test]
fn eight_processes_at_once_leave_a_sound_store() {
    let seconds = switch("IBIFS_TEST_SECONDS").unwrap_or(15);
    let env = TestEnv::new().with_a();
    let printed = Crowd::start(&env, 8, seconds, "grow").watch(|| {});
    for printed in &printed {
        println!("{printed}");
        assert!(
            printed.operations > 5 && printed.is_soon(seconds),
            "{printed}"
        );
    }
    sound(&env);
}

/// Unmounted, nothing is wrong with the store A, nothing half made is left, and a rebuilt index
/// says what the old one said.
///
/// Passed over is what the crowd does itself: a user who brings an item or a sidecar back as it was some
/// time ago has it claim what others say differently since (`an_old_sidecar_claims_what_it_said`).
#[track_caller]
pub fn sound(env: &TestEnv) {
    let check = "{ ibifs fsck A.store || true; } \
        | no grep -v -E '^(relations-differ|one-sided|removed-target):| items, '";
    env.sh(&format!("ibifs umount A; {check}"));
    env.prints("ls A.store/staging", "");
    env.sh("ibifs ls A.store > before; lose_index A.store; ibifs reindex A.store");
    env.sh(&format!("ibifs ls A.store | cmp - before; {check}"));
}
