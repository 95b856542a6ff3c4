//! Symbolic links that lead out of an item: their targets in the rep tree and in the IBIp tree.
//!
//! The rep tree has an item four levels below the root, the IBIp tree two. On disk the target is stored as it
//! reads in the rep tree. No input or output.

/// How many levels an item lies below the root in the rep tree.
const REP_LEVELS: usize = 4;
/// How many levels an item lies below the root in the IBIp tree.
const IBIP_LEVELS: usize = 2;

/// Splits a relative target into its leading `..` and the rest; None for an absolute one.
fn climb(target: &[u8]) -> Option<(usize, Vec<&[u8]>)> {
    if target.first() == Some(&b'/') {
        return None;
    }
    let mut count = 0;
    let mut rest = Vec::new();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b".." if rest.is_empty() => count += 1,
            b"." | b"" if rest.is_empty() => {}
            _ => rest.push(part),
        }
    }
    Some((count, rest))
}

fn join(climbs: usize, rest: &[&[u8]]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = vec![b".."; climbs];
    parts.extend(rest);
    parts.join(&b"/"[..])
}

/// Whether a link that lies `depth` directories below its item leads out of it.
pub fn climbs_out(target: &[u8], depth: usize) -> bool {
    climb(target).is_some_and(|(climbs, _)| climbs > depth)
}

/// The target of a link as it reads in the IBIp tree. The link lies `depth` directories below the item (0: in
/// the item itself); `rep` has the item's four components, if it has a rep.
pub fn read_in_ibip_tree(target: &[u8], depth: usize, rep: Option<[&str; 4]>) -> Vec<u8> {
    let Some((climbs, rest)) = climb(target) else {
        return target.to_vec();
    };
    if climbs <= depth {
        return target.to_vec();
    }
    let above = climbs - depth;
    if above >= REP_LEVELS {
        return join(climbs - (REP_LEVELS - IBIP_LEVELS), &rest);
    }
    // It ends inside the rep tree, at a year for instance: the new target goes through the root.
    let Some(rep) = rep else {
        return target.to_vec();
    };
    let mut from_root: Vec<&[u8]> = rep[..REP_LEVELS - above]
        .iter()
        .map(|component| component.as_bytes())
        .collect();
    from_root.extend(rest);
    join(depth + IBIP_LEVELS, &from_root)
}

/// The target to store on disk for a link written in the IBIp tree: the inverse function.
pub fn written_in_ibip_tree(target: &[u8], depth: usize, prefix: Option<&str>) -> Vec<u8> {
    let Some((climbs, rest)) = climb(target) else {
        return target.to_vec();
    };
    if climbs <= depth {
        return target.to_vec();
    }
    let above = climbs - depth;
    if above >= IBIP_LEVELS {
        return join(climbs + (REP_LEVELS - IBIP_LEVELS), &rest);
    }
    let Some(prefix) = prefix else {
        return target.to_vec();
    };
    let mut from_root = vec![prefix.as_bytes()];
    from_root.extend(rest);
    join(depth + REP_LEVELS, &from_root)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REP: [&str; 4] = ["example.org", "archive-a", "2026", "11.21.10.00"];

    #[track_caller]
    fn reads(on_disk: &str, depth: usize, in_ibip_tree: &str) {
        let read = read_in_ibip_tree(on_disk.as_bytes(), depth, Some(REP));
        assert_eq!(String::from_utf8_lossy(&read), in_ibip_tree);
    }

    #[track_caller]
    fn writes(in_ibip_tree: &str, depth: usize, on_disk: &str) {
        let kept = written_in_ibip_tree(in_ibip_tree.as_bytes(), depth, Some("8JMKD3MGP8W"));
        assert_eq!(String::from_utf8_lossy(&kept), on_disk);
    }

    #[test]
    fn links_are_read_relative_to_the_tree_in_which_they_are_met() {
        reads("/etc/passwd", 0, "/etc/passwd");
        reads("report.pdf", 1, "report.pdf");
        reads("../report.pdf", 1, "../report.pdf");
        reads("../../doc/x", 2, "../../doc/x");
        reads(
            "../../../../../../dpi.inpe.br/banon/1998/08.02.08.56/doc/x",
            2,
            "../../../../dpi.inpe.br/banon/1998/08.02.08.56/doc/x",
        );
        reads(
            "../../../../../col/dpi.inpe.br/banon/1998/08.02.08.56",
            0,
            "../../../col/dpi.inpe.br/banon/1998/08.02.08.56",
        );
        reads(
            "../11.21.09.00/doc/x",
            0,
            "../../example.org/archive-a/2026/11.21.09.00/doc/x",
        );
        reads(
            "../../2025/01.01.00.00",
            0,
            "../../example.org/archive-a/2025/01.01.00.00",
        );
        reads("../../..", 0, "../../example.org");
        reads("./../../../../x", 0, "../../x");
        reads("", 0, "");
    }

    #[test]
    fn a_link_climbs_out_when_it_climbs_further_than_it_lies_deep() {
        for (target, depth, climbs) in [
            ("../x", 0, true),
            ("../x", 1, false),
            ("./../../x", 1, true),
            ("a/../../..", 0, false),
            ("/etc", 0, false),
            ("..", 0, true),
        ] {
            assert_eq!(climbs_out(target.as_bytes(), depth), climbs, "{target}");
        }
    }

    #[test]
    fn links_are_kept_as_the_rep_tree_reads_them() {
        writes("/etc/passwd", 0, "/etc/passwd");
        writes("../report.pdf", 1, "../report.pdf");
        writes(
            "../../../../dpi.inpe.br/x",
            2,
            "../../../../../../dpi.inpe.br/x",
        );
        writes(
            "../34PGRBS/doc/x",
            0,
            "../../../../8JMKD3MGP8W/34PGRBS/doc/x",
        );
        writes("../../../up", 0, "../../../../../up");
    }

    #[test]
    fn what_is_written_in_the_ibip_tree_is_read_back() {
        for target in ["a/b", "x", "/abs", "../../../../z/y", "../../../../../up"] {
            for depth in 0..3 {
                let kept = written_in_ibip_tree(target.as_bytes(), depth, Some("8JMKD3MGP8W"));
                let read = read_in_ibip_tree(&kept, depth, Some(REP));
                assert_eq!(String::from_utf8_lossy(&read), target, "at depth {depth}");
            }
        }
    }
}
