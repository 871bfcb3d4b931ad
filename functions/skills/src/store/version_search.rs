//! Searches of the versions of a skill.

use access::Granted;
use entities::listing::{FirstEntities, ResponsePage};
use futures::stream::TryStreamExt;
use key_schema::{Digest, rows};
use mlflow_api::skills::{SkillSearchParameters, SkillStatus, SkillVersionsResponse};
use mlflow_api::{Result, SkillName};
use search::{Fingerprint, SkillEntity, SkillFields, SkillNumber, SkillText, SortKey, parse_skill_search};
use table::Query;

use super::skill_search::decode_skill_token;
use super::store::Store;
use super::version_row::StoredVersion;

/// A version, and the organization of its skill, for filters and orderings.
struct SearchableVersion<'a> {
    organization: &'a str,
    stored: StoredVersion,
}

impl SkillFields for SearchableVersion<'_> {
    fn text(&self, field: SkillText) -> Option<String> {
        match field {
            SkillText::Organization => Some(self.organization.to_owned()),
            SkillText::Status => Some(self.stored.status.name().to_owned()),
            SkillText::SourceType => Some(self.stored.source.kind.name().to_owned()),
            SkillText::Digest => self.stored.digest.clone(),
            SkillText::Name | SkillText::Description | SkillText::SearchText => None,
        }
    }

    fn number(&self, field: SkillNumber) -> i64 {
        match field {
            SkillNumber::Created => self.stored.created,
            SkillNumber::Updated => self.stored.updated,
            SkillNumber::Version => self.stored.version.into(),
        }
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.stored.tags.get(key).map(String::as_str)
    }

    fn identity(&self) -> String {
        format!("{:010}", self.stored.version)
    }
}

impl Store {
    /// Searches the versions of a skill. If the skill does not exist, the result is empty. Takes
    /// one request to read the skill, and one per MB of the rows of all its versions.
    pub async fn version_search(
        &self,
        name: Option<&Granted<SkillName>>,
        search: &SkillSearchParameters,
    ) -> Result<SkillVersionsResponse> {
        let page_size = search.page_size()?;
        let of = name.map(|name| SkillName::to_string(name)).unwrap_or_default();
        let fingerprint = Fingerprint::of_skill_search(&["versions", &of], &search.filter, &search.order_by);
        let after: Option<SortKey> = decode_skill_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_skill_search(SkillEntity::Version, &search.filter, &search.order_by)?;
        let mut page = ResponsePage::new(page_size);
        let skill = match name {
            Some(name) => self.skill_find(name).await?,
            None => None,
        };
        let Some(skill) = skill else {
            let (skill_versions, next_page_token) = page.finish(fingerprint)?;
            return Ok(SkillVersionsResponse { skill_versions, next_page_token });
        };
        let mut first = FirstEntities::new(page_size);
        let versions = Query::of(rows::SkillVersion::all(&Digest(skill.id)));
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, versions));
        while let Some(items) = pages.try_next().await? {
            for item in items {
                let bytes = item.size();
                let version =
                    SearchableVersion { organization: skill.name.organization(), stored: StoredVersion::of(item)? };
                if version.stored.status == SkillStatus::Deleted || !filter.matches(&version) {
                    continue;
                }
                let key = order.key(&version);
                if after.as_ref().is_none_or(|after| key > *after) {
                    first.add(key, version.stored, bytes);
                }
            }
        }
        let found = first.finish();
        let has_more = found.has_more();
        for (key, version, bytes) in found.entities {
            if !page.has_room_for(bytes) || !page.add(key, &version.answer(&skill))? {
                break;
            }
        }
        if has_more {
            page.ends_here();
        }
        let (skill_versions, next_page_token) = page.finish(fingerprint)?;
        Ok(SkillVersionsResponse { skill_versions, next_page_token })
    }
}
