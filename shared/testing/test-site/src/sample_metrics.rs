//! Points of metrics whose compressed size resembles that of the metrics of training scripts. Series
//! without noise, such as `step / 7`, would take hardly any space.

/// Number of kinds of values. The kind depends on the number of the metric.
const KINDS: u32 = 10;

/// Returns the value of a metric at a step. Of ten consecutive metrics:
///
/// - five are losses that were computed with single precision, as by most training scripts,
/// - two are ratios of counts, such as accuracies,
/// - one is a learning rate,
/// - two have noise in every bit of double precision.
pub fn value(metric: u32, step: u32) -> f64 {
    let noise = noise(metric, step);
    let loss = f64::from(metric / KINDS + 1) * 2.0 / (1.0 + f64::from(step) * 0.01) + 0.1 * noise;
    match metric % KINDS {
        5 | 6 => (8_000.0 + (noise * 1_000.0).floor()) / 9_973.0,
        7 => 0.001 * 0.999_f64.powi(i32::try_from(step).unwrap()),
        8 | 9 => loss,
        #[expect(clippy::cast_possible_truncation, reason = "the loss of precision is intended")]
        _ => f64::from(loss as f32),
    }
}

/// Returns the time of a step in ms, relative to that of the first step. Steps are `interval` ms
/// apart, and up to 40 ms late.
pub fn time(step: u32, interval: u32) -> i64 {
    i64::from(step) * i64::from(interval) + i64::try_from(noise_bits(u32::MAX, step) % 41).unwrap()
}

/// Returns an integer with 40 bits of noise, for histories that are long enough to be archived even
/// after compression.
pub fn integer(step: u32) -> i64 {
    i64::try_from(noise_bits(0, step) >> 24).unwrap()
}

/// Returns pseudo-random bits (splitmix64).
fn noise_bits(metric: u32, step: u32) -> u64 {
    let mut bits = ((u64::from(metric) << 32) | u64::from(step)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns a pseudo-random number from 0 to 1, with the 53 bits that a double has.
fn noise(metric: u32, step: u32) -> f64 {
    let bits = noise_bits(metric, step);
    let [high, low] = [bits >> 43, (bits >> 11) & 0xffff_ffff].map(|part| f64::from(u32::try_from(part).unwrap()));
    (high * 4_294_967_296.0 + low) / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_precision_that_they_should_have() {
        let is_single = |value: f64| value.to_bits().trailing_zeros() >= 29;
        for step in 0..100 {
            assert!((0..5).all(|metric| is_single(value(metric, step))));
            assert!((5..10).all(|metric| !is_single(value(metric, step)) || (metric == 7 && step == 0)));
            assert!((0.0..=1.0).contains(&noise(3, step)));
        }
        assert!((0..100).all(|step| (0..=40).contains(&(time(step, 1_000) - i64::from(step) * 1_000))));
    }
}
