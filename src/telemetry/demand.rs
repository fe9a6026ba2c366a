//! How many wait for a card, by an expression that a server of Prometheus' kind is asked.

use jiff::Timestamp;

use super::prometheus::{Client, PromError, PrometheusSettings};

/// One number needs no more. Whatever the expression selects, nothing beyond is read.
const MAX_BODY: usize = 1 << 20;

/// An expression and whom it is asked.
#[derive(Debug)]
pub struct DemandQuery {
    client: Client,
    promql: String,
    /// The part of the settings that the server stands in.
    section: &'static str,
}

impl DemandQuery {
    /// Asks nothing yet. `section` is where the settings of the server stand.
    pub fn new(server: PrometheusSettings, promql: String, section: &'static str) -> Result<Self, PromError> {
        let client = Client::new(PrometheusSettings { max_series: 1, ..server })?;
        Ok(Self { client: client.reading_at_most(MAX_BODY), promql, section })
    }

    /// How many wait now. What is not exactly one number of people is refused, in words that name the expression.
    pub async fn waiting(&self, now: Timestamp) -> Result<u32, String> {
        let promql = &self.promql;
        let answer = self.client.values(promql, now).await.map_err(|error| match error {
            PromError::TooLarge { .. } => {
                format!("`{promql}` gives more than one series: wrap it in sum(…) or count(…)")
            }
            error => error.to_string().replace("telemetry.prometheus", self.section),
        })?;
        let Some(series) = answer.series.first() else {
            return Err(format!(
                "`{promql}` gives nothing: add \"or vector(0)\" if that means that nobody waits"
            ));
        };
        let value = series.samples.first().map_or(f64::NAN, |(_, value)| *value);
        people(value).ok_or_else(|| format!("`{promql}` gives {value}, which is no number of people"))
    }
}

/// A share of a person is none: to take nobody for waiting can only postpone a stop.
fn people(value: f64) -> Option<u32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just before")]
    (0.0..=f64::from(u32::MAX)).contains(&value).then_some(value as u32)
}

#[cfg(test)]
mod tests {
    use super::people;

    #[test]
    fn only_a_number_of_people_is_one() {
        for (value, count) in
            [(0.0, Some(0)), (-0.0, Some(0)), (0.9, Some(0)), (3.0, Some(3)), (2.5, Some(2))]
        {
            assert_eq!(people(value), count, "{value}");
        }
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.1, 1e300] {
            assert_eq!(people(value), None, "{value}");
        }
    }
}
