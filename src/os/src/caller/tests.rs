//! Acting as a caller, and what is known of it; as root and as an ordinary user.

use super::*;

/// The process of the test, as a caller.
fn own() -> Caller {
    Caller {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        pid: std::process::id(),
    }
}

/// The number of a process that has ended.
fn gone() -> u32 {
    let mut child = std::process::Command::new("true").spawn().expect("runs");
    child.wait().expect("ends");
    child.id()
}

#[test]
fn the_threads_of_a_process_are_one_group() {
    let here = own().thread_group().expect("a process of ours");
    let thread = std::thread::spawn(|| {
        let pid = rustix::thread::gettid().as_raw_nonzero().get();
        let caller = Caller {
            pid: u32::try_from(pid).expect("positive"),
            ..own()
        };
        caller.thread_group()
    });
    assert_eq!(thread.join().expect("ends"), Some(here));
    let other = |pid| Caller { pid, ..own() }.thread_group();
    assert!(other(1).is_none_or(|init| init != here));
    assert_eq!(other(0), None);
    assert_eq!(other(gone()), None);
}

#[test]
fn a_caller_that_is_gone_counts_as_interrupted() {
    for (pid, expected) in [(0, false), (own().pid, false), (gone(), true)] {
        assert_eq!(Caller { pid, ..own() }.is_interrupted(), expected, "{pid}");
    }
}

#[test]
fn a_caller_belongs_to_its_first_and_its_other_groups() {
    let groups = rustix::process::getgroups().expect("listed");
    let groups = groups.into_iter().map(rustix::process::Gid::as_raw);
    for group in groups.chain([own().gid]) {
        assert!(own().belongs_to(group), "{group}");
    }
    assert!(!own().belongs_to(0x7fff_0001));
    // For a process that has ended, only the numbers in the request are known.
    let caller = Caller {
        pid: gone(),
        ..own()
    };
    assert!(caller.belongs_to(caller.gid));
    assert!(!caller.belongs_to(0x7fff_0001));
}

/// As root the credentials change during the act; an ordinary user acts as itself.
#[test]
fn an_act_has_the_credentials_of_the_caller_and_gives_them_up() {
    let before = credentials::acted_as();
    let inside = Caller::NOBODY.act(|| Ok::<_, Errno>(credentials::acted_as()));
    let expected = if Caller::NOBODY.is_other() {
        (Caller::NOBODY.uid, Caller::NOBODY.gid)
    } else {
        before
    };
    assert_eq!(inside, Ok(expected));
    assert_eq!(credentials::acted_as(), before);
    let failed = Caller::NOBODY.act(|| Err::<(), _>(Errno::NOSPC));
    assert_eq!(failed, Err(Errno::NOSPC));
    assert_eq!(credentials::acted_as(), before);
    let unwound = std::panic::catch_unwind(|| {
        Caller::NOBODY.act(|| -> Result<(), Errno> { std::panic::resume_unwind(Box::new(())) })
    });
    assert!(unwound.is_err());
    assert_eq!(credentials::acted_as(), before);
    assert!(can_act_as_others());
}

#[test]
fn a_write_is_charged_to_the_caller_and_the_numbers_are_given_up() {
    let before = credentials::acted_as();
    let mut tries = 0;
    let written = Caller::NOBODY.charged(|| {
        tries += 1;
        Ok(credentials::acted_as())
    });
    let expected = match Caller::NOBODY.charged_user() {
        Some(user) => (user.uid, user.gid),
        None => before,
    };
    assert_eq!(written, Ok(expected));
    assert_eq!((tries, credentials::acted_as()), (1, before));
    let failed = Caller::NOBODY.charged(|| Err::<(), _>(Errno::IO));
    assert_eq!(failed, Err(Errno::IO));
    let kept = Caller::NOBODY.charged_and_keep(|| Ok(credentials::acted_as()));
    assert_eq!(kept, Ok(expected));
    charging::stop();
    assert_eq!(credentials::acted_as(), before);
}

#[test]
fn guards_of_charging_nest() {
    let user = |uid| Some(ChargedUser { uid, gid: uid });
    assert_eq!(charging::charged_user(), None);
    let outer = charging::charge_to(user(7));
    {
        let _inner = charging::charge_to(None);
        assert_eq!(charging::charged_user(), None);
    }
    assert_eq!(charging::charged_user(), user(7));
    drop(outer);
    assert_eq!(charging::charged_user(), None);
}

/// A filesystem that decides by the numbers of the user alone, such as that of a server, refuses what this process has
/// allowed: the process does it then.
#[test]
fn what_the_filesystem_refuses_to_the_charged_user_is_done_by_the_process() {
    let own = credentials::acted_as();
    let user = (60_001, 60_001);
    if !can_act_as_others() {
        return;
    }
    let _charged = charging::charge_to(Some(ChargedUser {
        uid: user.0,
        gid: user.1,
    }));
    let mut tried = Vec::new();
    let done = charging::charged(|| {
        tried.push(credentials::acted_as());
        if credentials::acted_as() == own {
            Ok(())
        } else {
            Err(Errno::ACCESS)
        }
    });
    assert_eq!((done, tried), (Ok(()), vec![user, own]));
    assert_eq!(credentials::acted_as(), own);
}

/// The kernel's view of the calling thread.
fn of_the_kernel() -> ((u32, u32), Vec<u32>, CapabilitySet, i32) {
    let groups = rustix::process::getgroups().expect("listed");
    let capabilities = rustix::thread::capabilities(None).expect("read");
    (
        credentials::acted_as(),
        groups
            .into_iter()
            .map(rustix::process::Gid::as_raw)
            .collect(),
        capabilities.effective,
        // SAFETY: takes no pointer; 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) },
    )
}

/// Acts as each of these callers after each other one, and compares the thread with what it was.
fn act_in_turn() {
    let before = of_the_kernel();
    let users = [(0, 0), (0, 60_001), (60_001, 0), (60_002, 60_001)];
    let powers = [
        CapabilitySet::empty(),
        OVER_FILES,
        CapabilitySet::FOWNER,
        CapabilitySet::FSETID | CapabilitySet::SYS_RESOURCE,
        LOST,
    ];
    let callers: Vec<_> = users
        .iter()
        .flat_map(|user| powers.map(|capabilities| (*user, capabilities)))
        .flat_map(|(user, capabilities)| {
            [vec![], vec![60_003]].map(|groups| (user, capabilities, groups))
        })
        .collect();
    let act = |((uid, gid), capabilities, groups): &((u32, u32), CapabilitySet, Vec<u32>)| {
        let caller = Caller {
            uid: *uid,
            gid: *gid,
            pid: 0,
        };
        let (capabilities, groups) = (*capabilities, groups.clone());
        let powers = Powers {
            groups: groups.clone(),
            capabilities,
        };
        let acted = caller.act_with(&powers, || Ok::<_, Errno>(of_the_kernel()));
        let expected = (before.2 - LOST) | (capabilities & own_permitted());
        assert_eq!(
            acted,
            Ok(((*uid, *gid), groups, expected, before.3)),
            "{caller:?}"
        );
        check_thread();
        assert_eq!(of_the_kernel(), before, "after {caller:?} with {powers:?}");
        let written =
            charging::charged_to_and_keep(caller.charged_user(), || Ok(of_the_kernel().0));
        assert_eq!(written, Ok((*uid, *gid)));
    };
    for first in &callers {
        for second in &callers {
            act(first);
            act(second);
        }
        let (user, ..) = first;
        let caller = Caller {
            uid: user.0,
            gid: user.1,
            pid: 0,
        };
        assert_eq!(
            caller.read(|| Ok::<_, Errno>(credentials::acted_as())),
            Ok(*user)
        );
        assert_eq!(of_the_kernel(), before);
    }
}

fn own_permitted() -> CapabilitySet {
    rustix::thread::capabilities(None).expect("read").permitted
}

/// A thread gives back what it takes for a caller, whatever the callers and the process may do.
#[test]
fn a_thread_is_itself_again_after_each_caller() {
    if !can_act_as_others() {
        return;
    }
    for missing in [
        CapabilitySet::empty(),
        CapabilitySet::SYS_RESOURCE,
        CapabilitySet::SYS_NICE,
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_NICE | CapabilitySet::SYS_ADMIN,
        CapabilitySet::FOWNER | CapabilitySet::MKNOD,
    ] {
        let thread = std::thread::spawn(move || {
            let mut own = rustix::thread::capabilities(None).expect("read");
            own.permitted -= missing;
            own.effective -= missing;
            rustix::thread::set_capabilities(None, own).expect("fewer");
            act_in_turn();
        });
        thread
            .join()
            .unwrap_or_else(|_| panic!("without {missing:?}"));
    }
}

/// Capabilities of a caller in another user namespace are none over files here.
#[test]
fn a_caller_in_a_user_namespace_takes_nothing_along() {
    let namespace = ["--user", "--map-root-user", "sleep", "60"];
    let child = std::process::Command::new("unshare")
        .args(namespace)
        .spawn();
    let mut child = child.expect("unshare(1) of util-linux");
    let name = || std::fs::read_to_string(format!("/proc/{}/comm", child.id()));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while name().is_ok_and(|name| name != "sleep\n") && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    let powers = Powers::of(child.id());
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(powers.capabilities, CapabilitySet::empty());
}

/// A thread that cannot take all of a caller takes nothing.
#[test]
fn what_is_refused_is_not_taken_in_part() {
    if !can_act_as_others() {
        return;
    }
    for missing in [CapabilitySet::SETUID, CapabilitySet::SETGID] {
        let thread = std::thread::spawn(move || {
            let mut own = rustix::thread::capabilities(None).expect("read");
            own.permitted -= missing;
            own.effective -= missing;
            rustix::thread::set_capabilities(None, own).expect("fewer");
            let before = of_the_kernel();
            for (uid, gid) in [(60_001, 60_001), (60_001, 0), (0, 60_001)] {
                let caller = Caller { uid, gid, pid: 0 };
                let powers = Powers {
                    groups: vec![gid],
                    capabilities: CapabilitySet::empty(),
                };
                let ran = caller.act_with(&powers, || Ok::<_, Errno>(credentials::acted_as()));
                assert!(ran == Err(Errno::PERM) || ran == Ok((uid, gid)), "{ran:?}");
                check_thread();
                assert_eq!(of_the_kernel(), before, "{caller:?}");
            }
        });
        thread
            .join()
            .unwrap_or_else(|_| panic!("without {missing:?}"));
    }
}
