//! Searches of skills.

use std::collections::HashSet;

use access::{Guard, Resource, Visibility};
use entities::listing::{DocumentSearch, ReadBudget, SearchedDocuments};
use key_schema::rows;
use mlflow_api::skills::{Skill, SkillSearchParameters, SkillsResponse};
use mlflow_api::{Error, Result, SkillName};
use search::{
    Fingerprint, SkillEntity, SkillFields, SkillFilter, SkillNumber, SkillOrder, SkillText, SortKey, check_page_token,
    decode_page_token, is_encoded_json, parse_skill_search,
};
use table::Item;

use super::skill_document::StoredSkill;
use super::store::Store;

/// Decodes the page token of a search of skills or versions, like [`decode_page_token`]. The messages
/// are those of MLflow's `SkillRegistryPaginationToken`.
pub(super) fn decode_skill_token(search: Fingerprint, token: &str) -> Result<Option<SortKey>> {
    if !token.is_empty() && !is_encoded_json(token) {
        return Err(Error::invalid("Invalid page token: could not decode."));
    }
    check_page_token(token).map_err(|_| Error::invalid("Invalid page token: missing or malformed fields."))?;
    decode_page_token(search, token)
}

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
struct SkillCriteria<'a, F> {
    visible: &'a Visibility,
    selected: Option<HashSet<&'a SkillName>>,
    filter: SkillFilter,
    order: SkillOrder,
    after: Option<SortKey>,
    /// Adds what depends on the caller to a skill on the page.
    complete: F,
}

impl<F> SkillCriteria<'_, F> {
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

impl<F: Fn(&SkillName, &mut Skill) + Sync> SearchedDocuments for SkillCriteria<'_, F> {
    type Document = StoredSkill;
    type Entity = Skill;

    fn read(&self, item: Item) -> Result<Option<(SortKey, StoredSkill)>> {
        let skill = StoredSkill::of(item)?;
        Ok(self.key(&skill).map(|key| (key, skill)))
    }

    async fn complete(&self, skill: &StoredSkill) -> Result<Skill> {
        let mut answer = skill.answer()?;
        (self.complete)(&skill.name, &mut answer);
        Ok(answer)
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
        complete: impl Fn(&SkillName, &mut Skill) + Sync,
    ) -> Result<SkillsResponse> {
        let page_size = search.page_size()?;
        let fingerprint = Fingerprint::of_skill_search(&["skills"], &search.filter, &search.order_by);
        let after = decode_skill_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_skill_search(SkillEntity::Skill, &search.filter, &search.order_by)?;
        let documents = DocumentSearch {
            range: rows::Skill::all(&self.authorizer_writes.workspace().as_str().into()).range(),
            after: after.clone(),
            in_order: order.is_default(),
            may_refuse: !filter.is_empty() || selected.is_some() || !matches!(visible, Visibility::Everything),
            page_size,
        };
        let selected = selected.map(|names| names.iter().collect());
        let criteria = SkillCriteria { visible, selected, filter, order, after, complete };
        let reading = ReadBudget::default();
        let page = documents.page(&criteria, &reading.of(&self.table), &reading).await?;
        let (skills, next_page_token) = page.finish(fingerprint)?;
        Ok(SkillsResponse { skills, next_page_token })
    }
}
