//! The cards of one session: what they did, who else holds them, and their last day.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::chart::{Chart, Mark};
use super::status::{Known, Status};
use super::visitor::Visitor;
use crate::domain::{GpuId, GpuSample, ServerId};
use crate::message::{bytes_in_words, pages};

/// A card of a session.
#[derive(Debug, Serialize)]
pub struct CardView {
    id: String,
    model: String,
    memory: String,
    now: String,
    /// Who else holds it.
    shared: Option<String>,
    chart: Option<Chart>,
}

/// The cards of a session, as this visitor may see them.
pub fn cards(
    known: &Known,
    status: &Status,
    visitor: &Visitor,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<CardView> {
    let Ok(gpus) = &known.session.gpus else {
        return Vec::new();
    };
    let id = &known.session.server.id;
    let marks = marks(known, now);
    let chart = |gpu: &GpuSample| {
        let ring = status.history.of(id, &gpu.id)?;
        Some(Chart::of(ring, known.session.server.started, &marks, now, zone))
    };
    gpus.iter()
        .map(|gpu| CardView {
            id: pages::name(&gpu.id.0),
            model: pages::name(&gpu.model),
            memory: gpu.memory_used.map_or_else(|| "memory not known".to_owned(), bytes_in_words),
            now: activity(gpu),
            shared: shared(status, id, &gpu.id, visitor),
            chart: chart(gpu),
        })
        .collect()
}

/// What a card did since the last look.
pub fn activity(gpu: &GpuSample) -> String {
    let percent = |ratio: Option<crate::domain::Ratio>| {
        ratio.map_or_else(|| "not readable".to_owned(), |ratio| format!("{:.0} %", ratio.get() * 100.0))
    };
    let power = gpu.power.map(|power| format!(", {}", pages::power(&power))).unwrap_or_default();
    format!("SM {}, memory bandwidth {}{power}", percent(gpu.sm), percent(gpu.dram))
}

fn marks(known: &Known, now: Timestamp) -> Vec<(Mark, Timestamp)> {
    let clocks = known.decision.judgement.clocks;
    let warning = known.record.as_ref().and_then(|record| record.warning.as_ref());
    let all = [
        (Mark::Card, clocks.and_then(|clocks| clocks.card_active)),
        (Mark::Used, clocks.map(|clocks| clocks.used)),
        (Mark::Present, clocks.map(|clocks| clocks.present)),
        (Mark::Warned, warning.map(|warning| warning.accepted)),
        (Mark::Deadline, known.deadline(now)),
    ];
    all.into_iter().filter_map(|(mark, at)| Some((mark, at?))).collect()
}

/// Who else holds a card, by time-slicing, MPS, or simply at the same time: only admins are told names.
fn shared(status: &Status, server: &ServerId, card: &GpuId, visitor: &Visitor) -> Option<String> {
    let card = status.last.as_ref()?.cards.iter().find(|known| known.sample.id == *card)?;
    let others: Vec<&ServerId> = card.servers.iter().filter(|id| *id != server).collect();
    pages::shared(&others, card.has_strangers(), visitor.sees_all())
}
