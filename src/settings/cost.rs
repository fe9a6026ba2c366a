//! What cards cost, for the finance side of a plan.

use globset::GlobMatcher;

use super::{SettingsError, raw};

/// Prices by card model; the first pattern that matches counts.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// The currency's name, for people.
    pub currency: String,
    rates: Vec<(GlobMatcher, f64)>,
}

impl Cost {
    /// Reads the section.
    pub fn new(raw: &raw::Cost) -> Result<Self, SettingsError> {
        if let Some(rate) = raw.rates.iter().find(|rate| !(rate.per_hour.is_finite() && rate.per_hour >= 0.0))
        {
            return Err(SettingsError::key("cost.per_hour", format!("{} is no price", rate.per_hour)));
        }
        let rates = raw.rates.iter().map(|rate| (rate.gpu_model.0.clone(), rate.per_hour)).collect();
        Ok(Self { currency: raw.currency.clone().unwrap_or_else(|| "EUR".to_owned()), rates })
    }

    /// The price of one card for an hour, where one is known.
    pub fn per_hour(&self, model: &str) -> Option<f64> {
        self.rates.iter().find(|(pattern, _)| pattern.is_match(model)).map(|(_, price)| *price)
    }
}
