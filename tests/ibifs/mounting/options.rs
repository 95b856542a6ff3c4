//! The options that mount(8) and fuse(8) have: what each does, or that it is refused.

use super::does;
use crate::support::TestEnv;

/// The table of mounts shows the options, for root and for a user, and after a remount.
#[test]
fn flags_of_the_kernel_are_set() {
    let env = TestEnv::new();
    does(
        &env,
        "for mounts in 'ibifs mount' 'mount -t fuse.ibifs' 'mount -t ibifs'; do
             $mounts S M -o lazytime,strictatime,nodiratime; has lazytime; no has relatime; has nodiratime; umount M
             $mounts S M -o lazytime,nolazytime,strictatime,nostrictatime,norelatime,diratime,symfollow
             no has lazytime; has relatime; no has nodiratime; no has nosymfollow
             mount -o remount,lazytime,strictatime,nosymfollow M; has lazytime; no has relatime; has nosymfollow; has rw; has nosuid
             mount -o remount,nolazytime M; no has lazytime; no has relatime; has nosymfollow
             mount -o remount,symfollow,relatime M; has relatime; no has nosymfollow; mkdir M/.mint/x; umount M
         done",
    );
}

/// No link is followed, neither one of a file nor that of a modifier.
#[test]
fn links_are_not_followed() {
    let env = TestEnv::new();
    does(
        &env,
        "ibifs mount S M; mkdir -p M/.mint/x/doc; rep=$(rep M/.mint/.x); echo text > M/$rep/doc/f; ln -s f M/$rep/doc/l
         cat M/$rep/doc/l; ls M/$rep!/; ibifs umount M
         ibifs mount -o nosymfollow S M; cat M/$rep/doc/f; readlink M/$rep/doc/l
         for link in $rep/doc/l $rep!; do refused 'Too many levels of symbolic links' ls M/$link/; done",
    );
}

/// By its source and its type in the table of mounts ibifs finds a mount; other options change nothing here.
#[test]
fn some_options_have_no_effect() {
    let env = TestEnv::new();
    does(
        &env,
        r#"none=defaults,auto,noauto,nofail,_netdev,nouser,nousers,noowner,nogroup,comment=x,x-a,X-b.c=d,iversion,noiversion,nomand
         none=$none,silent,loud,nonempty,default_permissions,subtype=y,fsname=a#b\c
         for mounts in 'ibifs mount' 'mount -t fuse.ibifs' 'mount -t ibifs'; do
             $mounts S M -o "$none"; test "$(findmnt -rno SOURCE,FSTYPE M)" = "$PWD/S fuse.ibifs"; ibifs umount M
         done
         refused "unknown mount option 'b'" ibifs mount S M -o fsname=a,b"#,
    );
}

/// An option is refused if it would not do what it promises.
#[test]
fn other_options_are_refused() {
    let env = TestEnv::new();
    does(
        &env,
        "for option in mand quota context=x fscontext=x allow_root auto_unmount uid=0 gid=0 umask=022 max_read=4096 blksize=512 \
             kernel_cache auto_cache direct_io entry_timeout=1 attr_timeout=1 negative_timeout=1 use_ino hard_remove intr; do
             refused \"unknown mount option '$option'\" ibifs mount S M -o $option
             case $option in *context=*) continue; esac
             refused \"unknown mount option '$option'\" mount -t fuse.ibifs S M -o $option
         done",
    );
}

/// mount(8) takes `shared` for the propagation of mounts; under the other name it reaches us.
#[test]
fn mount_passes_on_that_a_store_is_shared() {
    let env = TestEnv::new().with_index_file();
    does(
        &env,
        "for option in shared shared-store; do refused 'ibifs reindex' ibifs mount S M -o $option; done
         refused 'ibifs reindex' mount -t fuse.ibifs S M -o shared-store
         echo \"$PWD/S $PWD/M fuse.ibifs noauto,shared-store 0 0\" > fstab; refused 'ibifs reindex' mount M",
    );
}

/// fusermount3 sets few flags: flags that protect no user are left out, the other one is refused.
#[test]
fn an_ordinary_user_has_the_flags_of_fusermount() {
    let env = TestEnv::new();
    does(
        &env,
        "chown 65534:65534 M; as_nobody ibifs init T --host u.example.org > /dev/null
         as_nobody ibifs mount T M -o lazytime,strictatime,nodiratime,norelatime,symfollow,nonempty,noexec,noatime
         has noexec; has noatime; has nosuid; has nodev; as_nobody ibifs umount M
         refused 'nosymfollow needs root' as_nobody ibifs mount T M -o nosymfollow; no mountpoint -q M",
    );
}

/// The mount of an Archive elsewhere has the same flags, also if another process mounts it.
#[test]
fn an_archive_elsewhere_has_the_flags() {
    let env = TestEnv::new();
    does(
        &env,
        "mkdir W; url=http://127.0.0.1:1 option=cache=$PWD/C
         ibifs mount $url M -o $option,nosymfollow,lazytime,noexec,nonempty,fsname=x,subtype=y
         has nosymfollow; has lazytime; has noexec; has ro; has nosuid; test $(kind) = fuse.ibifs-world
         mount -t fuse.ibifs $url W -o $option,nosymfollow,strictatime,silent
         [[ ,$(findmnt -no OPTIONS W), == *,nosymfollow,* ]]; [[ ,$(findmnt -no OPTIONS W), == *,ro,* ]]
         [[ $(findmnt -no OPTIONS W) != *relatime* ]]; umount W; umount M",
    );
}
