//! The correlation of two filters of traces, as normalized pointwise mutual information
//! (`trace_correlation.py`).

/// The numbers of traces that passed each filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorrelationCounts {
    /// The number of all traces that were examined.
    pub total: u64,
    /// The number of traces that passed the first filter.
    pub first: u64,
    /// The number of traces that passed the second filter.
    pub second: u64,
    /// The number of traces that passed both filters.
    pub joint: u64,
}

/// A constant that is added to each count, to reduce the influence of small counts (Jeffreys'
/// prior).
const PRIOR: f64 = 0.5;

impl CorrelationCounts {
    /// Returns the correlation and the smoothed correlation. Both range from -1 (the filters never
    /// pass together) to 1 (they always pass together). Returns `None` if the correlation is
    /// undefined.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of traces")]
    pub fn correlation(self) -> Option<(Option<f64>, Option<f64>)> {
        let Self { total, first, second, joint } = self;
        if total == 0 || first == 0 || second == 0 || joint > first.min(second) || first + second - joint > total {
            return None;
        }
        let cells = [joint, first - joint, second - joint, total + joint - first - second].map(|count| count as f64);
        let plain = if joint == 0 { Some(-1.0) } else { of_cells(cells, 0.0) };
        Some((plain, of_cells(cells, PRIOR)))
    }
}

fn of_cells([both, first, second, neither]: [f64; 4], prior: f64) -> Option<f64> {
    if first == 0.0 && second == 0.0 && neither == 0.0 {
        return Some(1.0);
    }
    let [both, first, second, neither] = [both, first, second, neither].map(|count| count + prior);
    let total = both + first + second + neither;
    if both <= 0.0 {
        return None;
    }
    let information = (both.ln() + total.ln()) - ((both + first).ln() + (both + second).ln());
    let normalized = information / -(both.ln() - total.ln());
    Some(normalized.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_together_correlates() {
        let counts = |joint, first, second, total| CorrelationCounts { total, first, second, joint }.correlation();
        let near = |found: Option<f64>, expected: f64| assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?}");
        assert_eq!(counts(0, 0, 3, 10), None);
        assert_eq!(counts(0, 0, 0, 0), None);
        assert_eq!(counts(5, 5, 5, 5).unwrap(), (Some(1.0), Some(1.0)));
        // These values were recorded from MLflow 3.17.2.
        let (plain, smoothed) = counts(10, 20, 15, 100).unwrap();
        near(plain, 0.522_878_745_280_337_8);
        near(smoothed, 0.509_868_999_183_141_2);
        let (plain, smoothed) = counts(0, 3, 4, 10).unwrap();
        near(plain, -1.0);
        near(smoothed, -0.378_839_651_118_848_5);
    }
}
