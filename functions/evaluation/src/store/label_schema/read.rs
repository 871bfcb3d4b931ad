//! Reading label schemas.

use access::Granted;
use entities::attributes::{NAME, SCHEMA};
use key_schema::{ranges, rows};
use mlflow_api::label_schemas::{DEFAULT_NAME, LabelSchema, LabelSchemasResponse};
use mlflow_api::{Error, ExperimentId, LabelSchemaId, Result};
use search::{Fingerprint, decode_page_token, encode_page_token};
use table::{Item, Query};

use super::items::{name_key, schema_key, schema_of};
use crate::store::Store;

impl Store {
    /// Returns a label schema. Takes one request. The default one takes a request only if the lease
    /// on the experiment has expired.
    pub async fn label_schema_get(
        &self,
        experiment: &Granted<ExperimentId>,
        schema: &LabelSchemaId,
    ) -> Result<LabelSchema> {
        let not_found = || LabelSchemaId::not_found(schema.as_str());
        if schema.experiment() != **experiment {
            return Err(not_found());
        }
        if schema.is_default() {
            self.experiments.state(**experiment).await?.ok_or_else(not_found)?;
            return Ok(LabelSchema::default_of(**experiment));
        }
        let item = self.table.get(&schema_key(schema)).await?.ok_or_else(not_found)?;
        schema_of(&item)
    }

    /// Returns a label schema by its name. Takes two requests, and one more if the lease on the
    /// experiment has expired.
    pub async fn label_schema_get_by_name(
        &self,
        experiment: &Granted<ExperimentId>,
        name: &str,
    ) -> Result<LabelSchema> {
        let experiment = self.reviewed_experiment(**experiment).await?;
        if name == DEFAULT_NAME {
            return Ok(LabelSchema::default_of(experiment));
        }
        let not_found =
            || Error::not_found(format!("Label schema with name '{name}' not found for experiment '{experiment}'."));
        let claim = self.table.get(&name_key(experiment, name)).await?.filter(|claim| claim.get(NAME) == Some(name));
        let claim = claim.ok_or_else(not_found)?;
        let schema = claim.get(SCHEMA).and_then(LabelSchemaId::parse).ok_or_else(not_found)?;
        let item = self.table.get(&schema_key(&schema)).await?.ok_or_else(not_found)?;
        schema_of(&item)
    }

    /// Returns a page of an experiment's label schemas, newest first. Takes one request, and one
    /// more if the lease on the experiment has expired. The schemas of a page have up to 1 MB.
    pub async fn label_schema_list(
        &self,
        experiment: &Granted<ExperimentId>,
        max_results: usize,
        token: &str,
    ) -> Result<LabelSchemasResponse> {
        let fingerprint = Fingerprint::of_list("label schemas", &experiment.to_string(), &[]);
        let after = decode_page_token::<String>(fingerprint, token)?;
        let experiment = self.reviewed_experiment(**experiment).await?;
        let range = match after {
            None => rows::LabelSchema::all(&experiment).range(),
            Some(after) => {
                let after = LabelSchemaId::parse(&after).filter(|after| after.experiment() == experiment);
                ranges::label_schemas_after(&after.ok_or_else(|| Error::invalid("Invalid page token"))?)
            }
        };
        let page = self.table.query_page(&Query::of(range).limit(max_results)).await?;
        let mut label_schemas = page.items.iter().map(schema_of).collect::<Result<Vec<_>>>()?;
        // The default schema is the last one, and is not stored.
        let is_last = page.next.is_none() && label_schemas.len() < max_results;
        let next_page_token = match page.items.last().and_then(Item::key).filter(|_| !is_last) {
            Some(last) => {
                let last = rows::LabelSchema::parse(&last).map(|row| row.schema.to_string()).unwrap_or_default();
                encode_page_token(fingerprint, &last)?
            }
            None => String::new(),
        };
        if is_last {
            label_schemas.push(LabelSchema::default_of(experiment));
        }
        Ok(LabelSchemasResponse { label_schemas, next_page_token })
    }
}
