//! Who may do what: inside items as on the native filesystem, above them as the manual says, and
//! no user gains anything by a set-id bit, a capability, a device or a user namespace.

use crate::support::TestEnv;

mod above;
mod powers;
mod random;

/// The directory of a store is shut to others, so whoever deposits works in the mount: an item is shown as to root,
/// and editions and relations of one's own items are made; what would be refused mints nothing.
#[test]
fn a_depositor_need_not_enter_the_store() {
    let env = TestEnv::new().with_a();
    env.prints(
        r#"chmod 755 .; chmod 777 A; stat -c %a A.store
        as_user() { setpriv --reuid=60001 --regid=60001 --clear-groups "$@"; }
        as_user mkdir -p A/.mint/thesis/doc; item=A/$(as_user readlink A/.mint/.thesis); item=A/${item##*../}
        echo text | as_user tee $item/doc/text > /dev/null
        printf 'title: Rain\ndate: 2026\n' | as_user tee $item: > /dev/null
        next=A/$(as_user ibifs mint A --edition-of $item | head -n 1)
        as_user ibifs mint A --translation-of $item --lang pt > translation
        ! as_user ibifs mint A --edition-of $item 2> messages; grep -c 'it has one already' messages
        for one in $item $next A/$(head -n 1 translation); do
            for form in '' --json; do
                as_user ibifs show $one $form > shown; ibifs show $one $form | diff - shown; done; done
        as_user ibifs show $next | grep -c editionof
        as_user ibifs unrelate --next-edition $item; as_user ibifs relate --next-edition $next $item
        mint A other > other; ! as_user ibifs mint A --translation-of A/$(< other) --lang fr 2> messages
        grep -c 'Permission denied' messages
        ibifs ls A | wc -l"#,
        "700\n1\n1\n1\n5",
    );
}
