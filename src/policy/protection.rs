//! Sessions that are left alone whatever they do.

use jiff::Timestamp;

use super::{Keep, ProtectedReason, Rule, Session};

/// Why `session` is protected, if it is.
pub fn protection(
    session: &Session,
    rule: Option<&Rule>,
    keep: Option<&Keep>,
    now: Timestamp,
) -> Option<ProtectedReason> {
    let exempt = rule.and_then(|rule| {
        let exemption = rule.exempt.as_ref().filter(|exemption| exemption.holds(now))?;
        Some(ProtectedReason::Exempt {
            rule: rule.name.clone(),
            until: exemption.until,
            reason: exemption.reason.clone(),
        })
    });
    let kept = keep
        .filter(|keep| now < keep.until)
        .map(|keep| ProtectedReason::Kept { until: keep.until, by: keep.by.clone() });
    exempt.or(kept).or_else(|| (!session.may_hold_cards()).then_some(ProtectedReason::NoCard))
}
