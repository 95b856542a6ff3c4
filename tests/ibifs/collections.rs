//! Existing collections: a tree of repositories as they have grown for decades is taken over, what
//! the tree does not say comes from a table, and items leave as BagIt bags and OCFL objects and come
//! back.

use crate::support::World;

/// A tree as a URLib Archive has it: mixed case, ports behind `@` and `.`, hyphens, seconds, metadata
/// made a little later, and files with every kind of name.
const ODD: &str = "
    mkdir old; cd old
    for item in sid.inpe.br/MTC-m13@80/2005/08.10.14.18 sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25 \
        sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20 sid.inpe.br/iris@1905/2005/07.28.18.19 \
        dpi.inpe.br/banon-pc3@80/2009/11.10.13.03 sid.inpe.br/mtc-m18.8080/2011/07.21.14.43 \
        sid.inpe.br/mtc-m18@80/2009/07.21.14.43 sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05 \
        iconet.com.br/banon/2003/11.21.21.08; do
        mkdir -p col/$item/doc
    done
    cd col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18/doc
    echo 1 > @relatorio.pdf; echo 2 > @reference.bib; echo 3 > 'with  blanks .txt'
    echo 4 > '[brackets] {x} (1) #2; $3 & \"4\".txt'; echo 5 > $'relat\\xf3rio.pdf'
    mkdir $'se\\xe7\\xe3o' empty; echo 6 > $'se\\xe7\\xe3o/100%25.txt'; echo 7 > $'new\\nline\\r'
    echo 8 > $'e\\u0301'; echo 9 > $'\\u00e9'; echo 10 > 'back\\slash'; echo 11 > '=3D'; echo 12 > $'blank\\u2028'
    ln -s ../../../../../dpi.inpe.br/banon-pc3@80/2009/11.10.13.03/doc/x short
    ln -s ../../../../../../col/dpi.inpe.br/banon-pc3@80/2009/11.10.13.03/doc/x long
    ln -s $'relat\\xf3rio.pdf' $'liga\\xe7\\xe3o'
    chmod 640 @reference.bib; chmod 755 '[brackets] {x} (1) #2; $3 & \"4\".txt'
    touch -d '1999-12-31T23:59:59.123456789Z' @relatorio.pdf $'se\\xe7\\xe3o' .
    cd ../../../../../..; echo x > col/dpi.inpe.br/banon-pc3@80/2009/11.10.13.03/doc/x
    touch -d '2001-01-01T00:00:00Z' col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18
    cd ..";

/// What can be seen of the files below a directory: names, kinds, modes, times, targets, digests.
const LOOK: &str = "
    items() { (cd old/col; ls -d */*/*/* | grep -v '/mtc-m18/'); }
    look() { (cd \"$1\" && find . -printf '%p %y %m %T@ %l\\n' | LC_ALL=C sort && \
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum); }";

/// Every repository is an item under the spelling it has, its files are there with every byte of
/// their names, links between repositories hold, and nothing is touched.
#[test]
fn an_odd_tree_is_taken_over_as_it_is() {
    let world = World::new();
    world.sh(ODD);
    world.sh(&format!(
        "{LOOK}\nfor i in $(items); do look old/col/$i; done > before"
    ));
    world.prints(
        "ibifs init --adopt old --host mtc-m18.sid.inpe.br 2>&1 > /dev/null",
        "",
    );
    world.prints(
        "ibifs ls old --state Copy | sed 's/ *-$//'",
        "Copy     dpi.inpe.br/banon-pc3@80/2009/11.10.13.03\n\
         Copy     iconet.com.br/banon/2003/11.21.21.08\n\
         Copy     sid.inpe.br/iris@1905/2005/07.28.18.19\n\
         Copy     sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20\n\
         Copy     sid.inpe.br/MTC-m13@80/2005/08.10.14.18\n\
         Copy     sid.inpe.br/MTC-m13@80/2005/08.10.14.18.25\n\
         Copy     sid.inpe.br/mtc-m18.8080/2011/07.21.14.43\n\
         Copy     sid.inpe.br/mtc-m18@80/2009/07.21.14.43\n\
         Copy     sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05",
    );
    world.prints("ibifs fsck old", "10 items, 0 findings");
    // Mounted at a directory called col, both written rules for links hold (SPEC 11).
    world.sh("mkdir m m/col; ibifs mount old m/col");
    let item = "m/col/sid.inpe.br/MTC-m13@80/2005/08.10.14.18";
    world.prints(&format!("cat {item}/doc/short {item}/doc/long"), "x\nx");
    world.prints(&format!("cat {item}/doc/$'liga\\xe7\\xe3o' {item}/doc/$'relat\\xf3rio.pdf' {item}/doc/$'se\\xe7\\xe3o/100%25.txt'"), "5\n5\n6");
    world.prints(
        "readlink m/col/sid.inpe.br/mtc-M13@80 m/col/SID.inpe.br",
        "MTC-m13@80\nsid.inpe.br",
    );
    world.prints(
        "for i in $(ibifs ls old --state Copy | cut -c10- | cut -d' ' -f1); do state m/col/$i; echo; done | uniq -c | xargs",
        "9 Copy",
    );
    for tree in ["old/col", "m/col"] {
        world.sh(&format!(
            "{LOOK}\nfor i in $(items); do look {tree}/$i; done | diff before -"
        ));
    }
}

/// What is not as it should be in the tree is told when it is taken over, and stays.
#[test]
fn what_is_odd_about_a_tree_is_told_when_it_is_taken_over() {
    let world = World::new();
    world.sh(ODD);
    world.sh("mkdir -p old/col/sid.inpe.br/mtc-M13@80/2005/08.10.14.19/doc old/col/sid.inpe.br/backup_2/2005/x");
    world.prints(
        "ibifs init --adopt old --host mtc-m18.sid.inpe.br 2>&1 > /dev/null | cut -d: -f1-3",
        "ibifs: spelled-twice: col/sid.inpe.br/mtc-M13@80\n\
         ibifs: stray-name: col/sid.inpe.br/backup_2/2005/x",
    );
    world.prints("ibifs ls old | wc -l", "11");
}
