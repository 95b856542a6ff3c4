//! Symbolic links that lead out of an item: their targets in the rep tree and in the IBIp tree.
//!
//! The rep tree has an item four levels below the root, the IBIp tree two. On disk the target is stored as it
//! reads in the rep tree. No input or output.

/// The number of levels that an item lies below the root in the rep tree.
const REP_LEVELS: usize = 4;
/// The number of levels that an item lies below the root in the IBIp tree.
const IBIP_LEVELS: usize = 2;

/// The beginning of the target of a link that was written in the IBIp tree and climbs to the prefix and no further. No
/// other link that is written there begins so, and so such a link is told from one that goes through the root.
const FROM_PREFIX: &[u8] = b"./../../../";

/// A relative target that begins with `..`, perhaps after `.`.
struct Climb<'a> {
    /// The number of times that it climbs.
    count: usize,
    /// The text up to the last `..`.
    up: &'a [u8],
    /// The rest: nothing, or a slash and more.
    down: &'a [u8],
}

impl<'a> Climb<'a> {
    /// The climb of a target out of the item, in which the link lies `depth` directories deep. None for one that stays
    /// in it, and for an absolute one.
    fn out(target: &'a [u8], depth: usize) -> Option<Climb<'a>> {
        if target.first() == Some(&b'/') {
            return None;
        }
        let (mut count, mut end, mut at) = (0, 0, 0);
        for part in target.split(|byte| *byte == b'/') {
            at += part.len();
            match part {
                b".." => (count, end) = (count + 1, at),
                b"." | b"" => {}
                _ => break,
            }
            at += 1;
        }
        let (up, down) = target.split_at(end);
        (count > depth).then_some(Climb { count, up, down })
    }

    /// The target without its first `..`, `less` of them, of which it has more.
    fn shorter(&self, less: usize) -> Vec<u8> {
        let mut left = less;
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in self.up.split(|byte| *byte == b'/') {
            match part {
                b".." if left > 0 => left -= 1,
                part => parts.push(part),
            }
        }
        [&parts.join(&b'/')[..], self.down].concat()
    }
}

/// A target that climbs to the root and goes on from there.
fn from_root(climbs: usize, names: &[&str], down: &[u8]) -> Vec<u8> {
    let parts: Vec<&str> = [".."].repeat(climbs);
    let parts = [&parts[..], names].concat();
    [parts.join("/").as_bytes(), down].concat()
}

/// Whether a link that lies `depth` directories below its item leads out of it.
pub fn climbs_out(target: &[u8], depth: usize) -> bool {
    Climb::out(target, depth).is_some()
}

/// The target of a link as it reads in the IBIp tree. The link lies `depth` directories below the item (0: in
/// the item itself); `rep` has the item's four components and `prefix` that of its IBIp, if it has them.
pub fn read_in_ibip_tree(
    target: &[u8],
    depth: usize,
    rep: Option<[&str; 4]>,
    prefix: Option<&str>,
) -> Vec<u8> {
    let Some(climb) = Climb::out(target, depth) else {
        return target.to_vec();
    };
    let above = climb.count - depth;
    if above == REP_LEVELS
        && let Some(written) = written_from_prefix(&climb, prefix)
    {
        return written;
    }
    if above >= REP_LEVELS {
        return climb.shorter(REP_LEVELS - IBIP_LEVELS);
    }
    // It ends inside the rep tree, at a year for instance: the new target goes through the root.
    match rep {
        Some(rep) => from_root(depth + IBIP_LEVELS, &rep[..REP_LEVELS - above], climb.down),
        None => target.to_vec(),
    }
}

/// The target that was written in the IBIp tree, of a link that climbs to its prefix.
fn written_from_prefix(climb: &Climb<'_>, prefix: Option<&str>) -> Option<Vec<u8>> {
    let up = climb.up.strip_prefix(FROM_PREFIX)?;
    let down = climb.down.strip_prefix(b"/")?;
    let down = down.strip_prefix(prefix?.as_bytes())?;
    (down.is_empty() || down.starts_with(b"/")).then(|| [up, down].concat())
}

/// The target to store on disk for a link written in the IBIp tree: the inverse function.
pub fn written_in_ibip_tree(target: &[u8], depth: usize, prefix: Option<&str>) -> Vec<u8> {
    let Some(climb) = Climb::out(target, depth) else {
        return target.to_vec();
    };
    if climb.count - depth >= IBIP_LEVELS {
        return [&b"../".repeat(REP_LEVELS - IBIP_LEVELS), target].concat();
    }
    match prefix {
        Some(prefix) => [FROM_PREFIX, climb.up, b"/", prefix.as_bytes(), climb.down].concat(),
        None => target.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REP: [&str; 4] = ["example.org", "archive-a", "2026", "11.21.10.00"];
    const PREFIX: &str = "8JMKD3MGP8W";

    #[track_caller]
    fn reads(on_disk: &str, depth: usize, in_ibip_tree: &str) {
        let read = read_in_ibip_tree(on_disk.as_bytes(), depth, Some(REP), Some(PREFIX));
        assert_eq!(String::from_utf8_lossy(&read), in_ibip_tree);
    }

    #[track_caller]
    fn writes(in_ibip_tree: &str, depth: usize, on_disk: &str) {
        let kept = written_in_ibip_tree(in_ibip_tree.as_bytes(), depth, Some(PREFIX));
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
        reads("./../../../../x", 0, "./../../x");
        reads("../../", 0, "../../example.org/archive-a/");
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
            "./../../../../8JMKD3MGP8W/34PGRBS/doc/x",
        );
        writes("../../../up", 0, "../../../../../up");
    }

    /// Also if it climbs to the prefix, or through the root to the same prefix, whatever stands between the slashes.
    #[test]
    fn what_is_written_in_the_ibip_tree_is_read_back() {
        let downs = [
            "",
            "/",
            "//.",
            "/34PGRBS/doc/x/",
            "/8JMKD3MGP8W",
            "/./8JMKD3MGP8W/34PGRBS",
            "//8JMKD3MGP8WX/34PGRBS",
            "/x/../..",
        ];
        for climbs in 0..6 {
            for up in ["../", ".././", "./../", "..//"].map(|one| one.repeat(climbs)) {
                for target in downs.map(|down| format!("{}{down}", up.trim_end_matches('/'))) {
                    for depth in 0..3 {
                        let kept = written_in_ibip_tree(target.as_bytes(), depth, Some(PREFIX));
                        let read = read_in_ibip_tree(&kept, depth, Some(REP), Some(PREFIX));
                        assert_eq!(String::from_utf8_lossy(&read), target, "at depth {depth}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_link_through_the_root_to_the_own_prefix_stays_one() {
        reads(
            "../../../../8JMKD3MGP8W/34PGRBS/doc/x",
            0,
            "../../8JMKD3MGP8W/34PGRBS/doc/x",
        );
        reads("./../../../../8JMKD3MGP8W/34PGRBS", 0, "../34PGRBS");
        reads(
            "./../../../../8JMKD3MGP8W",
            1,
            "../../../example.org/8JMKD3MGP8W",
        );
        let of_another =
            read_in_ibip_tree(b"./../../../../8JMKD3MGP8W/x", 0, None, Some("J8LNKB5R7W"));
        assert_eq!(of_another, b"./../../8JMKD3MGP8W/x");
    }
}
