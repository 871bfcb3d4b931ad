//! Searches of skills.

use std::collections::HashSet;

use access::{Guard, Resource, Visibility};
use entities::listing::{CooperativeYield, FirstEntities, ReadBudget, ResponsePage};
use key_schema::rows;
use mlflow_api::skills::{Skill, SkillSearchParameters, SkillsResponse};
use mlflow_api::{Result, SkillName};
use search::{
    Fingerprint, SkillEntity, SkillFields, SkillFilter, SkillNumber, SkillOrder, SkillText, SortKey, decode_page_token,
    parse_skill_search,
};
use table::Query;

use super::skill_document::StoredSkill;
use super::store::Store;

impl SkillFields for StoredSkill {
    fn text(&self, field: SkillText) -> Option<String> {
        match field {
            SkillText::Name => Some(self.name.name().to_owned()),
            SkillText::Organization => Some(self.name.organization().to_owned()),
            SkillText::Description => self.description.clone(),
            SkillText::SearchText => Some(search_text(self.name.name(), self.description.as_deref())),
            SkillText::Status => self.latest.as_ref().map(|latest| latest.status.name().to_owned()),
            SkillText::SourceType => self.latest.as_ref().map(|latest| latest.source_type.name().to_owned()),
            SkillText::Digest => None,
        }
    }

    fn number(&self, field: SkillNumber) -> i64 {
        match field {
            SkillNumber::Created => self.created,
            SkillNumber::Updated => self.updated,
            SkillNumber::Version => 0,
        }
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).map(String::as_str)
    }

    fn identity(&self) -> String {
        self.name.sort_key()
    }
}

/// Returns the value of the field `search_text` (`build_skill_search_text`): the name, followed by
/// the words of the description.
fn search_text(name: &str, description: Option<&str>) -> String {
    let words = description.unwrap_or_default().split_whitespace();
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

/// The conditions that a skill has to meet to be on the requested page or a later one.
struct SkillCriteria<'a> {
    visible: &'a Visibility,
    selected: Option<HashSet<&'a SkillName>>,
    filter: SkillFilter,
    order: SkillOrder,
    after: Option<SortKey>,
}

impl SkillCriteria<'_> {
    /// Returns the sort key of a skill that meets all conditions. Returns `None` for other skills.
    fn key(&self, skill: &StoredSkill) -> Option<SortKey> {
        let is_selected = self.selected.as_ref().is_none_or(|selected| selected.contains(&skill.name));
        if !is_selected
            || !self.visible.shows_as(Resource::Skill, &Guard::Skill(skill.name.clone()))
            || !self.filter.matches(skill)
        {
            return None;
        }
        let key = self.order.key(skill);
        self.after.as_ref().is_none_or(|after| key > *after).then_some(key)
    }
}

impl Store {
    /// Searches skills.
    ///
    /// In the default order, reads only the documents of the page: one read unit per about 25
    /// skills without long texts. If there is a filter or a selection, or if the caller may not see
    /// all skills, reads 1 MB of documents at a time instead, until the page is full or the read
    /// budget is exhausted. In any other order, reads all documents of the workspace.
    pub async fn skill_search(
        &self,
        visible: &Visibility,
        search: &SkillSearchParameters,
        selected: Option<&[SkillName]>,
        complete: impl Fn(&SkillName, &mut Skill),
    ) -> Result<SkillsResponse> {
        let page_size = search.page_size()?;
        let fingerprint = Fingerprint::of_skill_search(&["skills"], &search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_skill_search(SkillEntity::Skill, &search.filter, &search.order_by)?;
        let in_order = order.is_default();
        let reading = ReadBudget::default();
        let table = reading.of(&self.table);
        let workspace = self.authorizer_writes.workspace();
        let range = rows::Skill::all(&workspace.as_str().into()).range();
        let range = match after.as_ref().and_then(SortKey::first_text).filter(|_| in_order) {
            Some(name) => range.after(name),
            None => range,
        };
        // A filter, a selection or missing permissions may exclude most skills. In these cases, the
        // number of documents per request is not limited.
        let reads_page =
            in_order && filter.is_empty() && selected.is_none() && matches!(visible, Visibility::Everything);
        let query = Query::of(range);
        let mut query = if reads_page { query.limit(page_size + 1) } else { query };
        let selected = selected.map(|names| names.iter().collect());
        let criteria = SkillCriteria { visible, selected, filter, order, after };
        let answer = |skill: &StoredSkill| {
            let mut answer = skill.answer()?;
            complete(&skill.name, &mut answer);
            Ok::<_, mlflow_api::Error>(answer)
        };
        let (mut page, mut first) = (ResponsePage::new(page_size), FirstEntities::new(page_size));
        let mut yielding = CooperativeYield::default();
        'reading: loop {
            let read = table.query_page(&query).await?;
            for item in read.items {
                yielding.keep().await;
                let bytes = item.size();
                let skill = StoredSkill::of(item)?;
                let Some(key) = criteria.key(&skill) else { continue };
                if !in_order {
                    first.add(key, skill, bytes);
                } else if !page.has_room_for(bytes) || !page.add(key, &answer(&skill)?)? {
                    break 'reading;
                }
            }
            match read.next {
                Some(_) if in_order && reading.is_used_up() && !page.is_empty() => {
                    page.ends_here();
                    break;
                }
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        let found = first.finish();
        let has_more = found.has_more();
        for (key, skill, _) in found.entities {
            if !page.add(key, &answer(&skill)?)? {
                break;
            }
        }
        if has_more {
            page.ends_here();
        }
        let (skills, next_page_token) = page.finish(fingerprint)?;
        Ok(SkillsResponse { skills, next_page_token })
    }
}
