//! Which generations of a backup are kept: the newest of each of the last days, weeks, months and years.

use ibi::Timestamp;

/// The numbers of days, weeks, months and years of which a generation is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    days: usize,
    weeks: usize,
    months: usize,
    years: usize,
}

/// Returns the name of a generation: its date, without the colons, which rsync(1) takes for the end of a host's name.
pub(super) fn name_of(date: &Timestamp) -> String {
    Timestamp::from_unix(date.seconds(), 0)
        .to_rfc3339()
        .replace(':', "")
}

/// The date that is the name of a generation.
pub(super) fn date_of(name: &str) -> Option<Timestamp> {
    let (day, time) = name.split_once('T')?;
    let (hour, rest) = time.split_at_checked(2)?;
    let (minute, second) = rest.split_at_checked(2)?;
    let date = Timestamp::parse_rfc3339(&format!("{day}T{hour}:{minute}:{second}")).ok()?;
    (name_of(&date) == name).then_some(date)
}

impl Keep {
    /// Reads numbers with the first letters of the units, as `7d,4w,12m,3y`. None for another text, or where nothing is kept.
    #[must_use]
    pub fn parse(text: &str) -> Option<Keep> {
        let mut keep = Keep::default();
        for part in text.split(',') {
            let unit = part.chars().next_back()?;
            let number = part.strip_suffix(unit)?;
            if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let field = match unit {
                'd' => &mut keep.days,
                'w' => &mut keep.weeks,
                'm' => &mut keep.months,
                'y' => &mut keep.years,
                _ => return None,
            };
            *field = number.parse().ok()?;
        }
        (keep != Keep::default()).then_some(keep)
    }

    /// Returns the names of the generations that are not kept; the newest one always is. The names are sorted.
    pub(super) fn others<'a>(&self, names: &'a [String]) -> Vec<&'a str> {
        let dated = |name: &'a String| Some((name.as_str(), date_of(name)?));
        let dated: Vec<_> = names.iter().rev().filter_map(dated).collect();
        let day = |date: &Timestamp| date.seconds().div_euclid(24 * 60 * 60);
        let mut is_kept = vec![false; dated.len()];
        let mut keep = |count: usize, unit: &dyn Fn(&str, &Timestamp) -> String| {
            let mut units = Vec::new();
            for ((name, date), is_kept) in dated.iter().zip(&mut is_kept) {
                let unit = unit(name, date);
                if units.last() == Some(&unit) {
                    continue;
                }
                if units.len() == count {
                    break;
                }
                units.push(unit);
                *is_kept = true;
            }
        };
        let part = |name: &str, length: usize| name.get(..length).unwrap_or(name).to_owned();
        keep(1, &|name, _| name.to_owned());
        keep(self.days, &|_, date| day(date).to_string());
        // A week begins on Monday; 1970 began on a Thursday.
        keep(self.weeks, &|_, date| {
            (day(date) + 3).div_euclid(7).to_string()
        });
        keep(self.months, &|name, _| part(name, 7));
        keep(self.years, &|name, _| part(name, 4));
        let others = dated.iter().zip(&is_kept).filter(|(_, is_kept)| !**is_kept);
        others.map(|((name, _), _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_units_are_read_and_nothing_else() {
        let keep = Keep::parse("7d,4w,12m,3y").expect("all four");
        assert_eq!(
            (keep.days, keep.weeks, keep.months, keep.years),
            (7, 4, 12, 3)
        );
        assert_eq!(
            Keep::parse("2y"),
            Some(Keep {
                years: 2,
                ..Keep::default()
            })
        );
        for wrong in [
            "",
            "d",
            "0d",
            "7",
            "7h",
            "-7d",
            "7d,",
            "7d 4w",
            "+7d",
            "99999999999999999999999d",
            "7\u{e9}",
        ] {
            assert_eq!(Keep::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_name_of_a_generation_is_its_date() {
        let date = Timestamp::from_unix(1_795_000_000, 5);
        assert_eq!(name_of(&date), "2026-11-18T110640Z");
        assert_eq!(
            date_of("2026-11-18T110640Z"),
            Some(Timestamp::from_unix(1_795_000_000, 0))
        );
        for wrong in [
            "2026-11-18T11:06:40Z",
            "2026-11-18T110640.5Z",
            "2026-13-18T110640Z",
            "2026-11-18",
            "unfinished",
            "T",
            "",
        ] {
            assert_eq!(date_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_newest_of_each_unit_is_kept() {
        let names = [
            "2024-12-31T230000Z",
            "2025-03-01T230000Z",
            "2025-12-31T230000Z",
            "2026-10-31T230000Z",
            "2026-11-22T230000Z",
            "2026-11-23T230000Z",
            "2026-11-28T230000Z",
            "2026-11-29T010000Z",
            "2026-11-29T230000Z",
        ]
        .map(str::to_owned);
        let others = |text: &str| {
            let mut others = Keep::parse(text).expect("a number").others(&names);
            others.sort_unstable();
            others.iter().map(|name| &name[2..13]).collect::<Vec<_>>()
        };
        assert_eq!(
            others("2d,2w,2m,2y"),
            ["24-12-31T23", "25-03-01T23", "26-11-23T23", "26-11-29T01"]
        );
        assert_eq!(others("1d").len(), 8);
        assert_eq!(others("99d"), ["26-11-29T01"]);
        assert_eq!(
            others("9y"),
            [
                "25-03-01T23",
                "26-10-31T23",
                "26-11-22T23",
                "26-11-23T23",
                "26-11-28T23",
                "26-11-29T01"
            ]
        );
        assert!(
            Keep::parse("1d")
                .expect("one")
                .others(&names[..1])
                .is_empty()
        );
    }
}
