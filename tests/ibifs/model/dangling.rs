//! Opening and making files through symbolic links that lead to nothing: inside the item, beside it, above
//! it, and to a modifier, in each tree and for each user. Random operations meet these rarely.

use super::operation::{Act, Data, Operation, Text, Where};
use super::replay;
use super::tree::{View, Who};

/// The flags with which a file is opened.
const FLAGS: [i32; 6] = [
    libc::O_RDONLY,
    libc::O_RDWR,
    libc::O_RDONLY | libc::O_CREAT,
    libc::O_RDWR | libc::O_CREAT | libc::O_APPEND,
    libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
    libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
];

/// The item that the links lie in, and the one that some lead to.
const ITEM: usize = 1;
const OTHER: usize = 2;

fn plain(text: &str) -> Text {
    Text::Plain(text.to_owned())
}

fn inside(item: usize, view: View, tail: &'static str, path: &str) -> Where {
    Where::In {
        item,
        view,
        tail,
        path: path.to_owned(),
        shout: false,
    }
}

/// The targets of a link in an item's own directory, which lies this deep below the mount point.
fn targets(depth: usize) -> Vec<Text> {
    let up = "../".repeat(depth);
    let above = ["x", "nothing/x", "../x", "../.staged", "../../x"].map(plain);
    let outermost = plain(&format!("{up}x"));
    above.into_iter().chain([outermost]).collect()
}

/// The same, to what another item is asked for.
fn targets_of_other(depth: usize) -> Vec<Text> {
    let of_other = |behind: &str| Text::Item {
        before: "../".repeat(depth),
        item: OTHER,
        view: if depth == 4 { View::Rep } else { View::Ibip },
        behind: behind.to_owned(),
    };
    let asked = ["/x", ":", "!", "+", "+(pt)", "?GetMetadata"];
    asked.into_iter().map(of_other).collect()
}

/// Everything that a link is tried with, and the removal of what that made.
fn tried(link: &Where, target: Text) -> Vec<Operation> {
    let at = || link.clone();
    let mut acts = vec![(Who::Root, Act::MakeLink { target, at: at() })];
    for who in [Who::Alice, Who::Root] {
        for flags in FLAGS {
            acts.push((
                who,
                Act::Open {
                    slot: 0,
                    at: at(),
                    flags,
                    mode: 0o600,
                },
            ));
            acts.push((Who::Root, Act::Close { slot: 0 }));
            acts.push((Who::Alice, Act::Get(at())));
            // Removes the file that has just been made, if any.
            acts.extend(made().map(|at| (Who::Root, Act::Remove(at))));
        }
        let data = Data {
            letter: b'a',
            length: 3,
        };
        acts.push((
            who,
            Act::Put {
                at: at(),
                flags: libc::O_CREAT,
                mode: 0o644,
                data,
            },
        ));
        acts.extend(made().map(|at| (Who::Root, Act::Remove(at))));
    }
    acts.push((Who::Root, Act::Remove(at())));
    let client = 0;
    let operation = |(who, act)| Operation { client, who, act };
    acts.into_iter().map(operation).collect()
}

/// The places of the files that can be made through the links.
fn made() -> [Where; 5] {
    let staged = |view| Where::Beside {
        item: ITEM,
        view,
        name: ".staged".to_owned(),
    };
    [
        inside(ITEM, View::Rep, "", "x"),
        inside(OTHER, View::Rep, "", "x"),
        inside(OTHER, View::Rep, ":", ""),
        staged(View::Rep),
        staged(View::Ibip),
    ]
}

/// A file is made where a link leads by those who may make one there; beside items the directory is shown
/// as open to all, and a name without a meaning is refused to all (ibifs-tree(7), "PERMISSIONS").
#[test]
fn files_are_made_through_links_as_the_model_makes_them() {
    let mint = |item: usize| Operation {
        client: 0,
        who: Who::Root,
        act: Act::Mint {
            item,
            label: format!("label-{item}"),
            with_doc: true,
        },
    };
    let mut operations = vec![mint(ITEM), mint(OTHER)];
    // `!` leads to the item itself, which has no later edition.
    let places = [
        (View::Rep, "", 4),
        (View::Ibip, "", 2),
        (View::Label, "", 2),
        (View::Rep, "!", 4),
        (View::Ibip, "!", 2),
    ];
    for (view, tail, depth) in places {
        let link = inside(ITEM, view, tail, "l2");
        for target in targets(depth) {
            operations.extend(tried(&link, target));
        }
        for mode in [0o755, 0o711] {
            let at = inside(OTHER, View::Rep, "", "");
            let act = Act::ChangeMode { at, mode };
            let (client, who) = (0, Who::Root);
            operations.push(Operation { client, who, act });
            for target in targets_of_other(depth) {
                operations.extend(tried(&link, target));
            }
        }
    }
    if let Some(difference) = replay(&operations) {
        panic!("{difference}");
    }
}
