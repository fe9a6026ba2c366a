//! The exemptions of the policy in a plan: what they cost and when they end.

use jiff::Timestamp;
use serde_json::json;

use crate::message::reasons;
use crate::policy::Exempted;
use crate::settings::Cost;

/// One exemption as a line for people.
pub fn line(exempted: &Exempted<'_>, cost: &Cost, now: Timestamp) -> String {
    let exemption = exempted.exemption;
    let end = match exemption.until {
        None => "without end".to_owned(),
        Some(end) if now < end => format!("until {}", reasons::time(end)),
        Some(end) => format!("ended at {} and protects no longer", reasons::time(end)),
    };
    let whose = format!("{}: {}", reasons::name(&exemption.owner), reasons::name(&exemption.reason));
    let cost = exempted.spared.map_or_else(String::new, |spared| {
        let money = money(exempted, cost).map(|sum| format!(", {sum:.2} {}", cost.currency));
        let hours = reasons::gpu_hours(exempted.idle());
        let since = reasons::time(spared.since);
        format!("; {hours} GPU-hours at rest since {since}{}", money.unwrap_or_default())
    });
    let servers = match exempted.servers.len() {
        1 => "1 server".to_owned(),
        n => format!("{n} servers"),
    };
    format!("exempt \"{}\" {end} ({whose}): {servers}{cost}", exempted.rule)
}

/// The same for programs.
pub fn as_json(exempted: &Exempted<'_>, cost: &Cost) -> serde_json::Value {
    json!({
        "server": null,
        "exemption": exempted.rule,
        "until": exempted.exemption.until,
        "owner": exempted.exemption.owner,
        "reason": exempted.exemption.reason,
        "servers": exempted.servers,
        "counted_since": exempted.spared.map(|spared| spared.since),
        "idle_gpu_hours": exempted.idle().as_secs_f64() / 3600.0,
        "cost": money(exempted, cost),
        "currency": cost.currency,
    })
}

/// What the time at rest costs; absent where no price is known.
fn money(exempted: &Exempted<'_>, cost: &Cost) -> Option<f64> {
    let idle = exempted.spared.iter().flat_map(|spared| &spared.idle);
    let prices = idle.filter_map(|(model, time)| Some(cost.per_hour(model)? * time.as_secs_f64() / 3600.0));
    prices.reduce(|sum, price| sum + price)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use jiff::SignedDuration;

    use super::*;
    use crate::domain::ServerId;
    use crate::policy::{Exemption, Spared};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cost() -> Cost {
        let rates = "[[rates]]\ngpu_model = \"*A100*\"\nper_hour = 2.10";
        Cost::new(&toml::from_str(rates).unwrap()).unwrap()
    }

    #[test]
    fn an_exemption_is_listed_with_its_reason_owner_end_and_cost() {
        let exemption = Exemption {
            until: Some(at("2027-04-01T00:00:00Z")),
            reason: "nightly scoring".to_owned(),
            owner: "mlops".to_owned(),
        };
        let hours = SignedDuration::from_hours;
        let spared = Spared {
            since: at("2026-12-01T08:00:00Z"),
            idle: [("NVIDIA A100".to_owned(), hours(40)), ("NVIDIA L4".to_owned(), hours(2))].into(),
            told: [].into(),
        };
        let server = ServerId::new("svc", "");
        let (servers, spared) = (vec![&server], Some(&spared));
        let exempted = Exempted { rule: "standby", exemption: &exemption, servers, spared };
        assert_eq!(
            line(&exempted, &cost(), at("2026-12-24T00:00:00Z")),
            "exempt \"standby\" until 2027-04-01 00:00:00Z (mlops: nightly scoring): 1 server; \
             42.0 GPU-hours at rest since 2026-12-01 08:00:00Z, 84.00 EUR"
        );
        let ended = line(&exempted, &cost(), at("2027-04-01T00:00:00Z"));
        assert!(ended.contains("ended at 2027-04-01 00:00:00Z and protects no longer"), "{ended}");
        let value = as_json(&exempted, &cost());
        assert_eq!((&value["exemption"], &value["idle_gpu_hours"]), (&json!("standby"), &json!(42.0)));
        assert_eq!((&value["cost"], &value["servers"]), (&json!(84.0), &json!(["svc/"])));
    }

    #[test]
    fn what_was_not_counted_yet_and_what_has_no_price_is_left_out() {
        let exemption = Exemption { until: None, reason: "demo".to_owned(), owner: "it".to_owned() };
        let exempted = Exempted { rule: "demo", exemption: &exemption, servers: Vec::new(), spared: None };
        let now = at("2026-12-24T00:00:00Z");
        assert_eq!(line(&exempted, &cost(), now), "exempt \"demo\" without end (it: demo): 0 servers");
        assert_eq!(as_json(&exempted, &cost())["cost"], json!(null));
    }
}
