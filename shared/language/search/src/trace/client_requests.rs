//! The client request ids to which a filter restricts a search. With these ids, the traces can be
//! found through an index.

use super::filter::TraceFilter;
use super::predicate::{TracePredicate, TraceText};
use super::value_tests::TraceTextTest;
use crate::filter::TextTest;

impl TraceFilter {
    /// Returns the client request ids that a passing trace can have, or `None` if the filter does
    /// not restrict the client request id.
    #[must_use]
    pub fn client_requests(&self) -> Option<Vec<&str>> {
        let limits = self.predicates.iter().filter_map(|predicate| match predicate {
            TracePredicate::Text { attribute: TraceText::ClientRequestId, test: TraceTextTest::Text(test) } => {
                match test {
                    TextTest::Equal(id) => Some(vec![id.as_str()]),
                    TextTest::In(ids) => Some(ids.iter().map(String::as_str).collect()),
                    _ => None,
                }
            }
            _ => None,
        });
        limits.min_by_key(Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_trace_filter;

    #[test]
    fn conditions_on_the_clients_id_of_the_request_limit_a_search() {
        for (filter, requests) in [
            ("client_request_id = 'x'", Some(vec!["x"])),
            ("attributes.client_request_id = \"x y\"", Some(vec!["x y"])),
            ("trace.`client_request_id` = ''", Some(vec![""])),
            ("tag.a = 'b' AND client_request_id IN ('x', 'y', 'x') AND status = 'OK'", Some(vec!["x", "y"])),
            ("client_request_id IN ('x', 'y') AND client_request_id = 'z' AND timestamp > 5", Some(vec!["z"])),
            ("client_request_id = 'x' AND client_request_id != 'x'", Some(vec!["x"])),
            ("", None),
            ("request_id = 'x'", None),
            ("tag.client_request_id = 'x'", None),
            ("client_request_id != 'x'", None),
            ("client_request_id NOT IN ('x')", None),
            ("client_request_id LIKE 'x'", None),
            ("client_request_id ILIKE 'x'", None),
            ("client_request_id RLIKE 'x'", None),
        ] {
            assert_eq!(parse_trace_filter(filter).unwrap().client_requests(), requests, "{filter}");
        }
    }
}
