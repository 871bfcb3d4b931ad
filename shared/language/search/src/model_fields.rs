//! Evaluation of filters on logged models, and the metric value that a model is sorted by.

use std::cmp::Ordering;

use crate::filter::{ModelCode, ModelFilter, ModelPredicate, ModelText, ModelTime};
use crate::literals::FilterNumber;

/// The fields of a logged model that filters and orderings use.
pub trait ModelFields {
    /// Returns a text attribute.
    fn text(&self, attribute: ModelText) -> Option<&str>;

    /// Returns a numeric attribute that filters compare as text.
    fn code(&self, attribute: ModelCode) -> i64;

    /// Returns a time, in ms.
    fn time(&self, attribute: ModelTime) -> i64;

    /// Returns the value of a param.
    fn param(&self, key: &str) -> Option<&str>;

    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;

    /// Returns all points of all metrics.
    fn points(&self) -> impl Iterator<Item = MeasuredPoint<'_>>;
}

/// A point of a metric of a logged model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredPoint<'a> {
    /// The name of the metric.
    pub metric: &'a str,
    /// The value, which is finite.
    pub value: f64,
    /// The time of the point, in ms.
    pub timestamp: i64,
    /// The step.
    pub step: i64,
    /// The run that logged the point.
    pub run: &'a str,
    /// The name of the dataset that the metric was measured on. Empty for none.
    pub dataset_name: &'a str,
    /// The digest of that dataset. Empty for none.
    pub dataset_digest: &'a str,
}

impl ModelFilter {
    /// Checks whether a model passes the filter.
    #[must_use]
    pub fn matches(&self, model: &impl ModelFields) -> bool {
        // A requested dataset without a digest matches no point, because MLflow compares its
        // missing digest in SQL, where NULL is not equal to anything.
        let on_datasets = |point: &MeasuredPoint<'_>| {
            self.datasets.is_empty()
                || (self.datasets.iter()).any(|(name, digest)| {
                    !digest.is_empty() && point.dataset_name == name && point.dataset_digest == digest
                })
        };
        let passes = |predicate: &ModelPredicate| match predicate {
            ModelPredicate::Metric { key, comparator, value } => {
                let compares = |stored: f64| stored.partial_cmp(value).is_some_and(|order| comparator.holds(order));
                model.points().any(|point| point.metric == key && compares(point.value) && on_datasets(&point))
            }
            ModelPredicate::Param { key, test } => model.param(key).is_some_and(|value| test.passes(value)),
            ModelPredicate::Tag { key, test } => model.tag(key).is_some_and(|value| test.passes(value)),
            ModelPredicate::Text { attribute, test } => model.text(*attribute).is_some_and(|text| test.passes(text)),
            ModelPredicate::Code { attribute, test } => test.passes(&model.code(*attribute).to_string()),
            ModelPredicate::Time { attribute, comparator, value } => {
                !value.is_nan() && comparator.holds(FilterNumber::Float(*value).compare_stored(model.time(*attribute)))
            }
        };
        let by_metric = |predicate: &ModelPredicate| matches!(predicate, ModelPredicate::Metric { .. });
        // If the filter has no condition on a metric, any point on one of the datasets is
        // sufficient.
        let any_point = self.datasets.is_empty()
            || self.predicates.iter().any(by_metric)
            || model.points().any(|point| on_datasets(&point));
        any_point && self.predicates.iter().all(passes)
    }
}

/// Returns the value of the latest point of a metric on a dataset. An empty name or digest matches
/// every dataset.
pub(crate) fn latest(model: &impl ModelFields, metric: &str, name: &str, digest: &str) -> Option<f64> {
    let counts = |point: &MeasuredPoint<'_>| {
        point.metric == metric
            && (name.is_empty() || point.dataset_name == name)
            && (digest.is_empty() || point.dataset_digest == digest)
    };
    let by_time = |a: &MeasuredPoint<'_>, b: &MeasuredPoint<'_>| -> Ordering {
        let moment = (a.timestamp, a.step).cmp(&(b.timestamp, b.step));
        moment.then_with(|| b.run.cmp(a.run)).then_with(|| a.value.total_cmp(&b.value))
    };
    model.points().filter(counts).max_by(by_time).map(|point| point.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::parse_model_filter;
    use crate::model_order::{ModelOrderBy, parse_model_order};

    #[derive(Default)]
    struct Model {
        points: Vec<MeasuredPoint<'static>>,
        name: &'static str,
        created: i64,
    }

    impl ModelFields for Model {
        fn text(&self, attribute: ModelText) -> Option<&str> {
            match attribute {
                ModelText::StatusMessage => None,
                _ => Some(self.name),
            }
        }
        fn code(&self, _: ModelCode) -> i64 {
            2
        }
        fn time(&self, _: ModelTime) -> i64 {
            self.created
        }
        fn param(&self, key: &str) -> Option<&str> {
            (key == "p").then_some("v")
        }
        fn tag(&self, key: &str) -> Option<&str> {
            (key == "t").then_some("v")
        }
        fn points(&self) -> impl Iterator<Item = MeasuredPoint<'_>> {
            self.points.iter().copied()
        }
    }

    fn point(
        metric: &'static str,
        value: f64,
        (timestamp, step): (i64, i64),
        run: &'static str,
        on: &'static str,
    ) -> MeasuredPoint<'static> {
        MeasuredPoint { metric, value, timestamp, step, run, dataset_name: on, dataset_digest: on }
    }

    fn matches(model: &Model, filter: &str, datasets: &[(&str, &str)]) -> bool {
        let datasets: Vec<_> =
            datasets.iter().map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned())).collect();
        parse_model_filter(filter, &datasets).unwrap().matches(model)
    }

    #[test]
    fn any_point_of_a_metric_may_pass() {
        let points =
            vec![point("a", 1.0, (1, 1), "r", "d"), point("a", 3.0, (2, 1), "r", ""), point("b", 0.0, (1, 1), "r", "")];
        let model = Model { points, ..Model::default() };
        for (filter, datasets, expected) in [
            ("metrics.a > 2", &[][..], true),
            ("metrics.a < 2", &[], true),
            ("metrics.a != 1", &[], true),
            ("metrics.a > 1 AND metrics.a < 3", &[], true),
            ("metrics.a > nan", &[], false),
            ("metrics.a != nan", &[], false),
            ("metrics.c != 1", &[], false),
            ("metrics.a > 2", &[("d", "d")], false),
            ("metrics.a < 2", &[("x", "x"), ("d", "d")], true),
            ("metrics.b = 0", &[("d", "d")], false),
            ("", &[("d", "d")], true),
            ("", &[("d", "")], false),
            ("", &[("d", "e")], false),
            ("params.p = v", &[("d", "d")], true),
            ("params.p = v", &[("e", "e")], false),
        ] {
            assert_eq!(matches(&model, filter, datasets), expected, "{filter} {datasets:?}");
        }
    }

    #[test]
    fn what_is_missing_passes_nothing() {
        let model = Model { name: "n", created: 5, ..Model::default() };
        for (filter, expected) in [
            ("tags.x != 'a'", false),
            ("tags.x NOT IN ('a')", false),
            ("tags.t NOT IN ('a')", true),
            ("status_message != 'a'", false),
            ("status = '2'", true),
            ("status != 'READY'", true),
            ("creation_time >= 5", true),
            ("creation_time > 4.5", true),
            ("creation_time < inf", true),
            ("creation_time != nan", false),
        ] {
            assert_eq!(matches(&model, filter, &[]), expected, "{filter}");
        }
    }

    #[test]
    fn the_latest_point_decides_the_order() {
        let points = vec![
            point("a", 1.0, (1, 9), "r", "d"),
            point("a", 2.0, (2, 1), "r", ""),
            point("a", 3.0, (2, 2), "s", ""),
            point("a", 4.0, (2, 2), "q", ""),
        ];
        let model = Model { points, ..Model::default() };
        assert_eq!(latest(&model, "a", "", ""), Some(4.0));
        assert_eq!(latest(&model, "a", "d", ""), Some(1.0));
        assert_eq!(latest(&model, "a", "", "d"), Some(1.0));
        assert_eq!(latest(&model, "a", "d", "e"), None);
        let clause = |field: &str, ascending| ModelOrderBy {
            field: field.to_owned(),
            ascending,
            dataset_name: String::new(),
            dataset_digest: String::new(),
        };
        for ascending in [true, false] {
            let order = parse_model_order(&[clause("metrics.a", ascending)]).unwrap();
            assert!(order.key(&model) < order.key(&Model::default()), "nothing comes last");
        }
        assert!(parse_model_order(&[]).unwrap().is_newest_first());
        assert!(parse_model_order(&[clause("creation_time", false)]).unwrap().is_newest_first());
        assert_eq!(parse_model_order(&[clause("model_id", true)]).unwrap().terms.len(), 2);
        let message = |field| parse_model_order(&[clause(field, true)]).unwrap_err().message;
        assert_eq!(message("tags"), "Invalid order by field name: tags");
        assert_eq!(message("params.a"), "Invalid order by field name: params.a. Only metrics are supported.");
    }
}
