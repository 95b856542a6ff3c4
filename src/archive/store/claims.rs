//! Contradictory and incomplete relations among the items of a store.

use super::{ItemId, Store, StoreError, rows};
use crate::formats::item::Names;
use ibi::relation::RelationKind;

/// A relation that two items claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contested {
    /// The item that has the relation.
    pub names: Names,
    /// The kind of the relation.
    pub kind: RelationKind,
    /// The target in the item's own sidecar.
    pub target: Names,
    /// The item that claims to be the target.
    pub other: Names,
}

/// A relation of two originals that only one of them declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneSided {
    /// The item that declares it.
    pub near: Names,
    /// The kind that it declares.
    pub kind: RelationKind,
    /// The item that does not declare it.
    pub far: Names,
}

const CONTESTED: &str = "
    SELECT item.rep AS rep, item.ibip AS ibip, relation.kind AS kind,
        relation.target_rep AS target_rep, relation.target_ibip AS target_ibip,
        other.rep AS other_rep, other.ibip AS other_ibip
    FROM relation JOIN item ON item.id = relation.source
    JOIN relation back ON back.target_rep_key = item.rep_key OR back.target_ibip_key = item.ibip_key
    JOIN item other ON other.id = back.source
    WHERE (relation.kind, back.kind) IN (VALUES ('ibi.nextedition', 'ibi.editionof'),
            ('ibi.metadata', 'ibi.metadataof'))
        AND other.state <> 'Deleted'
        AND NOT coalesce(relation.target_rep_key = other.rep_key, false)
        AND NOT coalesce(relation.target_ibip_key = other.ibip_key, false)
    ORDER BY item.id, other.id";

/// The far end's own declarations have precedence there, so a pair is missing only if the far end
/// declares nothing of that kind.
const ONE_SIDED: &str = "
    SELECT item.rep AS rep, item.ibip AS ibip, relation.kind AS kind,
        relation.target_rep AS target_rep, relation.target_ibip AS target_ibip,
        far.rep AS other_rep, far.ibip AS other_ibip
    FROM relation JOIN item ON item.id = relation.source
    JOIN item far ON far.rep_key = relation.target_rep_key
        OR far.ibip_key = relation.target_ibip_key
    WHERE item.state = 'Original' AND far.state = 'Original' AND far.id <> item.id
        AND NOT EXISTS (SELECT 1 FROM relation back WHERE back.source = far.id AND back.kind =
            CASE relation.kind
                WHEN 'ibi.nextedition' THEN 'ibi.editionof'
                WHEN 'ibi.metadata' THEN 'ibi.metadataof'
                WHEN 'ibi.editionof' THEN 'ibi.nextedition'
                WHEN 'ibi.metadataof' THEN 'ibi.metadata'
                WHEN 'ibi.translationof' THEN 'ibi.translation(' || item.language || ')'
                ELSE 'ibi.translationof'
            END)
        AND (relation.kind <> 'ibi.translationof' OR item.language IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM relation back WHERE back.source = far.id
                AND back.kind LIKE 'ibi.translation(%'
                AND (back.target_rep_key = item.rep_key OR back.target_ibip_key = item.ibip_key)))
    ORDER BY item.id, relation.kind";

/// The relations of items that are here to items that were removed here.
const REMOVED: &str = "
    SELECT item.rep AS rep, item.ibip AS ibip, relation.kind AS kind,
        relation.target_rep AS target_rep, relation.target_ibip AS target_ibip,
        gone.rep AS other_rep, gone.ibip AS other_ibip
    FROM relation JOIN item ON item.id = relation.source
    JOIN item gone ON gone.rep_key = relation.target_rep_key
        OR gone.ibip_key = relation.target_ibip_key
    WHERE item.state <> 'Deleted' AND gone.state = 'Deleted'
    ORDER BY item.id, relation.kind";

impl Store {
    /// The next editions and metadata that an item declares and that another item claims to be.
    pub fn contested(&self) -> Result<Vec<Contested>, StoreError> {
        self.claims(CONTESTED, |names, kind, target, other| Contested {
            names,
            kind,
            target,
            other,
        })
    }

    /// The relations of two originals that only one of them declares.
    pub fn one_sided(&self) -> Result<Vec<OneSided>, StoreError> {
        self.claims(ONE_SIDED, |near, kind, _, far| OneSided { near, kind, far })
    }

    /// The relations of items that are here to items that were removed here, each with the removed item.
    pub fn to_removed(&self) -> Result<Vec<(Names, RelationKind, Names)>, StoreError> {
        self.claims(REMOVED, |names, kind, _, removed| (names, kind, removed))
    }

    fn claims<T>(
        &self,
        sql: &str,
        claim: impl Fn(Names, RelationKind, Names, Names) -> T,
    ) -> Result<Vec<T>, StoreError> {
        let mut claims = Vec::new();
        self.lock().visit(sql, &[], |row| {
            let (kind, target) = rows::relation(row)?;
            let names = rows::names("item", row.get("rep")?, row.get("ibip")?)?;
            let other = rows::names("item", row.get("other_rep")?, row.get("other_ibip")?)?;
            if let (Some(names), Some(other)) = (names, other) {
                claims.push(claim(names, kind, target, other));
            }
            Ok(())
        })?;
        Ok(claims)
    }

    /// The items that have a next edition, by their own sidecar or by that of the next edition.
    pub fn with_next_edition(&self) -> Result<Vec<ItemId>, StoreError> {
        let sql = "SELECT source FROM relation WHERE kind = 'ibi.nextedition'
             UNION
             SELECT item.id FROM relation JOIN item ON item.rep_key = target_rep_key
                 OR item.ibip_key = target_ibip_key
             WHERE kind = 'ibi.editionof'";
        self.lock().each(sql, &[], |row| row.get(0).map(ItemId))
    }
}
